//! The decision of a suite for programs: what was found, what the exit code is, and test cases.

use serde_json::{Value, json as object};
use stillwell_units::Secrets;
use stillwell_verdict::{CheckVerdict, ExperimentVerdict, Gate, GatePolicy, GoalVerdict, Verdict};

use crate::document::escape;
use crate::{SuiteReport, by_attention, words};

/// Names the shape of [`decision_json`]'s text; keys are added within a version and never removed.
pub const DECISION_SCHEMA: &str = "stillwell/decision/v1";

/// The JSON Schema of [`decision_json`]'s text.
pub const DECISION_JSON_SCHEMA: &str = include_str!("decision.schema.json");

/// An experiment that does not pass, or a problem.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GateFinding {
    /// Name of the experiment; empty for a problem of the suite.
    pub experiment: String,
    /// Meaning for the exit code; `None` for a problem.
    pub gate: Option<Gate>,
    /// One sentence.
    pub text: String,
}

/// Returns the problems, and the experiments that do not pass, those first that need attention most. The secrets of
/// their texts are handled; names of experiments stay.
#[must_use]
pub fn gate_findings(report: &SuiteReport, secrets: Secrets) -> Vec<GateFinding> {
    let ordered = by_attention(&report.experiments).into_iter();
    let open = ordered.filter(|entry| entry.gate != Gate::Held && !entry.erratic);
    let open = open.map(|entry| GateFinding {
        experiment: entry.name.clone(),
        gate: Some(entry.gate),
        text: secrets.text(&sentence(entry)),
    });
    let problems = report.problems.iter().map(|problem| {
        let reason = secrets.text(&problem.reason);
        GateFinding {
            experiment: problem.experiment.clone().unwrap_or_default(),
            gate: None,
            text: reason.lines().next().unwrap_or_default().to_owned(),
        }
    });
    problems.chain(open).collect()
}

/// Returns the verdict with its numbers, and the checks that failed.
fn sentence(entry: &ExperimentVerdict) -> String {
    let mut text = format!("{}: {}", entry.verdict.name(), words::finding(entry));
    for check in entry.checks.iter().filter(|check| check.is_broken()) {
        text.push_str(&format!("; {}", words::check_line(check)));
    }
    text
}

/// Returns the decision as JSON: the exit code, and the verdict and change of each experiment. Changes are shares of
/// one. The secrets of each text are handled before it is a part of the JSON; names of experiments stay.
#[must_use]
pub fn decision_json(report: &SuiteReport, policy: GatePolicy, secrets: Secrets) -> String {
    let code = report.exit_code(policy);
    let decision = match code {
        0 => "pass",
        1 => "fail",
        2 | 3 => "could_not_run",
        _ => "unreliable",
    };
    let count = |gate: Gate| {
        let gating = report.experiments.iter();
        let gating = gating.filter(|entry| !entry.erratic && entry.gate == gate);
        gating.count()
    };
    let experiments = report.experiments.iter();
    let experiments = experiments.map(|entry| experiment(entry, secrets));
    let problems = report.problems.iter();
    let problems = problems.map(|problem| problem.masked(secrets).line());
    let value = object!({
        "schema": DECISION_SCHEMA,
        "decision": decision,
        "exit_code": code,
        "title": secrets.text(&report.title),
        "baseline": secrets.text(&report.baseline),
        "comparison": secrets.text(&report.comparison),
        "counts": {
            "held": count(Gate::Held),
            "regressed": count(Gate::Regressed),
            "check_failed": count(Gate::CheckFailed),
            "invalid": count(Gate::Invalid),
            "inconclusive": count(Gate::Inconclusive),
        },
        "experiments": experiments.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "command": secrets.text(&report.command),
        "seed": report.seed,
        "version": report.version,
        "results_folder": secrets.text(&report.results_folder),
    });
    escape::json(&format!("{value:#}\n"))
}

fn experiment(entry: &ExperimentVerdict, secrets: Secrets) -> Value {
    let goal = words::deciding(entry);
    let change = goal.and_then(|goal| goal.change);
    let checks = entry.checks.iter().filter(|check| check.is_broken());
    let checks: Vec<&str> = checks.map(|check| check.name.as_str()).collect();
    let skipped = words::skipped(entry).into_iter();
    let skipped: Vec<String> = skipped.map(|line| secrets.text(&line)).collect();
    object!({
        "name": entry.name,
        "verdict": entry.verdict.name(),
        "gate": entry.gate.name(),
        "erratic": entry.erratic,
        "goal": goal.map(|goal| goal.metric.name()),
        "variant": goal.map(|goal| secrets.text(&goal.comparison)),
        "change_share": change.map(|change| change.estimate),
        "lower_share": change.map(|change| change.lower),
        "upper_share": change.map(|change| change.upper),
        "tolerance_share": goal.map(|goal| goal.tolerance.share()),
        "pairs": goal.map_or(entry.pairs_used, GoalVerdict::headline_pairs),
        "failed_checks": checks,
        "skipped": skipped,
        "text": secrets.text(&sentence(entry)),
    })
}

/// Outcome of a test case.
#[derive(Clone, Debug, Eq, PartialEq)]
enum CaseOutcome {
    Passed,
    Failed(String),
    Broken(String),
    Skipped(String),
}

impl CaseOutcome {
    /// Returns the outcome with the secrets of its text handled.
    fn masked(self, secrets: Secrets) -> Self {
        match self {
            Self::Passed => Self::Passed,
            Self::Failed(text) => Self::Failed(secrets.text(&text)),
            Self::Broken(text) => Self::Broken(secrets.text(&text)),
            Self::Skipped(text) => Self::Skipped(secrets.text(&text)),
        }
    }
}

/// Returns the decision in JUnit's XML: a test case for the primary goal and each check of every experiment. Secrets are
/// handled as in [`decision_json`].
#[must_use]
pub fn junit(report: &SuiteReport, secrets: Secrets) -> String {
    let mut suites = String::new();
    let mut all = [0_usize; 4];
    let problems = report.problems.iter().map(|problem| {
        let name = problem.experiment.as_deref().unwrap_or("suite");
        let outcome = CaseOutcome::Broken(problem.masked(secrets).line());
        (name, vec![("run".to_owned(), outcome)])
    });
    let experiments = report.experiments.iter().map(|entry| {
        let cases = cases(entry).into_iter();
        let cases = cases.map(|(name, outcome)| (secrets.text(&name), outcome.masked(secrets)));
        (entry.name.as_str(), cases.collect::<Vec<_>>())
    });
    for (experiment, cases) in problems.chain(experiments) {
        let counts = counts(&cases);
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
        suites.push_str(&format!(
            "  <testsuite name=\"{}\" {}>\n",
            xml(experiment),
            attributes(counts)
        ));
        for (name, outcome) in &cases {
            suites.push_str(&case(experiment, name, outcome));
        }
        suites.push_str("  </testsuite>\n");
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"stillwell\" {}>\n{suites}</testsuites>\n",
        attributes(all)
    )
}

fn cases(entry: &ExperimentVerdict) -> Vec<(String, CaseOutcome)> {
    let text = words::finding(entry);
    let outcome = match (entry.gate, entry.verdict) {
        _ if entry.erratic => CaseOutcome::Skipped(format!("erratic: {text}")),
        (Gate::Regressed, _) => CaseOutcome::Failed(text),
        (Gate::Invalid, _) | (_, Verdict::Invalid) => CaseOutcome::Broken(text),
        // A regression that was not confirmed, also if a check decides the gate.
        (Gate::Inconclusive, _) | (_, Verdict::Inconclusive | Verdict::Regressed) => {
            CaseOutcome::Skipped(text)
        }
        _ => CaseOutcome::Passed,
    };
    let goal = words::deciding(entry).map_or_else(
        || "no goal".to_owned(),
        |goal| words::goal_name(goal, entry),
    );
    let checks = entry.checks.iter();
    let checks = checks.map(|check| (check.name.clone(), of_check(entry, check)));
    let skipped = entry.skipped.iter().map(|skipped| {
        let goal = words::goal_title(&skipped.metric, entry.work).into_owned();
        (goal, CaseOutcome::Skipped(skipped.obstacle.to_string()))
    });
    let cases = [(goal, outcome)].into_iter().chain(skipped);
    cases.chain(checks).collect()
}

fn of_check(entry: &ExperimentVerdict, check: &CheckVerdict) -> CaseOutcome {
    let text = words::check_line(check);
    match check.is_broken() {
        false => CaseOutcome::Passed,
        true if entry.erratic => CaseOutcome::Skipped(text),
        true => CaseOutcome::Failed(text),
    }
}

/// Returns the numbers of cases, failures, errors and skipped cases.
fn counts(cases: &[(String, CaseOutcome)]) -> [usize; 4] {
    let of = |wanted: fn(&CaseOutcome) -> bool| {
        cases.iter().filter(|(_, outcome)| wanted(outcome)).count()
    };
    [
        cases.len(),
        of(|outcome| matches!(outcome, CaseOutcome::Failed(_))),
        of(|outcome| matches!(outcome, CaseOutcome::Broken(_))),
        of(|outcome| matches!(outcome, CaseOutcome::Skipped(_))),
    ]
}

fn attributes([tests, failures, errors, skipped]: [usize; 4]) -> String {
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

fn case(experiment: &str, name: &str, outcome: &CaseOutcome) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        xml(experiment),
        xml(name)
    );
    let (tag, text) = match outcome {
        CaseOutcome::Passed => return format!("{head}/>\n"),
        CaseOutcome::Failed(text) => ("failure", text),
        CaseOutcome::Broken(text) => ("error", text),
        CaseOutcome::Skipped(text) => ("skipped", text),
    };
    format!(
        "{head}>\n      <{tag} message=\"{}\"/>\n    </testcase>\n",
        xml(text)
    )
}

/// Returns `text` as the value of an attribute, without characters that XML forbids.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if escape::is_steering(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use stillwell_metric::CountingObstacle;
    use stillwell_verdict::SkippedGoal;

    use super::*;
    use crate::SuiteProblem;
    use crate::fixture::{
        equivalent, erratic, failed_check, inconclusive, invalid, of_three, regressed, report,
    };

    fn many() -> SuiteReport {
        report(vec![
            equivalent(),
            regressed(),
            invalid(),
            inconclusive(),
            failed_check(),
            erratic(),
        ])
    }

    #[test]
    fn junit_of_many() {
        insta::assert_snapshot!(junit(&many(), Secrets::Masked));
    }

    #[test]
    fn decision_of_many() {
        insta::assert_snapshot!(decision_json(&many(), GatePolicy::Normal, Secrets::Masked));
    }

    /// Figures of the runs that a target survived are not the answer, where it did not survive others.
    #[test]
    fn a_target_that_fails_more_often_is_named_and_an_error() {
        let mut entry = equivalent();
        entry.gate = Gate::Invalid;
        entry.discards = [("baseline", 1), ("comparison", 4)]
            .map(
                |(variant, target_failures)| stillwell_verdict::ArmDiscards {
                    variant: variant.to_owned(),
                    runs: target_failures,
                    target_failures,
                },
            )
            .to_vec();
        let report = report(vec![entry]);
        let words = "the target of comparison failed in 4 runs, that of baseline in 1";
        let test_cases = junit(&report, Secrets::Masked);
        assert!(test_cases.contains("<error"), "{test_cases}");
        for text in [
            test_cases,
            decision_json(&report, GatePolicy::Normal, Secrets::Masked),
            crate::terminal(&report, crate::Style::default()),
        ] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(words), "{text}");
            assert!(!text.contains("may have missed a rarer one"), "{text}");
        }
    }

    #[test]
    fn a_skipped_goal_is_named_in_every_form() {
        let mut entry = equivalent();
        entry.skipped = vec![SkippedGoal {
            metric: stillwell_plan::GoalMetric::InstructionsPerEvent,
            obstacle: CountingObstacle::NoCounter,
            was_primary: true,
        }];
        let report = report(vec![entry]);
        let reason = "the machine has no instruction counter";
        let line =
            format!("instructions per event skipped: {reason}; CPU per event decides instead");
        let text = decision_json(&report, GatePolicy::Normal, Secrets::Masked);
        let value: Value = serde_json::from_str(&text).unwrap();
        let skipped = value["experiments"][0]["skipped"][0].as_str().unwrap();
        assert!(skipped.starts_with(&line), "{skipped}");
        let test_cases = junit(&report, Secrets::Masked);
        assert!(test_cases.contains(&format!("<skipped message=\"{reason}\"/>")));
        let value: Value = serde_json::from_str(&crate::json(&report)).unwrap();
        let skipped = &value["experiments"][0]["skipped"][0];
        assert_eq!(skipped["metric"], "instructions_per_event");
        assert_eq!(
            (&skipped["code"], &skipped["reason"]),
            (&"no_counter".into(), &reason.into())
        );
        for text in [
            crate::terminal(&report, crate::Style::default()),
            crate::markdown(&report),
        ] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn a_regression_that_was_not_confirmed_is_a_skipped_test_case() {
        for gate in [Gate::Inconclusive, Gate::CheckFailed] {
            let mut entry = regressed();
            entry.gate = gate;
            let (_, outcome) = cases(&entry).remove(0);
            let text = words::finding(&entry);
            assert_eq!(outcome, CaseOutcome::Skipped(text));
        }
    }

    #[test]
    fn a_decision_names_the_variant_that_its_change_is_of() {
        let mut empty = equivalent();
        empty.goals.clear();
        for (entry, variant) in [
            (equivalent(), Some("comparison")),
            (of_three(), Some("second")),
            (empty, None),
        ] {
            let text = decision_json(&report(vec![entry]), GatePolicy::Normal, Secrets::Masked);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["experiments"][0]["variant"].as_str(), variant);
        }
    }

    #[test]
    fn a_decision_is_its_exit_code() {
        for (experiments, policy, decision, code) in [
            (vec![equivalent()], GatePolicy::Normal, "pass", 0),
            (vec![inconclusive()], GatePolicy::Normal, "pass", 0),
            (vec![inconclusive()], GatePolicy::Strict, "unreliable", 4),
            (vec![invalid(), regressed()], GatePolicy::Normal, "fail", 1),
            (vec![erratic()], GatePolicy::Strict, "pass", 0),
        ] {
            let text = decision_json(&report(experiments), policy, Secrets::Masked);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["decision"], decision);
            assert_eq!(value["exit_code"], code);
        }
    }

    #[test]
    fn a_problem_is_in_the_decision_and_its_test_cases() {
        let with = |exit_code| SuiteReport {
            problems: vec![SuiteProblem {
                experiment: Some("case".to_owned()),
                reason: "port 9000 is taken\nthe end of a log".to_owned(),
                exit_code,
            }],
            ..report(vec![equivalent()])
        };
        for (code, decision) in [(3, "could_not_run"), (4, "unreliable")] {
            let text = decision_json(&with(code), GatePolicy::Normal, Secrets::Masked);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["decision"], decision);
            assert_eq!(value["exit_code"], code);
            assert_eq!(value["problems"][0], "case: port 9000 is taken");
        }
        let regressed = SuiteReport {
            experiments: vec![regressed()],
            ..with(3)
        };
        assert_eq!(regressed.exit_code(GatePolicy::Normal), 1);
        let test_cases = junit(&with(3), Secrets::Masked);
        assert!(test_cases.contains("<error message=\"case: port 9000 is taken\"/>"));
        let findings = gate_findings(&with(3), Secrets::Masked);
        assert_eq!(findings[0].experiment, "case");
        assert_eq!(findings[0].text, "port 9000 is taken");
    }

    /// Masked behind its escapes, a quoted header ended the string of the command.
    #[test]
    fn a_decision_is_json_without_the_secrets_of_its_texts() {
        let command = |secret: &str| {
            format!("stillwell run --baseline 'cmd:app -H \"Authorization: {secret}\"' suite")
        };
        for (secrets, typed, expected) in [
            (Secrets::Masked, "Bearer abc", "***"),
            (Secrets::Masked, "***", "***"),
            (Secrets::Kept, "Bearer abc", "Bearer abc"),
        ] {
            let report = SuiteReport {
                command: command(typed),
                ..report(vec![regressed()])
            };
            let text = decision_json(&report, GatePolicy::Normal, secrets);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["command"], command(expected));
        }
    }

    #[test]
    fn an_experiment_named_like_a_secret_keeps_its_problem() {
        let report = SuiteReport {
            problems: vec![SuiteProblem {
                experiment: Some("auth-service".to_owned()),
                reason: "port 9000 is taken by app DB_PASSWORD=\"abc\" x".to_owned(),
                exit_code: 3,
            }],
            ..report(vec![equivalent()])
        };
        let reason = "port 9000 is taken by app DB_PASSWORD=\"***\" x";
        let findings = gate_findings(&report, Secrets::Masked);
        assert_eq!(findings[0].text, reason);
        let line = format!("auth-service: {reason}");
        let text = decision_json(&report, GatePolicy::Normal, Secrets::Masked);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["problems"][0], line);
        let test_cases = junit(&report, Secrets::Masked);
        let message = format!("<error message=\"{}\"/>", xml(&line));
        assert!(test_cases.contains(&message), "{test_cases}");
    }

    #[test]
    fn a_decision_has_the_keys_of_its_schema() {
        let text = decision_json(&many(), GatePolicy::Normal, Secrets::Masked);
        let value: Value = serde_json::from_str(&text).unwrap();
        let schema: Value = serde_json::from_str(DECISION_JSON_SCHEMA).unwrap();
        let keys = |value: &Value| {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&value), keys(&schema["properties"]));
        let counts = &schema["properties"]["counts"]["properties"];
        assert_eq!(keys(&value["counts"]), keys(counts));
        let experiment = &schema["$defs"]["experiment"]["properties"];
        assert_eq!(keys(&value["experiments"][0]), keys(experiment));
        for (_, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{property}");
        }
    }

    #[test]
    fn findings_are_what_the_exit_code_is_about() {
        let findings = gate_findings(&many(), Secrets::Masked);
        let gates: Vec<Gate> = findings.iter().filter_map(|entry| entry.gate).collect();
        let expected = [
            Gate::Regressed,
            Gate::CheckFailed,
            Gate::Invalid,
            Gate::Inconclusive,
        ];
        assert_eq!(gates, expected);
        assert!(gate_findings(&report(vec![equivalent(), erratic()]), Secrets::Masked).is_empty());
    }

    #[test]
    fn xml_has_no_character_that_it_forbids() {
        assert_eq!(
            xml("a<b>&\"\u{0}\n\u{ffff}"),
            "a&lt;b&gt;&amp;&quot;  \u{fffd}"
        );
    }
}
