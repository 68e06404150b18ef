//! One file, many experiments.

use std::path::Path;

use stillwell_plan::ExperimentPlan;

use super::golden::LEAST;
use super::mistakes::codes;
use super::{InMemory, experiment, experiment_with, load_suite_from, run_plan};
use crate::{Diagnostics, SuiteOverrides};

/// As people wrote by hand: an interner of three sizes under five numbers of
/// contexts.
const INTERNER: &str = "\
matrix:
  size: [8 MiB, 64 MiB, 128 MiB]
  contexts: [100, 1k, 10k, 50k, 100k]
target:
  command: [./agent, --interner, '{matrix.size}', --in, 127.0.0.1:9100]
  environment: {CONTEXTS: '{matrix.contexts}'}
variants: {baseline: {}, comparison: {arguments: [--slow]}}
workload:
  generators: [{tcp: 127.0.0.1:9100, payload: ascii, cache: '{matrix.size}'}]
";

/// The least with a rate of the matrix.
fn rates(matrix: &str, rate: &str) -> String {
    let least = LEAST.replace("payload: ascii", &format!("payload: ascii, rate: {rate}"));
    format!("matrix: {matrix}\n{least}")
}

fn plans(text: &str) -> Vec<ExperimentPlan> {
    let loaded = experiment(text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    loaded.plan.experiments
}

fn names(text: &str) -> Vec<String> {
    plans(text).into_iter().map(|plan| plan.name).collect()
}

#[test]
fn every_value_meets_every_other() {
    let plans = plans(INTERNER);
    assert_eq!(plans.len(), 15);
    assert_eq!(plans[0].name, "one_size-8MiB_contexts-100");
    assert_eq!(plans[14].name, "one_size-128MiB_contexts-100k");
    let family = plans[6].family.as_ref().unwrap();
    assert_eq!(family.name, "one");
    let parameters = [("size", "64 MiB"), ("contexts", "1k")];
    assert_eq!(
        family.parameters,
        parameters.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(plans[6].folder, Path::new("/suite/one"));
    let generator = &plans[6].run_plan.generators[0];
    assert_eq!(generator.payload.cache.bytes(), 64 << 20);
    let shown = format!("{:?}", plans[6].run_plan.target);
    assert!(
        shown.contains("\"64 MiB\"") && shown.contains("\"1k\""),
        "{shown}"
    );
}

#[test]
fn typed_values_are_read_again() {
    let per_second = |text: &str| -> Vec<f64> {
        let plans = plans(text);
        let shapes = plans
            .iter()
            .map(|plan| &plan.run_plan.generators[0].rate.shape);
        let rates = shapes.map(|shape| shape.constant().unwrap());
        rates.collect()
    };
    for rate in ["\"{matrix.rate}\"", "{matrix.rate}", "'{matrix.rate}'"] {
        assert_eq!(
            per_second(&rates("{rate: [100/s, 2k/s]}", rate)),
            [100.0, 2000.0]
        );
    }
    let parts = rates("{n: [1, 2], unit: [k]}", "'{matrix.n}0{matrix.unit}/s'");
    assert_eq!(per_second(&parts), [10_000.0, 20_000.0]);
}

#[test]
fn every_kind_of_value_may_come_from_a_matrix() {
    let text = format!(
        "matrix: {{pairs: [5, 6], erratic: [true], who: [this]}}\n{}pairs: \"{{matrix.pairs}}\"\n\
         erratic: {{matrix.erratic}}\ndescription: about {{matrix.who}} one\n",
        LEAST
    );
    let plans = plans(&text);
    assert_eq!(
        plans[1].stopping,
        stillwell_plan::StoppingPlan::Fixed { pairs: 6 }
    );
    assert!(plans[1].erratic);
    assert_eq!(plans[1].summary.as_deref(), Some("about this one"));
}

#[test]
fn cells_are_left_out_and_added() {
    let with = |lists: &str| {
        let matrix = format!("{{a: [1, 2], b: [x, y], {lists}}}");
        names(&rates(&matrix, "'{matrix.a}/s', id: '{matrix.b}'"))
    };
    assert_eq!(
        with("exclude: [{a: 1, b: y}]"),
        ["one_a-1_b-x", "one_a-2_b-x", "one_a-2_b-y"]
    );
    assert_eq!(with("exclude: [{a: 1}]"), ["one_a-2_b-x", "one_a-2_b-y"]);
    assert_eq!(
        with("exclude: [{a: 1}, {b: x}], include: [{b: z, a: 9}]"),
        ["one_a-2_b-y", "one_a-9_b-z"]
    );
    let listed = rates("{include: [{a: 1}, {a: 5}]}", "'{matrix.a}/s'");
    assert_eq!(names(&listed), ["one_a-1", "one_a-5"]);
}

#[test]
fn mistakes_in_a_matrix_are_shown_all_at_once() {
    snapshot!(&rates(
        "{size: [], 8bit: [1], include: none, rate: [1, 1, [2]]}",
        "'{matrix.rate}/s'"
    ));
    snapshot!(&rates(
        "{rate: [1, 2], exclude: [{rat: 1}, {rate: 3}, {}], include: [{rate: 2}]}",
        "'{matrix.rate}/s'"
    ));
    snapshot!(&rates(
        "{rate: [1], exclude: [{rate: 1}]}",
        "'{matrix.rate}/s'"
    ));
    snapshot!(&rates(
        "{rate: [1], exclude: [{rat: 1}, {rate: 3}], include: [{rate: 2}, {rate: 1}]}",
        "'{matrix.rate}/s'"
    ));
}

#[test]
fn uses_and_parameters_belong_together() {
    snapshot!(&rates("{rate: [1/s, 2/s]}", "'{matrix.rat}'"));
    snapshot!(&LEAST.replace("ascii", "'{matrix.payload}'"));
    snapshot!(&LEAST.replace("{arguments: [--slow]}", "{environment: {'{matrix.x}': 1}}"));
    let unused = rates("{rate: [1/s, 2/s], size: [1, 2]}", "'{matrix.rate}'");
    assert_eq!(
        codes(&unused),
        [(stillwell_text::code::MATRIX_PARAMETER, 1)]
    );
    assert_eq!(experiment(&unused).unwrap().plan.experiments.len(), 4);
}

/// The value is wrong where it is used; the matrix is shown beside it, and what
/// is wrong in every cell is reported once.
#[test]
fn wrong_values_are_shown_where_they_are_used_and_defined() {
    snapshot!(&rates(
        "{rate: [1/s, fast], n: [1, 2]}",
        "'{matrix.rate}', connections: '{matrix.n}'"
    ));
    let everywhere = INTERNER.replace("payload: ascii", "payload: asci");
    assert_eq!(
        codes(&everywhere),
        [(stillwell_text::code::UNKNOWN_WORD, 9)]
    );
    // What could not be filled in causes no second mistake, and hides none.
    let both = rates("{rate: [1/s]}", "'{matrix.rat}', connections: none");
    let diagnostics: Vec<&str> = codes(&both).into_iter().map(|(code, _)| code).collect();
    let wrong = [
        stillwell_text::code::MATRIX_PARAMETER,
        stillwell_text::code::BAD_VALUE,
    ];
    assert_eq!(diagnostics, wrong);
}

#[test]
fn a_matrix_has_an_end() {
    let many = |count: u32| {
        let values: Vec<String> = (1..=count).map(|value| value.to_string()).collect();
        let values = values.join(", ");
        rates(
            &format!("{{a: [{values}], b: [{values}]}}"),
            "'{matrix.a}/s', connections: '{matrix.b}'",
        )
    };
    assert_eq!(experiment(&many(31)).unwrap().plan.experiments.len(), 961);
    assert_eq!(codes(&many(32)), [(stillwell_text::code::OUT_OF_RANGE, 1)]);
}

fn suite() -> InMemory {
    InMemory::with([
        ("/suite/interner/experiment.yaml", INTERNER),
        ("/suite/other/experiment.yaml", LEAST),
    ])
}

fn only(files: &InMemory, patterns: &[&str]) -> Result<Vec<String>, Diagnostics> {
    let overrides = SuiteOverrides {
        only: patterns.iter().map(|name| (*name).to_owned()).collect(),
        ..SuiteOverrides::default()
    };
    let loaded = load_suite_from(files, &["/suite".into()], &overrides)?;
    let experiments = loaded.plan.experiments.into_iter();
    Ok(experiments.map(|experiment| experiment.name).collect())
}

#[test]
fn cells_are_chosen_by_their_names() {
    let files = suite();
    assert_eq!(only(&files, &["interner"]).unwrap().len(), 15);
    assert_eq!(only(&files, &["*_size-8MiB_*"]).unwrap().len(), 5);
    assert_eq!(
        only(&files, &["interner_size-64MiB_contexts-1k", "other"]).unwrap(),
        ["interner_size-64MiB_contexts-1k", "other"]
    );
    let diagnostics = only(&files, &["interner_size-64MB_contexts-1k"]).unwrap_err();
    let diagnostics = diagnostics.to_string();
    assert!(
        diagnostics.contains("did you mean `interner_size-64MiB_contexts-1k`?"),
        "{diagnostics}"
    );
}

#[test]
fn a_cell_cannot_be_called_like_another_case() {
    let mut files = suite();
    let twin = "/suite/interner_size-8MiB_contexts-100/experiment.yaml";
    files.0.insert(twin.into(), LEAST.to_owned());
    let diagnostics = only(&files, &[]).unwrap_err().to_string();
    assert!(
        diagnostics.contains("two experiments are called `interner_size-8MiB_contexts-100`"),
        "{diagnostics}"
    );
}

#[test]
fn a_warning_of_a_matrix_is_reported_once() {
    let overrides = SuiteOverrides {
        comparison: Some("same".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    let loaded = experiment_with(INTERNER, &overrides).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{}", loaded.warnings);
    assert!(
        loaded
            .warnings
            .to_string()
            .contains("one: the variants do not differ")
    );
}

#[test]
fn the_run_of_a_matrix_is_its_first_cell() {
    let loaded = run_plan(INTERNER).unwrap();
    assert!(
        loaded
            .warnings
            .to_string()
            .contains("the first of the 15 combinations")
    );
    assert_eq!(loaded.plan.generators[0].payload.cache.bytes(), 8 << 20);
}
