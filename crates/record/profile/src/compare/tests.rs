use proptest::prelude::*;
use stillwell_units::count;

use super::*;
use crate::pprof::{Profile, SampleType, StackSample};

const WORK: RunWork = RunWork {
    events_per_second: 1.0,
    measured_ns: (0, 10_000_000_000),
};

/// A profile of one second with these stacks, written `main;serve`.
fn cpu(stacks: &[(&str, i64)]) -> [ProfileFile; 1] {
    let mut functions: Vec<String> = Vec::new();
    let mut samples = Vec::new();
    for (stack, amount) in stacks {
        let stack = stack.split(';').map(|name| {
            let known = functions.iter().position(|function| function == name);
            let index = known.unwrap_or_else(|| {
                functions.push(name.to_owned());
                functions.len() - 1
            });
            count(index)
        });
        samples.push(StackSample {
            stack: stack.collect(),
            amounts: vec![*amount],
        });
    }
    [ProfileFile {
        page: "profile".to_owned(),
        profile: Profile {
            types: vec![SampleType {
                name: "cpu".to_owned(),
                unit: "nanoseconds".to_owned(),
            }],
            functions,
            samples,
            time_ns: 1,
            duration_ns: 1_000_000_000,
        },
    }]
}

fn compared(baseline: &[&[(&str, i64)]], comparison: &[&[(&str, i64)]]) -> ProfileComparison {
    let mut collector = ProfileCollector::default();
    for (variant, runs) in [("old", baseline), ("new", comparison)] {
        for run in runs {
            collector.add_run(variant, &cpu(run), &WORK);
        }
    }
    collector.compare("old", "new").pop().unwrap()
}

#[test]
fn the_function_that_became_hot_is_first() {
    let old: &[(&str, i64)] = &[("main;serve", 50), ("main;serve;parse", 30)];
    let new: &[(&str, i64)] = &[
        ("main;serve", 51),
        ("main;serve;parse", 29),
        ("main;serve;hash", 40),
    ];
    let result = compared(&[old, old], &[new]);
    assert_eq!(result.totals.to_vec(), [80.0, 120.0]);
    assert_eq!(result.runs, [2, 1]);
    let names: Vec<_> = result
        .clearest_changes(9)
        .map(|function| function.name.as_str())
        .collect();
    assert_eq!(names, ["hash", "main", "serve", "parse"]);
    let main = result.functions.iter().find(|change| change.name == "main");
    assert_eq!(main.unwrap().with_callees.to_vec(), [80.0, 120.0]);
}

#[test]
fn a_new_function_comes_before_its_callers_and_its_callees() {
    let old: &[(&str, i64)] = &[("main;serve;parse", 90)];
    let new: &[(&str, i64)] = &[
        ("main;serve;parse", 90),
        ("main;serve;verify;repeat", 30),
        ("main;serve;verify;repeat;grow", 30),
    ];
    let result = compared(&[old], &[new]);
    let first = result.clearest_changes(1).next().unwrap();
    assert_eq!(first.name, "verify");
}

#[test]
fn a_recursive_function_counts_once_for_each_stack() {
    let result = compared(&[&[("main;walk;walk;walk", 10)]], &[&[("main;walk", 10)]]);
    let walk = result.functions.iter().find(|change| change.name == "walk");
    assert_eq!(walk.unwrap().with_callees.to_vec(), [10.0, 10.0]);
}

#[test]
fn a_quantity_of_one_variant_alone_is_not_compared() {
    let mut collector = ProfileCollector::default();
    collector.add_run("old", &cpu(&[("main", 1)]), &WORK);
    collector.add_run("new", &[], &WORK);
    assert!(collector.compare("old", "new").is_empty());
}

#[test]
fn one_variant_alone_has_its_functions_by_what_they_spent_themselves() {
    let mut collector = ProfileCollector::default();
    for amount in [10, 30] {
        let stacks = [("main;serve", 5), ("main;serve;parse", amount)];
        collector.add_run("new", &cpu(&stacks), &WORK);
    }
    let summary = collector.summary("new").pop().unwrap();
    assert_eq!((summary.runs, summary.total), (2, 25.0));
    let largest: Vec<_> = summary.largest(9).collect();
    let names: Vec<_> = largest
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    assert_eq!(names, ["parse", "serve"]);
    assert_eq!((largest[1].itself, largest[1].with_callees), (5.0, 25.0));
    assert!(collector.summary("old").is_empty());
}

proptest! {
    #[test]
    fn the_amounts_of_functions_themselves_make_the_total(
        amounts in prop::collection::vec(("[ab](;[abc]){0,3}", 0_i64..1000), 1..8),
    ) {
        let run: Vec<_> = amounts.iter().map(|(stack, amount)| (stack.as_str(), *amount)).collect();
        let result = compared(&[&run], &[&run]);
        for side in 0..2 {
            let sum: f64 = result.functions.iter().map(|function| function.itself[side]).sum();
            prop_assert!((sum - result.totals[side]).abs() < 1e-6);
        }
        prop_assert_eq!(result.clearest_changes(9).count(), 0);
    }
}
