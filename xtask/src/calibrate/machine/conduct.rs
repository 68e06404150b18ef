//! Carries out one experiment, in a process of its own, and reads what it says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::ledger::Entry;
use super::trial::{LOAD_SHARE, Trial};

/// What experiments are run with.
#[derive(Debug)]
pub(super) struct Rig {
    /// The release binary.
    pub(super) stillwell: PathBuf,
    /// Words before each command.
    pub(super) wrap: Vec<String>,
}

/// Builds the release binary of the repository at `root`, and tells where it is.
pub(super) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--package",
            "stillwell",
        ])
        .current_dir(root)
        .status()
        .context("start `cargo build`")?;
    if !built.success() {
        bail!("`cargo build --release` failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/stillwell"))
}

/// Runs `trial` to its end. What it found is in the entry, `invalid` included.
///
/// # Errors
/// When it did not run, or a reference measured nothing.
pub(super) fn carry_out(trial: &Trial, rig: &Rig) -> anyhow::Result<Entry> {
    let folder = Folder::create(trial)?;
    let experiment = folder.0.join("lab").join(trial.kind.name());
    std::fs::create_dir_all(&experiment).context("make the experiment's folder")?;
    std::fs::write(experiment.join("experiment.yaml"), trial.experiment()?)
        .context("write the experiment")?;
    let words = command(trial, rig, &folder.0)?;
    let [program, arguments @ ..] = words.as_slice() else {
        bail!("there is no command");
    };
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("start {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", output.status, said.trim());
    }
    let report = serde_json::from_slice(&output.stdout).context("read the report")?;
    let entry = entry(trial, report)?;
    if trial.kind.is_reference() && entry.estimate_share.is_none() {
        bail!("the reference is {}: {:?}", entry.verdict, entry.warnings);
    }
    Ok(entry)
}

/// What stands before `stillwell` runs under the wrap, so that the load rests
/// while something else has its turn.
fn command(trial: &Trial, rig: &Rig, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut words = rig.wrap.clone();
    if trial.is_loaded() {
        let own = std::env::current_exe().context("find this program")?;
        words.push(text(&own)?);
        words.extend(["calibrate", "--beside-load", LOAD_SHARE, "--"].map(str::to_owned));
    }
    words.extend([
        text(&rig.stillwell)?,
        "run".to_owned(),
        text(&folder.join("lab"))?,
    ]);
    words.extend(["--quiet", "--exit-zero", "--format", "json", "--results"].map(str::to_owned));
    words.push(text(&folder.join("results"))?);
    Ok(words)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str();
    let text = text.with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}

/// A folder of this process's own, gone with this value.
struct Folder(PathBuf);

impl Folder {
    fn create(trial: &Trial) -> anyhow::Result<Self> {
        let name = format!(
            "stillwell-calibrate-{}-{}-{}",
            std::process::id(),
            trial.kind.name(),
            trial.number
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays of it is in nobody's way.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The parts of a report for programs that the ledger keeps.
#[derive(Debug, Deserialize)]
struct Report {
    experiments: Vec<Experiment>,
    version: String,
    host: BTreeMap<String, String>,
    elapsed_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Experiment {
    conduct: Conduct,
    goals: Vec<Goal>,
    pairs_discarded: u32,
    warnings: Vec<UnusedRun>,
    measure_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Conduct {
    stopped: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Goal {
    verdict: String,
    change: Option<Change>,
    confirmation: Option<Confirmation>,
    pair_deviation: Option<f64>,
    pairs: u32,
}

#[derive(Debug, Deserialize)]
struct Change {
    estimate_share: Option<f64>,
    lower_share: Option<f64>,
    /// Missing where it is infinite.
    upper_share: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Confirmation {
    found: String,
    pairs: u32,
    change: Option<Change>,
}

#[derive(Debug, Deserialize)]
struct UnusedRun {
    texts: Vec<String>,
}

fn entry(trial: &Trial, report: Report) -> anyhow::Result<Entry> {
    let mut experiments = report.experiments.into_iter();
    let experiment = experiments.next().context("the report has no experiment")?;
    let mut goals = experiment.goals.into_iter();
    let goal = goals.next().context("the report has no goal")?;
    let confirmation = goal.confirmation.as_ref();
    let change = goal.change.as_ref();
    let part = |told: fn(&Change) -> Option<f64>| change.and_then(told);
    let (lower, upper) = (
        part(|change| change.lower_share),
        part(|change| change.upper_share),
    );
    let covered = match (trial.truth_share, lower, upper) {
        (Some(truth), Some(lower), Some(upper)) => Some(lower <= truth && truth <= upper),
        _ => None,
    };
    let mut warnings: Vec<String> = experiment
        .warnings
        .into_iter()
        .flat_map(|it| it.texts)
        .collect();
    warnings.sort_unstable();
    warnings.dedup();
    Ok(Entry {
        kind: trial.kind,
        number: trial.number,
        seed: trial.seed(),
        goal: trial.goal().to_owned(),
        tolerance_share: trial.tolerance_share(),
        design: trial.design().to_owned(),
        measure_seconds: seconds(experiment.measure_ns),
        rounds: trial.rounds(),
        rounds_more: trial.rounds_more,
        load: trial.load(),
        found: confirmation.map_or_else(|| goal.verdict.clone(), |it| it.found.clone()),
        stopped: experiment.conduct.stopped,
        pairs: goal.pairs,
        pairs_confirming: confirmation.map_or(0, |it| it.pairs),
        pairs_discarded: experiment.pairs_discarded,
        estimate_share: part(|change| change.estimate_share),
        lower_share: lower,
        upper_share: upper,
        pair_deviation: goal.pair_deviation,
        confirming_share: confirmation
            .and_then(|it| it.change.as_ref())
            .and_then(|change| change.estimate_share),
        truth_share: trial.truth_share,
        covered,
        verdict: goal.verdict,
        seconds: seconds(report.elapsed_ns),
        warnings,
        version: report.version,
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        cpu_model: report.host.get("cpu model").cloned(),
        kernel: report.host.get("kernel").cloned(),
    })
}

/// In tenths: nobody needs more of it in a ledger.
fn seconds(nanos: u64) -> f64 {
    let tenths = u32::try_from(nanos / 100_000_000).unwrap_or(u32::MAX);
    f64::from(tenths) / 10.0
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Kind;
    use super::*;

    fn trial() -> Trial {
        Trial {
            kind: Kind::CpuPlus1,
            number: 3,
            rounds_more: 21,
            truth_share: Some(0.0099),
        }
    }

    fn report(goal: &str) -> Report {
        let text = format!(
            r#"{{"version": "0.1.0", "elapsed_ns": 61234567890, "host": {{"kernel": "6.1"}},
                "experiments": [{{"conduct": {{"stopped": "confirmed"}}, "goals": [{goal}],
                "pairs_discarded": 1, "measure_ns": 4000000000,
                "warnings": [{{"texts": ["b", "a"]}}, {{"texts": ["a"]}}]}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_report_becomes_a_line() {
        let goal = r#"{"verdict": "inconclusive", "pair_deviation": 0.004, "pairs": 8,
            "change": {"estimate_share": 0.011, "lower_share": 0.008, "upper_share": 0.014},
            "confirmation": {"found": "regressed", "pairs": 8, "change": {"estimate_share": 0.009}}}"#;
        let entry = entry(&trial(), report(goal)).unwrap();
        assert_eq!(
            (entry.found.as_str(), entry.verdict.as_str()),
            ("regressed", "inconclusive")
        );
        assert!(entry.was_flagged() && !entry.is_flagged());
        assert_eq!(entry.covered, Some(true));
        assert_eq!(entry.confirming_share, Some(0.009));
        assert!((entry.seconds - 61.2).abs() < 1e-9);
        assert_eq!(entry.warnings, ["a", "b"]);
        assert_eq!((entry.pairs, entry.pairs_confirming), (8, 8));
    }

    #[test]
    fn what_was_not_measured_covers_nothing() {
        let goal = r#"{"verdict": "invalid", "pair_deviation": null, "pairs": 0, "change": null,
            "confirmation": null}"#;
        let entry = entry(&trial(), report(goal)).unwrap();
        assert_eq!(entry.covered, None);
        assert_eq!(entry.found, "invalid");
    }

    #[test]
    fn load_stands_behind_the_wrap() {
        let rig = Rig {
            stillwell: PathBuf::from("bin/stillwell"),
            wrap: vec!["nice".to_owned()],
        };
        let loaded = Trial {
            kind: Kind::AaLoaded,
            ..trial()
        };
        let words = command(&loaded, &rig, Path::new("f")).unwrap();
        assert_eq!(words[0], "nice");
        assert_eq!(words[2..6], ["calibrate", "--beside-load", "15%", "--"]);
        assert_eq!(words[6..9], ["bin/stillwell", "run", "f/lab"]);
        let words = command(&trial(), &rig, Path::new("f")).unwrap();
        assert_eq!(words[1..3], ["bin/stillwell", "run"]);
    }
}
