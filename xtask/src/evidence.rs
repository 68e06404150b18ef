//! `cargo xtask evidence`: verdicts of the quickstart, and of two equal versions, while other
//! programs use the machine. Each trial is a line of a ledger, and the table is made of it alone.

mod background;
mod table;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use background::Background;

/// The experiment of all trials.
const EXPERIMENT: &str = "examples/quickstart";

/// Comparison of a trial.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compared {
    /// The quickstart, whose comparison does more work: `regressed` is right.
    Quickstart,
    /// The same version twice.
    Equal,
}

/// Other programs that run during a trial.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackgroundLoad {
    /// None.
    Nothing,
    /// A busy loop.
    OneLoop,
    /// Two busy loops.
    TwoLoops,
    /// `cargo build -j2` of this workspace, again and again.
    CargoBuild,
}

const LOADS: [BackgroundLoad; 4] = [
    BackgroundLoad::Nothing,
    BackgroundLoad::OneLoop,
    BackgroundLoad::TwoLoops,
    BackgroundLoad::CargoBuild,
];

/// A finished trial: a line of the ledger.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Trial {
    compared: Compared,
    background: BackgroundLoad,
    /// The verdict; `none` if there was no report.
    verdict: String,
    /// True if the report says why there is no decision.
    is_explained: bool,
    exit_code: Option<i32>,
    /// Time from the command to its end.
    seconds: f64,
    /// Version of the program.
    version: String,
    /// CPUs of the machine.
    cpus: usize,
}

/// Number of trials of each load: of the quickstart, and twice as many of equal versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialCount {
    pub(crate) times: usize,
    /// No trial begins after this time.
    pub(crate) at_most: Duration,
}

/// Makes the trials that the ledger lacks, and prints the table.
#[expect(
    clippy::disallowed_methods,
    reason = "no run whose clock it could share"
)]
pub(crate) fn collect(
    root: &Path,
    program: &Path,
    path: &Path,
    trial_count: TrialCount,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut trials = if path.exists() {
        read(path)?
    } else {
        Vec::new()
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let mut file = file.with_context(|| format!("open {}", path.display()))?;
    while begin.elapsed() < trial_count.at_most {
        let Some((compared, background)) = next(&trials, trial_count.times) else {
            break;
        };
        let trial = attempt(root, program, compared, background)?;
        append(&mut file, &trial).with_context(|| format!("write {}", path.display()))?;
        println!(
            "{compared:?} {background:?}: {} in {:.0} s",
            trial.verdict, trial.seconds
        );
        trials.push(trial);
    }
    print!("{}", table::markdown(&trials));
    Ok(())
}

/// Prints the table of a ledger.
pub(crate) fn print_table(path: &Path) -> anyhow::Result<()> {
    print!("{}", table::markdown(&read(path)?));
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<Trial>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let lines = text.lines().enumerate();
    let trials = lines.map(|(index, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}, line {}", path.display(), index + 1))
    });
    trials.collect()
}

fn append(file: &mut File, trial: &Trial) -> anyhow::Result<()> {
    let line = format!("{}\n", serde_json::to_string(trial)?);
    file.write_all(line.as_bytes())?;
    Ok(file.sync_data()?)
}

/// Returns the kind of trial that is farthest from its number; `None` if all are complete.
fn next(trials: &[Trial], times: usize) -> Option<(Compared, BackgroundLoad)> {
    let kinds = [(Compared::Equal, 2 * times), (Compared::Quickstart, times)];
    let kinds = LOADS.into_iter().flat_map(|background| {
        kinds.map(|(compared, wanted)| {
            let made = trials
                .iter()
                .filter(|trial| (trial.compared, trial.background) == (compared, background));
            (compared, background, made.count(), wanted)
        })
    });
    kinds
        .filter(|(_, _, made, wanted)| made < wanted)
        .min_by_key(|(_, _, made, wanted)| made * 2 * times / wanted)
        .map(|(compared, background, ..)| (compared, background))
}

#[expect(
    clippy::disallowed_methods,
    reason = "no run whose clock it could share"
)]
fn attempt(
    root: &Path,
    program: &Path,
    compared: Compared,
    background: BackgroundLoad,
) -> anyhow::Result<Trial> {
    let temporary = std::env::temp_dir();
    let results = temporary.join(format!("stillwell-evidence-{}", std::process::id()));
    let mut command = Command::new(program);
    command.current_dir(root).arg("run").arg(EXPERIMENT);
    if compared == Compared::Equal {
        command.args(["--baseline", "same", "--comparison", "same"]);
    }
    command
        .args(["--format", "json", "--results"])
        .arg(&results);
    let mut background_programs = Background::start(background, root)?;
    let begin = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let seconds = begin.elapsed().as_secs_f64();
    let was_beside = background_programs.is_running()?;
    drop(background_programs);
    // What is left of a run that failed is of no use to the next.
    drop(std::fs::remove_dir_all(&results));
    if !was_beside {
        bail!("the programs beside the trial ended before it: {background:?}");
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(trial_of(
        &report,
        compared,
        background,
        output.status.code(),
        seconds,
    ))
}

/// Returns the trial of a report; of a report that is not there too.
fn trial_of(
    report: &Value,
    compared: Compared,
    background: BackgroundLoad,
    exit_code: Option<i32>,
    seconds: f64,
) -> Trial {
    let experiment = &report["experiments"][0];
    let verdict = experiment["verdict"].as_str().unwrap_or("none");
    let primary = experiment["goals"].as_array().and_then(|goals| {
        let mut goals = goals.iter();
        goals.find(|goal| goal["primary"] == true)
    });
    let is_explained = primary.is_some_and(|goal| {
        goal["reason"].is_string()
            || (verdict != "invalid" && goal["smallest_visible_share"].is_number())
    });
    Trial {
        compared,
        background,
        verdict: verdict.to_owned(),
        is_explained,
        exit_code,
        seconds,
        version: report["version"].as_str().unwrap_or("unknown").to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn example(compared: Compared, background: BackgroundLoad, verdict: &str) -> Trial {
        Trial {
            compared,
            background,
            verdict: verdict.to_owned(),
            is_explained: true,
            exit_code: Some(0),
            seconds: 42.0,
            version: "0.1.0".to_owned(),
            cpus: 2,
        }
    }

    #[test]
    fn kinds_advance_together_until_each_has_its_number() {
        let mut trials = Vec::new();
        while let Some((compared, background)) = next(&trials, 3) {
            trials.push(example(compared, background, "equivalent"));
            let counts = LOADS.map(|load| {
                let of = |compared| {
                    let same = trials.iter();
                    same.filter(|trial| (trial.compared, trial.background) == (compared, load))
                        .count()
                };
                (of(Compared::Equal), of(Compared::Quickstart))
            });
            for (equal, quickstart) in counts {
                assert!(equal.abs_diff(2 * quickstart) <= 2, "{counts:?}");
                assert!(equal <= 6 && quickstart <= 3);
            }
        }
        assert_eq!(trials.len(), 4 * (3 + 6));
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("stillwell-ledger-{}", std::process::id()));
        let trials = [
            example(Compared::Equal, BackgroundLoad::TwoLoops, "equivalent"),
            example(
                Compared::Quickstart,
                BackgroundLoad::CargoBuild,
                "regressed",
            ),
        ];
        let mut file = File::create(&path).unwrap();
        for trial in &trials {
            append(&mut file, trial).unwrap();
        }
        let ledger = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ledger, trials);
    }

    #[test]
    fn a_trial_is_explained_by_the_reason_or_the_visible_change_of_its_primary_goal() {
        let of = |report: &Value| {
            let (compared, load) = (Compared::Quickstart, BackgroundLoad::Nothing);
            let trial = trial_of(report, compared, load, Some(4), 1.0);
            (trial.verdict, trial.is_explained)
        };
        let report = |verdict: &str, reason: Value, visible: Value| {
            json!({ "version": "0.1.0", "experiments": [{ "verdict": verdict, "goals": [
                { "primary": false, "reason": "other", "smallest_visible_share": 0.1 },
                { "primary": true, "reason": reason, "smallest_visible_share": visible },
            ]}]})
        };
        for (verdict, reason, visible, is_explained) in [
            ("invalid", json!("2 valid pairs"), Value::Null, true),
            ("invalid", Value::Null, json!(0.1), false),
            ("inconclusive", Value::Null, json!(0.1), true),
            ("inconclusive", Value::Null, Value::Null, false),
        ] {
            let trial = of(&report(verdict, reason, visible));
            assert_eq!(trial, (verdict.to_owned(), is_explained));
        }
        assert_eq!(of(&Value::Null), ("none".to_owned(), false));
    }
}
