use stillwell_plan::targets::{Delivery, Durability};
use stillwell_profile::{FlameNode, FunctionAmount, ProfileQuantity, ProfileSummary};
use stillwell_units::Nanos;
use stillwell_verdict::{
    ColumnFound, DeliveryFound, PairFound, Place, TargetsCell, TargetsMetric, TargetsRow,
    TargetsVerdict,
};

use super::*;
use crate::{Format, Style};

fn column(name: &str, invalid: Option<&str>, delivery: DeliveryFound) -> ColumnFound {
    ColumnFound {
        name: name.to_owned(),
        durability: Some(Durability::Disk),
        expected: Some(Delivery::AtLeastOnce),
        delivery,
        runs: 6,
        completed: 6,
        invalid: invalid.map(str::to_owned),
        unchecked: None,
    }
}

fn value(mean: f64, half: f64, place: Place) -> TargetsCell {
    TargetsCell::Value {
        mean,
        interval: Some((mean - half, mean + half)),
        runs: 6,
        place,
    }
}

fn invalid() -> TargetsCell {
    TargetsCell::Invalid {
        mean: Some(1e6),
        reason: "it claims `disk`, and sent 0.01 bytes to storage for each byte".to_owned(),
    }
}

fn row(metric: TargetsMetric, cells: Vec<TargetsCell>) -> TargetsRow {
    TargetsRow {
        metric,
        cells,
        pairs: Vec::new(),
        unranked: Vec::new(),
    }
}

fn rows() -> Vec<TargetsRow> {
    let pair = PairFound {
        left: 0,
        right: 1,
        blocks: 6,
        change: -0.5,
        p_value: 0.001,
    };
    vec![
        TargetsRow {
            pairs: vec![pair],
            ..row(
                TargetsMetric::Accepted,
                vec![
                    value(7.1e7, 1e6, Place::Winner),
                    value(3.5e7, 2e5, Place::Behind),
                    invalid(),
                ],
            )
        },
        TargetsRow {
            unranked: vec!["`slow_one` received 50 % of the bytes that `fast` received".to_owned()],
            ..row(
                TargetsMetric::CpuUser,
                vec![
                    value(0.91, 0.01, Place::None),
                    value(0.4, 0.0, Place::None),
                    invalid(),
                ],
            )
        },
        row(
            TargetsMetric::LatencyP99,
            vec![
                value(0.0125, 0.0002, Place::Tied),
                TargetsCell::Missing {
                    reason: "no event was stamped".to_owned(),
                },
                invalid(),
            ],
        ),
        row(
            TargetsMetric::Loss,
            vec![
                value(0.0, 0.0, Place::Tied),
                value(0.00002, 0.0, Place::Tied),
                invalid(),
            ],
        ),
    ]
}

fn verdict() -> TargetsVerdict {
    let delivered = DeliveryFound {
        runs: 6,
        sent: 600_000,
        ..DeliveryFound::default()
    };
    let lost = DeliveryFound {
        lost: 12,
        reordered: 3,
        ..delivered.clone()
    };
    TargetsVerdict {
        name: "disk_buffer".to_owned(),
        summary: Some("A slow receiver fills buffers | on disk.".to_owned()),
        blocks: 6,
        columns: vec![
            column("fast", None, delivered.clone()),
            column("slow_one", None, lost),
            column("liar", Some("it claims `disk`"), delivered),
        ],
        rows: rows(),
        remarks: vec!["a remark".to_owned()],
    }
}

fn report() -> TargetsReport {
    TargetsReport {
        title: "harness/disk_buffer".to_owned(),
        verdicts: vec![verdict()],
        versions: vec![
            ("fast".to_owned(), Some("fast 1.2".to_owned())),
            ("slow_one".to_owned(), None),
        ],
        left_out: vec![(
            "absent".to_owned(),
            "there is no program `absent`".to_owned(),
        )],
        problems: Vec::new(),
        results_folder: "results".to_owned(),
        command: "stillwell run harness/disk_buffer".to_owned(),
        version: "0.1.0".to_owned(),
        host: vec![("kernel".to_owned(), "6".to_owned())],
        elapsed: Some(Nanos::from_secs(60)),
        next: vec!["stillwell report results".to_owned()],
        profiles: Vec::new(),
    }
}

#[test]
fn profiles_of_a_target_are_on_screens_and_pages_and_in_the_data() {
    let summary = ProfileSummary {
        quantity: ProfileQuantity::CpuTime,
        runs: 6,
        total: 2e6,
        samples: 1_200,
        functions: vec![FunctionAmount {
            name: "parse<u8>".to_owned(),
            itself: 5e5,
            with_callees: 1e6,
        }],
        root: FlameNode {
            amounts: [2e6, 0.0],
            callees: [(
                "parse<u8>".to_owned(),
                FlameNode {
                    amounts: [1e6, 0.0],
                    ..FlameNode::default()
                },
            )]
            .into(),
        },
    };
    let profiles = TargetProfiles {
        experiment: "disk_buffer".to_owned(),
        target: "fast".to_owned(),
        unit: "event",
        summaries: vec![summary],
        unreadable: None,
    };
    let report = FullReport::from(&TargetsReport {
        profiles: vec![profiles],
        ..report()
    });
    for (format, parts) in [
        (
            Format::Terminal,
            ["Profiles of fast", "parse<u8>", "500 µs", "25.0 %"],
        ),
        (
            Format::Markdown,
            ["Profiles of fast", "`parse<u8>`", "500 µs", "25.0 %"],
        ),
        (
            Format::Json,
            [
                "\"profiles\"",
                "\"fast\"",
                "\"itself\": 500000.0",
                "parse<u8>",
            ],
        ),
        (
            Format::Html,
            [
                "class=\"flame\"",
                "parse&lt;u8&gt;: 1.00 ms, 50.0 % of all",
                "500 µs",
                "25.0 %",
            ],
        ),
    ] {
        let text = report.render(format, Style::default());
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn a_table_of_targets_has_every_form() {
    for format in Format::ALL {
        let text = FullReport::from(&report()).render(format, Style::default());
        if format == Format::Html {
            assert!(text.contains("<table>"), "{text}");
            continue;
        }
        insta::assert_snapshot!(format!("targets_{format}"), text);
    }
}

#[test]
fn a_claim_that_was_not_checked_is_reported() {
    let mut report = report();
    report.verdicts[0].columns[0].unchecked = Some("nothing was recorded".to_owned());
    for (format, expected) in [
        (Format::Terminal, "fast: nothing was recorded\n"),
        (Format::Markdown, "| disk, not checked |"),
        (Format::Json, "\"unchecked\": \"nothing was recorded\""),
    ] {
        let text = FullReport::from(&report).render(format, Style::default());
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn several_experiments_end_with_what_arrived() {
    let mut report = report();
    let mut second = report.verdicts[0].clone();
    second.name = "sighup".to_owned();
    second.columns.truncate(2);
    report.verdicts.push(second);
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    let matrix = text.split_once("\ndelivery\n").unwrap().1;
    let lines: Vec<&str> = matrix.lines().take(3).map(str::trim).collect();
    assert!(lines[0].starts_with("fast"), "{matrix}");
    assert!(lines[1].contains("pass: exactly_once"), "{matrix}");
    assert!(lines[2].contains("fail: at_most_once"), "{matrix}");
}
