//! Templates.

use std::collections::HashMap;

use stillwell_payload::{BlockSet, BuildError, SlotUse};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{
    Alphabet, TemplatePart as P, TemplatePlan, TemplateValue, TimePattern, TimeText,
};
use stillwell_plan::stamp::PrefixFraming;
use stillwell_units::Seed;

use crate::{build, events, plan, up_to};

fn text(text: &str) -> P {
    P::Text(text.to_owned())
}

/// Lines with every kind of value.
pub(super) fn lines() -> TemplatePlan {
    let values = [
        TemplateValue::Application,
        TemplateValue::Host,
        TemplateValue::Ipv4,
        TemplateValue::Ipv6,
        TemplateValue::Message,
        TemplateValue::Path,
        TemplateValue::User,
        TemplateValue::Uuid,
        TemplateValue::Word,
    ];
    let even = |parts: Vec<P>| P::Choice(parts.into_iter().map(|part| (1, part)).collect());
    let (low, high) = (-12_345_678_901_234, 12_345_678_901_234);
    TemplatePlan {
        root: P::Sequence(vec![
            P::Stamp,
            even(times().map(P::Time).to_vec()),
            text(" "),
            P::Counter { first: 7 },
            text(" "),
            P::Integer {
                low: 5,
                high: 5000,
                digits: 6,
            },
            text(" "),
            P::Integer {
                low,
                high,
                digits: 1,
            },
            text(" "),
            P::Decimal {
                low: -15,
                high: 2000,
                decimals: 2,
            },
            text(" a text of more than thirty-two bytes, so that it is long "),
            P::Repeat {
                low: 0,
                high: 3,
                separator: ", ".to_owned(),
                part: Box::new(P::Use(0)),
            },
            text(" "),
            P::Random {
                alphabet: Alphabet::Base64,
                count: 43,
            },
            P::Random {
                alphabet: Alphabet::Digits,
                count: 3,
            },
            P::Random {
                alphabet: Alphabet::Letters,
                count: 5,
            },
            P::Random {
                alphabet: Alphabet::Hexadecimal,
                count: 16,
            },
            text("\n"),
        ]),
        definitions: vec![even(values.map(P::Value).to_vec())],
        variables: 0,
    }
}

/// Every form of time.
fn times() -> [TimeText; 6] {
    let pattern = TimePattern::parse("%d/%b/%y %e %T%.6f %s %:z").unwrap();
    [
        TimeText::Rfc3339,
        TimeText::Rfc3164,
        TimeText::CommonLog,
        TimeText::Epoch { digits: 0 },
        TimeText::Epoch { digits: 9 },
        TimeText::Pattern(pattern),
    ]
}

/// JSON objects with every kind of joining.
pub(super) fn objects() -> TemplatePlan {
    let list = |low, high| {
        P::Sequence(vec![
            text("["),
            P::Repeat {
                low,
                high,
                separator: ",".to_owned(),
                part: Box::new(P::Use(0)),
            },
            text("]"),
        ])
    };
    let inside = |part| P::Inside(Box::new(part));
    TemplatePlan {
        root: P::With {
            variables: vec![
                (
                    0,
                    P::Integer {
                        low: 1,
                        high: 10_000_000,
                        digits: 1,
                    },
                ),
                (1, P::Use(0)),
            ],
            part: Box::new(P::Sequence(vec![
                text(r#"{"id":"#),
                P::Variable(0),
                text(r#","message":""#),
                P::Stamp,
                text("user "),
                inside(P::Variable(0)),
                text(" says "),
                inside(P::Variable(1)),
                text(" and "),
                inside(list(0, 2)),
                inside(P::Choice(vec![
                    (1, text("\"a\"")),
                    (2, text("null")),
                    (9000, text("[\"é\"]")),
                ])),
                text(r#"","at":""#),
                P::Clock,
                text(r#"","both":"#),
                P::Join(vec![list(0, 2), list(0, 2)]),
                text(r#","all":"#),
                P::Join(vec![P::Use(0), P::Use(0), P::Variable(1)]),
                text("}\n"),
            ])),
        },
        definitions: vec![P::Choice(vec![
            (3, text(r#""a\"b""#)),
            (1, text(r#"{"x":["y",null]}"#)),
            (1, text("{}")),
            (1, text(r#""""#)),
            (
                1,
                P::Integer {
                    low: -3,
                    high: 3,
                    digits: 1,
                },
            ),
        ])],
        variables: 2,
    }
}

fn made(template: TemplatePlan) -> Vec<String> {
    let plan = plan(PayloadFormat::Template(template), up_to(64 << 10), 1 << 20);
    let set = build(&plan, 5, SlotUse::None);
    let events = events(&set).into_iter();
    events
        .map(|event| String::from_utf8(event.to_vec()).unwrap())
        .collect()
}

fn template(root: Vec<P>) -> TemplatePlan {
    TemplatePlan {
        root: P::Sequence(root),
        definitions: Vec::new(),
        variables: 0,
    }
}

// compat: lading, payloads | templated_json | works
#[test]
fn choices_have_their_weights() {
    // Few shares are drawn from a table, many from their sums.
    for scale in [1, 10_000] {
        let root = P::Choice(vec![
            (scale, text("a\n")),
            (0, text("b\n")),
            (scale * 7, text("c\n")),
            (
                2 * scale + 1,
                P::Sequence(vec![text("d"), P::Counter { first: 0 }, text("\n")]),
            ),
        ]);
        let mut counts: HashMap<char, usize> = HashMap::new();
        let events = made(template(vec![root]));
        for event in &events {
            *counts.entry(event.chars().next().unwrap()).or_default() += 1;
        }
        let share = |letter| counts.get(&letter).copied().unwrap_or(0) * 1000 / events.len();
        // Of more than 300,000 draws, where five deviations are 0.5 %.
        let (a, c) = if scale == 1 { (91, 636) } else { (100, 700) };
        assert!(share('a').abs_diff(a) <= 5, "{counts:?}");
        assert!(share('c').abs_diff(c) <= 5, "{counts:?}");
        assert_eq!(share('b'), 0);
    }
}

#[test]
fn numbers_are_in_their_ranges_and_reach_their_ends() {
    for (low, high) in [
        (-3, 3),
        (995, 1005),
        (0, 9),
        (i64::MIN, i64::MIN + 4),
        (i64::MAX - 4, i64::MAX),
    ] {
        let number = P::Integer {
            low,
            high,
            digits: 1,
        };
        let numbers = made(template(vec![number, text("\n")]));
        let mut numbers: Vec<i64> = numbers
            .iter()
            .map(|event| event.trim().parse().unwrap())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (low..=high).collect::<Vec<_>>());
    }
    let padded = P::Integer {
        low: -7,
        high: 12,
        digits: 4,
    };
    let numbers = made(template(vec![padded, text("\n")]));
    assert!(numbers.contains(&"-0007\n".to_owned()) && numbers.contains(&"0012\n".to_owned()));
    let decimal = P::Decimal {
        low: -105,
        high: 105,
        decimals: 2,
    };
    let numbers = made(template(vec![decimal, text("\n")]));
    for value in ["-1.05\n", "-0.07\n", "0.00\n", "1.05\n"] {
        assert!(numbers.contains(&value.to_owned()), "{value}");
    }
}

#[test]
fn counters_count_and_times_go_on() {
    let events = made(template(vec![
        P::Counter { first: 998 },
        text(" "),
        P::Time(TimeText::Rfc3339),
        text(" "),
        P::Time(TimeText::Epoch { digits: 3 }),
        text("\n"),
    ]));
    let mut before = (997, String::new(), 0);
    for event in &events {
        let parts: Vec<&str> = event.split_whitespace().collect();
        let number = parts[0].parse::<u64>().unwrap();
        let epoch = parts[2].parse::<u64>().unwrap();
        assert_eq!(number, before.0 + 1);
        assert!(parts[1] >= before.1.as_str() && epoch >= before.2);
        before = (number, parts[1].to_owned(), epoch);
    }
}

#[test]
fn variables_keep_their_value_in_an_event() {
    let user = P::Value(TemplateValue::Uuid);
    let events = made(TemplatePlan {
        root: P::With {
            variables: vec![(0, user)],
            part: Box::new(P::Sequence(vec![
                P::Variable(0),
                text(" "),
                P::Variable(0),
                text("\n"),
            ])),
        },
        definitions: Vec::new(),
        variables: 1,
    });
    for event in &events {
        let (first, second) = event.trim().split_once(' ').unwrap();
        assert_eq!(first, second);
    }
    assert!(events.windows(2).all(|pair| pair[0] != pair[1]));
}

/// A variable is made where the event goes on, and there was no room for one that is much
/// longer than all of the event.
#[test]
fn a_long_variable_that_no_event_has_was_made_without_room() {
    let long = P::With {
        variables: vec![(0, text(&"0123456789".repeat(5_000)))],
        part: Box::new(text("short\n")),
    };
    let events = made(TemplatePlan {
        root: P::Sequence(vec![long.clone(), long]),
        definitions: Vec::new(),
        variables: 1,
    });
    assert!(events.iter().all(|event| event == "short\nshort\n"));
}

#[test]
fn what_makes_no_events_is_refused() {
    let build = |template, maximum, slots| {
        let plan = plan(PayloadFormat::Template(template), up_to(maximum), 1000);
        let seed = Seed::from_number(1);
        BlockSet::build_with(&plan, plan.cache, seed, None, slots).map(|set| set.len())
    };
    let never_short = template(vec![P::Choice(vec![(0, text("a")), (1, text("abcdef"))])]);
    assert!(matches!(
        build(never_short, 5, SlotUse::None),
        Err(BuildError::MaximumTooSmall { .. })
    ));
    assert_eq!(
        build(template(vec![text("a\n")]), 100, SlotUse::Every),
        Err(BuildError::NoSlots { name: "template" })
    );
    assert!(matches!(
        build(template(vec![P::Use(0)]), 100, SlotUse::None),
        Err(BuildError::Template(_))
    ));
    // A time before each line needs lines; with a length before it, any event has one.
    for event in ["a", "a\nb\n"] {
        let (lines, lengths) = (PrefixFraming::Lines, PrefixFraming::LengthPrefixed);
        assert_eq!(
            build(template(vec![text(event)]), 100, SlotUse::Before(lines)),
            Err(BuildError::NotLines { name: "template" })
        );
        assert!(build(template(vec![text(event)]), 100, SlotUse::Before(lengths)).is_ok());
    }
    // Nothing is no event.
    assert!(matches!(
        build(template(vec![text("")]), 100, SlotUse::None),
        Err(BuildError::NothingFits { .. })
    ));
    // One that is mostly too long gives those that are not.
    let sometimes = template(vec![P::Choice(vec![
        (1, text("a\n")),
        (50, text("abcdefgh\n")),
    ])]);
    assert!(build(sometimes, 5, SlotUse::None).unwrap() > 10);
}
