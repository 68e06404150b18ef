//! Runs in reports: in the data of an HTML page, or in the JSON form of a suite's report.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;
use stillwell_capture::{RunIdentity, RunOutcome, RunStage};
use stillwell_metric::CountingObstacle;
use stillwell_plan::goal::Direction;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_report::REPORT_SCHEMA;
use stillwell_units::{Nanos, RunId, Tolerance};
use stillwell_verdict::across::{PairKey, SavedRun};
use stillwell_verdict::{Measured, RunFigures, RunNote, RunSummary, RunWarning, SUMMARY_SCHEMA};

/// Element of a page before its data.
const DATA_START: &str = "id=\"stillwell-data\">";

/// Returns true for the first bytes of a page of HTML.
pub(crate) fn is_page(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let has = |head: &[u8]| {
        let first = start.get(..head.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(head))
    };
    has(b"<!doctype html") || has(b"<html")
}

/// Returns the data of a report's page.
///
/// # Errors
/// The page is no report of Stillwell.
pub(crate) fn data_of(page: &str) -> anyhow::Result<&str> {
    let data = page.split_once(DATA_START).map(|(_, rest)| rest);
    let data = data.and_then(|rest| rest.split_once("</script>"));
    let (data, _) = data.context("the page has no data of a Stillwell report")?;
    Ok(data)
}

/// The runs of a report, and the number of those that confirmed what a search had found.
#[derive(Debug)]
pub(super) struct ReportedRuns {
    pub(super) runs: Vec<SavedRun>,
    pub(super) confirmations: usize,
}

/// Returns the runs of a suite's report at `path`; `None` for other data.
///
/// # Errors
/// The report has no runs, or something else than a report has its name.
pub(super) fn reported_runs(data: &str, path: &Path) -> anyhow::Result<Option<ReportedRuns>> {
    let Ok(report) = serde_json::from_str::<Value>(data) else {
        return Ok(None);
    };
    if report["schema"] != REPORT_SCHEMA {
        return Ok(None);
    }
    let mut reported = ReportedRuns {
        runs: Vec::new(),
        confirmations: 0,
    };
    for experiment in array(&report["experiments"]) {
        add_runs(experiment, path, &mut reported)
            .with_context(|| format!("read the runs of experiment {}", experiment["name"]))?;
    }
    ensure!(
        !reported.runs.is_empty(),
        "the report has no numbers of single runs: make it again with `stillwell report`"
    );
    Ok(Some(reported))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("expected text")
}

fn add_runs(experiment: &Value, path: &Path, reported: &mut ReportedRuns) -> anyhow::Result<()> {
    let name = text(&experiment["name"])?;
    let variants = array(&experiment["variants"]).iter().map(text);
    let variants: Vec<&str> = variants.collect::<anyhow::Result<_>>()?;
    let goals = goals(&experiment["goals"])?;
    let metrics = array(&experiment["runs"]["metrics"]).iter();
    let metrics = metrics.map(|metric| Ok(text(metric)?.parse::<GoalMetric>()?));
    let metrics: Vec<GoalMetric> = metrics.collect::<anyhow::Result<_>>()?;
    let (notes, light_load) = (obstacles(experiment), light_load(experiment));
    for row in array(&experiment["runs"]["rows"]) {
        let stage: RunStage = serde_json::from_value(row[0].clone())?;
        if stage == RunStage::Confirm {
            reported.confirmations += 1;
            continue;
        }
        let pair = u32::try_from(row[1].as_u64().context("expected the number of a pair")?)?;
        let identity = RunIdentity {
            experiment: name.to_owned(),
            variant: text(&row[2])?.to_owned(),
            stage,
            pair,
            position: 0,
        };
        let values = array(&row[3]);
        ensure!(
            values.len() == metrics.len(),
            "a row has {} values",
            values.len()
        );
        let mut summary = summary(identity, metrics.iter().zip(values));
        summary.notes.clone_from(&notes);
        summary.figures.target_cpu_share = light_load;
        summary.environment = differing_facts(experiment, row);
        let mut saved = SavedRun::new(summary);
        // A report names only the facts that must not differ under its design.
        saved.design = Some(DesignPlan::Paired);
        saved.pair = (pair > 0).then(|| PairKey {
            suite: path.to_path_buf(),
            experiment: name.to_owned(),
            pair,
        });
        saved.goals.clone_from(&goals);
        saved.variants = variants
            .iter()
            .map(|variant| (*variant).to_owned())
            .collect();
        saved.looked_at = array(&experiment["conduct"]["looks"]).len() != 1;
        reported.runs.push(saved);
    }
    Ok(())
}

/// Returns the notes of runs that could not count instructions.
fn obstacles(experiment: &Value) -> Vec<RunNote> {
    let skipped = array(&experiment["skipped"]).iter();
    let notes = skipped.map(|goal| {
        let obstacle = serde_json::from_value(goal["code"].clone());
        RunNote::InstructionsNotCounted {
            // Some have figures beside their code, which a report has in its text alone.
            obstacle: obstacle.unwrap_or(CountingObstacle::NoCounter),
        }
    });
    notes.collect()
}

/// Returns the use of a core by the target, if the report says that it was light. It does not say of which variant.
fn light_load(experiment: &Value) -> Option<f64> {
    let mut notes = array(&experiment["notes"]).iter();
    notes.find_map(|note| match serde_json::from_value(note["note"].clone()) {
        Ok(RunNote::LightLoad { cpu_share }) => Some(cpu_share),
        _ => None,
    })
}

/// Returns the facts of the environment of the run in `row` that differ within its pair: for them the report
/// discards the pair.
fn differing_facts(experiment: &Value, row: &Value) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let is_of_pair = |entry: &&Value| entry["stage"] == row[0] && entry["pair"] == row[1];
    for entry in array(&experiment["warnings"]).iter().filter(is_of_pair) {
        for warning in array(&entry["warnings"]) {
            let Ok(RunWarning::EnvironmentDiffers {
                fact,
                baseline,
                here,
            }) = serde_json::from_value(warning.clone())
            else {
                continue;
            };
            if entry["variant"] == row[2] {
                facts.insert(fact, here);
            } else {
                facts.entry(fact).or_insert(baseline);
            }
        }
    }
    facts
}

/// Returns the goals, each once: those of several comparisons are the same.
fn goals(value: &Value) -> anyhow::Result<Vec<GoalPlan>> {
    let mut goals: Vec<GoalPlan> = Vec::new();
    for goal in array(value) {
        let metric: GoalMetric = text(&goal["metric"])?.parse()?;
        if goals.iter().any(|known| known.metric == metric) {
            continue;
        }
        let mut plan = GoalPlan::new(metric);
        plan.direction = match text(&goal["better"])? {
            "higher" => Direction::HigherIsBetter,
            _ => Direction::LowerIsBetter,
        };
        let share = goal["tolerance_share"]
            .as_f64()
            .context("expected a tolerance")?;
        plan.tolerance = Tolerance::try_new(share)?;
        goals.push(plan);
    }
    Ok(goals)
}

/// Returns a completed run of which only these numbers are known.
fn summary<'v>(
    identity: RunIdentity,
    values: impl Iterator<Item = (&'v GoalMetric, &'v Value)>,
) -> RunSummary {
    let values = values.map(|(metric, value)| {
        let value = value.as_f64().filter(|value| value.is_finite());
        let measured = value.map_or_else(
            || Measured::Missing {
                reason: "it was not measured, or is unreliable".to_owned(),
            },
            Measured::Value,
        );
        (metric.clone(), measured)
    });
    let values: BTreeMap<_, _> = values.collect();
    // A series is named in short, too.
    let series = values.iter().filter_map(|(metric, value)| match value {
        Measured::Value(value) => match metric {
            GoalMetric::Series(goal) => Some((goal.to_string(), *value)),
            _ => None,
        },
        Measured::Missing { .. } => None,
    });
    let series = series.collect();
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: RunId::from_bytes([0; 16]),
        target: String::new(),
        identity: Some(identity),
        outcome: RunOutcome::Completed,
        measured: Nanos::ZERO,
        warmup: Nanos::ZERO,
        length: Nanos::ZERO,
        values,
        warnings: Vec::new(),
        notes: Vec::new(),
        figures: RunFigures::default(),
        checks: Vec::new(),
        series,
        series_left_out: 0,
        environment: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rows: &str) -> String {
        format!(
            r#"{{"schema":"{REPORT_SCHEMA}","experiments":[{{"name":"relay","variants":["a","b"],
            "conduct":{{"looks":[4,6]}},
            "goals":[{{"metric":"cpu_per_event","better":"lower","tolerance_share":0.05}}],
            "runs":{{"metrics":["cpu_per_event","memory"],"rows":{rows}}}}}]}}"#
        )
    }

    #[test]
    fn a_report_has_the_numbers_of_its_runs() {
        let rows = r#"[["search",1,"a",[1.5,null]],["confirm",1,"a",[2.0,3.0]]]"#;
        let read = reported_runs(&report(rows), Path::new("a.html"))
            .unwrap()
            .unwrap();
        assert_eq!((read.runs.len(), read.confirmations), (1, 1));
        let run = &read.runs[0];
        assert!((run.number("cpu_per_event").unwrap().value - 1.5).abs() < 1e-12);
        assert!(run.number("memory").is_err());
        assert_eq!(run.variants, ["a", "b"]);
        assert_eq!(run.usual_names(), ["cpu_per_event"]);
        assert!(run.looked_at && run.pair.is_some());
    }

    /// A regression of such a primary goal had no verdict.
    #[test]
    fn runs_of_a_report_have_goals_of_series_routes_and_status_codes() {
        for (name, value) in [
            ("series:queue:peak", 12.5),
            ("status_503", 0.25),
            ("latency_p99['GET /']", 7.5),
        ] {
            let rows = format!(r#"[["search",1,"a",[{value},null]]]"#);
            let text = report(&rows).replace("cpu_per_event", name);
            let read = reported_runs(&text, Path::new("a.html")).unwrap().unwrap();
            let run = &read.runs[0];
            assert_eq!(run.usual_names(), [name]);
            assert!((run.number(name).unwrap().value - value).abs() < 1e-12);
            let short = name.strip_prefix("series:").unwrap_or(name);
            assert!((run.number(short).unwrap().value - value).abs() < 1e-12);
        }
    }

    /// Without them a report had other verdicts than the results that it was made from.
    #[test]
    fn runs_of_a_report_have_a_light_load_and_missing_counters() {
        let rows = r#"[["search",1,"a",[1.5,2.0]]]"#;
        let seen = r#""notes":[{"note":{"light_load":{"cpu_share":0.1}}}],
            "skipped":[{"metric":"instructions_per_event","code":"no_kernel_support"}],"goals""#;
        for (text, share, obstacle) in [
            (report(rows), None, None),
            (
                report(rows).replace("\"goals\"", seen),
                Some(0.1),
                Some(CountingObstacle::NoKernelSupport),
            ),
        ] {
            let read = reported_runs(&text, Path::new("a.html")).unwrap().unwrap();
            let summary = &read.runs[0].summary;
            assert_eq!(summary.figures.target_cpu_share, share);
            let note = obstacle.map(|obstacle| RunNote::InstructionsNotCounted { obstacle });
            assert_eq!(summary.notes, Vec::from_iter(note));
        }
    }

    #[test]
    fn a_report_without_runs_is_refused_and_other_data_are_not_a_report() {
        let read = |text: &str| reported_runs(text, Path::new("a.html"));
        assert!(read(&report("[]")).is_err());
        assert!(read(&report(r#"[["search",1,"a",[1.5]]]"#)).is_err());
        assert!(read(r#"{"schema":"other"}"#).unwrap().is_none());
        assert!(read("no JSON").unwrap().is_none());
    }

    #[test]
    fn the_data_of_a_page_are_between_the_tags() {
        let page =
            "<!DOCTYPE html><script type=\"application/json\" id=\"stillwell-data\">{}</script>";
        assert!(is_page(page.as_bytes()) && is_page(b"  <!doctype HTML>") && !is_page(b"{}"));
        assert_eq!(data_of(page).unwrap(), "{}");
        assert!(data_of("<html></html>").is_err());
    }
}
