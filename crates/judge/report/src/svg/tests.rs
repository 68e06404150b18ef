use std::collections::BTreeSet;

use proptest::prelude::*;
use stillwell_plan::goal::Scale;

use super::curve::curve;
use super::intervals::intervals;
use super::pairs::pairs;
use super::*;
use crate::document::{
    AxisScale, Curve, Interval, IntervalChart, IntervalRow, Mark, PairSeries, PairStage, Sign,
};

/// Returns the values of an attribute.
fn attribute<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!(" {name}=\"");
    let values = svg.split(&head).skip(1);
    values
        .map(|value| value.split('"').next().unwrap())
        .collect()
}

/// Checks that a chart is described, and that all of it lies within its view box.
fn check(drawing: &Drawing) {
    check_svg(&drawing.figure().into_string());
    check_svg(&drawing.standalone());
}

fn check_svg(svg: &str) {
    for part in ["<title>", "<desc>", "role=\"img\""] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let number = |text: &str| {
        let number: f64 = text.parse().unwrap();
        assert!(number.is_finite(), "{text}: {svg}");
        number
    };
    let view: Vec<f64> = attribute(svg, "viewBox")[0]
        .split(' ')
        .map(number)
        .collect();
    let (width, height) = (view[2], view[3]);
    for (names, most) in [
        (["x", "x1", "x2", "cx", "width"], width),
        (["y", "y1", "y2", "cy", "height"], height),
    ] {
        for value in names.iter().flat_map(|name| attribute(svg, name)) {
            let value = number(value);
            assert!((0.0..=most).contains(&value), "{value}: {svg}");
        }
    }
    for point in attribute(svg, "points")
        .iter()
        .flat_map(|points| points.split_whitespace())
    {
        let (x, y) = point.split_once(',').unwrap();
        assert!((0.0..=width).contains(&number(x)), "{point}: {svg}");
        assert!((0.0..=height).contains(&number(y)), "{point}: {svg}");
    }
}

fn interval(estimate: f64, low: f64, high: f64) -> Interval {
    Interval {
        estimate,
        low,
        high,
    }
}

proptest! {
    /// For all numbers, finite or not.
    #[test]
    fn a_chart_of_intervals_stays_in_its_box(
        values in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()), 1..6),
    ) {
        let rows: Vec<IntervalRow> = values
            .into_iter()
            .map(|(estimate, low, high, tolerance)| IntervalRow {
                name: "<goal>".to_owned(),
                text: "change".to_owned(),
                sign: Some(Sign::Worse),
                interval: Some(interval(estimate, low, high)),
                tolerance,
                scale: Scale::Ratio,
                is_primary: false,
            })
            .collect();
        check(&intervals(&IntervalChart::of_changes(rows)).unwrap());
    }

    /// For all numbers, finite or not.
    #[test]
    fn a_chart_of_pairs_stays_in_its_box(
        search in prop::collection::vec(any::<f64>(), 0..30),
        fresh in prop::collection::vec(-1.0_f64..9.0, 1..30),
        tolerance in any::<f64>(),
    ) {
        let stage = |changes: Vec<f64>, is_fresh| PairStage {
            name: "search",
            used: 4,
            is_fresh,
            running: changes.iter().map(|change| Some(interval(*change, change - 1.0, change + 1.0))).collect(),
            changes,
        };
        let series = PairSeries {
            name: "goal".to_owned(),
            stages: vec![stage(search, false), stage(fresh, true)],
            tolerance,
            scale: Scale::Ratio,
        };
        check(&pairs(&series).unwrap());
    }

    /// For all numbers, finite or not, on every scale.
    #[test]
    fn a_chart_of_lines_stays_in_its_box(
        values in prop::collection::vec((any::<f64>(), any::<f64>()), 1..20),
        more in prop::collection::vec((1.0_f64..1e6, 1.0_f64..1e12), 1..20),
        mark in (any::<f64>(), any::<f64>()),
        scale in prop::sample::select(vec![
            AxisScale::FromZero, AxisScale::Linear, AxisScale::Numbers, AxisScale::Log, AxisScale::Percentiles,
        ]),
    ) {
        let drawn = curve(&Curve {
            scales: (scale, AxisScale::Log),
            x: ("time".to_owned(), "s"),
            y: ("latency".to_owned(), "ns"),
            series: vec![("a".to_owned(), values), ("b".to_owned(), more)],
            marks: vec![Mark { x: mark.0, y: mark.1, sign: Sign::Worse, text: "failed".to_owned() }],
            ..Curve::default()
        });
        check(&drawn.unwrap());
    }
}

#[test]
fn names_of_a_legend_do_not_overlap() {
    for count in 1..=12 {
        let line = |index| (format!("line {index}"), vec![(0.0, 1.0), (1.0, 2.0)]);
        let drawn = curve(&Curve {
            scales: (AxisScale::Linear, AxisScale::FromZero),
            x: ("time".to_owned(), "s"),
            y: ("rate".to_owned(), ""),
            series: (0..count).map(line).collect(),
            ..Curve::default()
        });
        let drawn = drawn.unwrap();
        check(&drawn);
        let markup = drawn.standalone();
        let texts = markup
            .split("<text")
            .filter_map(|text| text.split_once('>'));
        let names = texts.filter(|(_, content)| content.starts_with("line "));
        let places: BTreeSet<&str> = names.map(|(place, _)| place).collect();
        assert_eq!(places.len(), count, "{markup}");
    }
}

#[test]
fn a_line_of_one_finite_point_is_drawn_as_a_mark() {
    for (points, marks) in [
        (vec![(1.0, 2.0)], 1),
        (vec![(f64::NAN, 1.0), (1.0, 2.0), (2.0, f64::INFINITY)], 1),
        (vec![(0.0, 1.0), (1.0, 2.0)], 0),
    ] {
        let drawn = curve(&Curve {
            scales: (AxisScale::Linear, AxisScale::FromZero),
            x: ("time".to_owned(), "s"),
            y: ("rate".to_owned(), ""),
            series: vec![("a".to_owned(), points)],
            ..Curve::default()
        });
        let drawn = drawn.unwrap();
        check(&drawn);
        let markup = drawn.standalone();
        assert_eq!(markup.matches("<circle ").count(), marks, "{markup}");
    }
}

#[test]
fn a_chart_without_data_is_omitted() {
    assert!(intervals(&IntervalChart::default()).is_none());
    let series = PairSeries {
        name: "goal".to_owned(),
        stages: Vec::new(),
        tolerance: 0.05,
        scale: Scale::Difference,
    };
    assert!(pairs(&series).is_none());
}

#[test]
fn a_quantity_that_is_always_zero_has_an_axis_from_zero() {
    for scale in [AxisScale::FromZero, AxisScale::Linear] {
        for unit in ["", "B", "ratio"] {
            let drawn = curve(&Curve {
                scales: (AxisScale::Linear, scale),
                x: ("time".to_owned(), "s"),
                y: ("errors".to_owned(), unit),
                series: vec![("a".to_owned(), vec![(0.0, 0.0), (1.0, 0.0)])],
                ..Curve::default()
            });
            let drawn = drawn.unwrap();
            check(&drawn);
            let markup = drawn.standalone();
            let texts = markup.split("<text").skip(1);
            for label in texts.filter_map(|text| text.split(['>', '<']).nth(1)) {
                let is_round = !["e-", "below"].iter().any(|part| label.contains(part));
                assert!(is_round && !label.starts_with('-'), "{label}: {markup}");
            }
        }
    }
}

#[test]
fn ticks_are_round_values_within_the_axis() {
    let ticks = |axis: Axis| axis.ticks(5);
    let rounded = |ticks: Vec<f64>| {
        ticks
            .iter()
            .map(|tick| format!("{tick:.2}"))
            .collect::<Vec<_>>()
    };
    let linear = rounded(ticks(Axis::linear(-0.12, 0.12, 0.0, 1.0)));
    assert_eq!(linear, ["-0.10", "-0.05", "0.00", "0.05", "0.10"]);
    let bytes = ticks(Axis::linear(0.0, 5e6, 0.0, 1.0).in_bytes());
    assert_eq!(bytes[..2], [0.0, 1_048_576.0]);
    // There is no run 1.5.
    let whole = rounded(ticks(Axis::linear(1.0, 3.0, 0.0, 1.0).in_whole_numbers()));
    assert_eq!(whole, ["1.00", "2.00", "3.00"]);
    let log = rounded(ticks(Axis::log(3.0, 2_000.0, 0.0, 1.0)));
    assert_eq!(log, ["10.00", "100.00", "1000.00"]);
    // Two decades for values between 0.8 and 1.1 would hide a change of 8 %.
    let narrow = rounded(ticks(Axis::log(0.8, 1.1, 0.0, 1.0)));
    assert_eq!(narrow, ["0.50", "1.00", "2.00"]);
}

#[test]
fn an_interval_is_drawn_with_its_tolerance() {
    let row = IntervalRow {
        name: "cpu per event".to_owned(),
        text: "+4.9 % [+4.5, +5.4]".to_owned(),
        sign: Some(Sign::Worse),
        interval: Some(interval(0.049, 0.045, 0.054)),
        tolerance: 0.02,
        scale: Scale::Ratio,
        is_primary: true,
    };
    let chart = IntervalChart::of_changes(vec![row]);
    let svg = intervals(&chart).unwrap().figure().into_string();
    insta::assert_snapshot!(svg.replace("><", ">\n<"));
}
