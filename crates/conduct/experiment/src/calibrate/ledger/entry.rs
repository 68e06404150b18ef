//! The ledger: one JSON line for each finished experiment, only ever added to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::LedgerError;

/// The purpose of an experiment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Many pairs with some rounds more: what they cost.
    ReferenceCpu,
    /// Many rounds more at full speed: what a round takes away.
    ReferenceThroughput,
    /// Nothing differs.
    AaQuiet,
    /// Nothing differs, and the host is busy with something else.
    AaLoaded,
    /// 1 % more CPU per event.
    CpuPlus1,
    /// 5 % less throughput.
    ThroughputMinus5,
    /// Nothing differs, by several goals of the same runs.
    AaGoalsQuiet,
    /// The same with something else on the host.
    AaGoalsLoaded,
    /// 1 % more CPU per event with something else on the host.
    CpuPlus1Loaded,
    /// 3 % less throughput.
    ThroughputMinus3,
    /// The same with something else on the host.
    ThroughputMinus3Loaded,
}

impl Kind {
    /// The word in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ReferenceCpu => "reference_cpu",
            Self::ReferenceThroughput => "reference_throughput",
            Self::AaQuiet => "aa_quiet",
            Self::AaLoaded => "aa_loaded",
            Self::CpuPlus1 => "cpu_plus_1",
            Self::ThroughputMinus5 => "throughput_minus_5",
            Self::AaGoalsQuiet => "aa_goals_quiet",
            Self::AaGoalsLoaded => "aa_goals_loaded",
            Self::CpuPlus1Loaded => "cpu_plus_1_loaded",
            Self::ThroughputMinus3 => "throughput_minus_3",
            Self::ThroughputMinus3Loaded => "throughput_minus_3_loaded",
        }
    }

    /// Returns true if it measures the truth that the others are held against.
    pub(super) const fn is_reference(self) -> bool {
        matches!(self, Self::ReferenceCpu | Self::ReferenceThroughput)
    }

    /// Returns true if the host is busy with something else.
    pub(super) const fn is_loaded(self) -> bool {
        matches!(
            self,
            Self::AaLoaded
                | Self::AaGoalsLoaded
                | Self::CpuPlus1Loaded
                | Self::ThroughputMinus3Loaded
        )
    }
}

/// One goal of a finished experiment. Shares are of one: 0.01 is 1 %.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// Within its kind, from 1.
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) goal: String,
    /// True if another goal of the same experiment was the primary one: a change of this one is not confirmed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) secondary: bool,
    pub(super) tolerance_share: f64,
    pub(super) design: String,
    pub(super) measure_seconds: f64,
    /// Rounds of work for each event in the baseline.
    pub(super) rounds: u32,
    /// Additional rounds in the comparison.
    pub(super) rounds_more: u32,
    /// Additional load on the host, if there was any.
    pub(super) load: Option<String>,
    /// The verdict of the search.
    #[serde(rename = "found")]
    pub(super) searched: String,
    /// The verdict after confirmation.
    pub(super) verdict: String,
    pub(super) stopped: Option<String>,
    /// Number of pairs of the search.
    pub(super) pairs: u32,
    /// Fresh pairs of the confirmation.
    pub(super) pairs_confirming: u32,
    pub(super) pairs_discarded: u32,
    /// The change that the search found.
    pub(super) estimate_share: Option<f64>,
    pub(super) lower_share: Option<f64>,
    pub(super) upper_share: Option<f64>,
    /// Standard deviation of the pairs' log ratios.
    pub(super) pair_deviation: Option<f64>,
    /// The change in the fresh pairs of the confirmation alone.
    pub(super) confirming_share: Option<f64>,
    /// The change as it was known when the experiment ran.
    pub(super) truth_share: Option<f64>,
    /// True if the interval holds that; `None` without one of them.
    pub(super) covered: Option<bool>,
    pub(super) seconds: f64,
    /// The reason why runs were not used, each reason once.
    pub(super) warnings: Vec<String>,
    pub(super) version: String,
    pub(super) cpus: usize,
    pub(super) cpu_model: Option<String>,
    pub(super) kernel: Option<String>,
}

impl Entry {
    /// Returns true if a word of the search says that something changed.
    pub(super) fn was_flagged(&self) -> bool {
        is_flag(&self.searched)
    }

    /// Returns true if that holds after confirmation, which secondary goals do not have.
    pub(super) fn is_flagged(&self) -> bool {
        !self.secondary && is_flag(&self.verdict)
    }

    /// Returns true if the interval of the search holds `share`.
    pub(super) fn covers(&self, share: f64) -> bool {
        let (lower, upper) = (self.lower_share, self.upper_share);
        lower.is_some_and(|lower| lower <= share) && upper.is_some_and(|upper| share <= upper)
    }

    /// Returns true if the interval of the search does not hold zero.
    pub(super) fn excludes_zero(&self) -> bool {
        self.lower_share.is_some_and(|lower| lower > 0.0)
            || self.upper_share.is_some_and(|upper| upper < 0.0)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

fn is_flag(verdict: &str) -> bool {
    matches!(verdict, "regressed" | "improved")
}

/// A ledger and its file.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Creates an empty ledger.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub fn create(path: &Path) -> Result<Self, LedgerError> {
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| File::create_new(path))
            .map_err(|source| storage(path, source))?;
        Ok(Self {
            path: path.to_path_buf(),
            entries: Vec::new(),
        })
    }

    /// Reads the ledger at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not an entry.
    pub fn read(path: &Path) -> Result<Self, LedgerError> {
        let text = std::fs::read_to_string(path).map_err(|source| storage(path, source))?;
        Ok(Self {
            path: path.to_path_buf(),
            entries: parse(path, &text)?,
        })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends the lines of an experiment, all at once, and writes them to the disk.
    pub(super) fn add(&mut self, entries: Vec<Entry>) -> Result<(), LedgerError> {
        let append = || {
            let mut lines = String::new();
            for entry in &entries {
                lines.push_str(&serde_json::to_string(entry)?);
                lines.push('\n');
            }
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            file.write_all(lines.as_bytes())?;
            file.sync_data()
        };
        append().map_err(|source| storage(&self.path, source))?;
        self.entries.extend(entries);
        Ok(())
    }
}

fn storage(path: &Path, source: io::Error) -> LedgerError {
    LedgerError::Storage {
        path: path.to_path_buf(),
        source,
    }
}

fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, LedgerError> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|source| LedgerError::Line {
                path: path.to_path_buf(),
                line: number,
                source,
            })
        })
        .collect()
}

#[cfg(test)]
pub(super) fn example(kind: Kind, number: u32) -> Entry {
    Entry {
        kind,
        number,
        seed: u64::from(number),
        goal: "cpu_per_event".to_owned(),
        secondary: false,
        tolerance_share: 0.01,
        design: "sliced".to_owned(),
        measure_seconds: 2.0,
        rounds: 2000,
        rounds_more: 0,
        load: None,
        searched: "equivalent".to_owned(),
        verdict: "equivalent".to_owned(),
        stopped: Some("certain".to_owned()),
        pairs: 6,
        pairs_confirming: 0,
        pairs_discarded: 0,
        estimate_share: Some(0.001),
        lower_share: Some(-0.005),
        upper_share: Some(0.007),
        pair_deviation: Some(0.006),
        confirming_share: None,
        truth_share: Some(0.0),
        covered: Some(true),
        seconds: 20.0,
        warnings: Vec::new(),
        version: "0.1.0".to_owned(),
        cpus: 2,
        cpu_model: None,
        kernel: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_read_again() {
        let folder = std::env::temp_dir().join(format!("stillwell-ledger-{}", std::process::id()));
        let path = folder.join("ledger.jsonl");
        let mut ledger = Ledger::create(&path).unwrap();
        ledger.add(vec![example(Kind::AaQuiet, 1)]).unwrap();
        let mut again = Ledger::read(&path).unwrap();
        let secondary = Entry {
            secondary: true,
            ..example(Kind::AaGoalsQuiet, 1)
        };
        let goals = vec![example(Kind::AaGoalsQuiet, 1), secondary.clone()];
        again.add(goals).unwrap();
        let read = Ledger::read(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            read.entries(),
            [
                example(Kind::AaQuiet, 1),
                example(Kind::AaGoalsQuiet, 1),
                secondary
            ]
        );
    }

    #[test]
    fn a_line_that_was_cut_off_is_named() {
        let whole = serde_json::to_string(&example(Kind::AaLoaded, 1)).unwrap();
        assert!(whole.contains("\"kind\":\"aa_loaded\""), "{whole}");
        let text = format!("{whole}\n\n{}", &whole[..40]);
        let error = parse(Path::new("ledger.jsonl"), &text).unwrap_err();
        assert_eq!(error.to_string(), "read ledger.jsonl, line 3");
    }

    #[test]
    fn flags_are_changes_that_would_gate_or_please() {
        for (verdict, flagged) in [
            ("regressed", true),
            ("improved", true),
            ("different", false),
            ("equivalent", false),
            ("inconclusive", false),
            ("invalid", false),
        ] {
            assert_eq!(is_flag(verdict), flagged, "{verdict}");
        }
    }
}
