//! One comparison, and several.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, Seed};

use crate::stopping::{DesignPlan, WarmupPlan};
use crate::target::MountPlan;
use crate::{GeneratorPlan, GoalPlan, RunPlan, StoppingPlan, TargetKind, TargetPlan};

/// A workload, a target in two variants or more, goals and checks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ExperimentPlan {
    /// Unique in its suite.
    pub name: String,
    /// The first line of prose of its README or its description.
    pub summary: Option<String>,
    /// The folder that it was read from.
    pub folder: PathBuf,
    /// The plan of every run, except for what variants change.
    pub run_plan: RunPlan,
    /// The compared variants; the first is the baseline. At least two.
    pub variants: Vec<VariantPlan>,
    /// Compared metrics; the first is the primary goal. At least one.
    pub goals: Vec<GoalPlan>,
    /// When it has seen enough pairs of runs.
    pub stopping: StoppingPlan,
    /// The way in which the variants of a pair share the machine.
    pub design: DesignPlan,
    /// The beginning of the measured phase of each run.
    pub warmup: WarmupPlan,
    /// Time of runs up to which lost pairs are replaced beyond a quarter of the planned
    /// ones.
    #[serde(default = "max_time_default", rename = "max_time_ns")]
    pub max_time: Nanos,
    /// True if a change that was found is confirmed on fresh pairs before it
    /// gates.
    pub confirm: bool,
    /// Builds of each variant that comes from a revision: the first half of them is for the
    /// search, the others for the confirmation. Without a confirmation all are for the search.
    #[serde(default = "one_build", skip_serializing_if = "is_one_build")]
    pub builds: u32,
    /// The matrix that it is one cell of, if it is.
    pub family: Option<FamilyPlan>,
    /// At which rate.
    pub operating_point: OperatingPoint,
    /// Ids of generators that keep a stated rate of `max`: a probe finds no rate for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated_max: Vec<String>,
    /// Links that reports carry.
    pub report_links: Vec<ReportLink>,
    /// True if its verdicts are shown but never gate.
    pub erratic: bool,
}

/// Time of runs up to which an experiment replaces lost pairs by default.
pub const MAX_TIME_DEFAULT: Nanos = Nanos::from_secs(600);

const fn max_time_default() -> Nanos {
    MAX_TIME_DEFAULT
}

/// Most builds of a variant.
pub const BUILDS_MAX: u32 = 100;

const fn one_build() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_one_build(builds: &u32) -> bool {
    *builds == 1
}

/// Returns how many of `builds` builds are for the search and how many for the confirmation: none
/// if nothing is confirmed. A single one is for both.
#[must_use]
pub const fn builds_of_stages(builds: u32, is_confirmed: bool) -> [u32; 2] {
    match (builds, is_confirmed) {
        (0 | 1, _) => [1, 1],
        (builds, false) => [builds, 0],
        (builds, true) => [builds.div_ceil(2), builds / 2],
    }
}

impl ExperimentPlan {
    /// Returns true if namespaces are created for its runs, where they are permitted.
    #[must_use]
    pub fn uses_namespaces(&self) -> bool {
        let mut variants = self.variants.iter();
        self.run_plan.uses_namespaces() || variants.any(|variant| !variant.mounts.is_empty())
    }

    /// Returns true if a probe finds the rate of `generator`.
    #[must_use]
    pub fn is_probed(&self, generator: &GeneratorPlan) -> bool {
        generator.rate.is_max() && !self.stated_max.contains(&generator.id)
    }

    /// The target of `variant`, whose binary lies at `binary` if it was built
    /// or given.
    #[must_use]
    pub fn target_of(&self, variant: &VariantPlan, binary: Option<&Path>) -> TargetPlan {
        let mut target = self.run_plan.target.clone();
        if let TargetKind::Child(child) = &mut target.kind {
            if let Some([program, arguments @ ..]) = variant.command.as_deref() {
                child.program = program.into();
                child.arguments = arguments.to_vec();
            }
            if let Some(binary) = binary {
                child.program = binary.to_path_buf();
            }
            child.arguments.extend(variant.arguments.iter().cloned());
            child
                .environment
                .variables
                .extend(variant.environment.clone());
            child.mounts.extend(variant.mounts.iter().cloned());
        }
        if let (TargetKind::Url(url), Some(replacement)) = (&mut target.kind, &variant.url) {
            url.clone_from(replacement);
        }
        target
    }
}

/// One cell of a matrix of experiments.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct FamilyPlan {
    /// The name that all cells share.
    pub name: String,
    /// The value of each parameter in this cell, as typed, in the order of the
    /// file.
    pub parameters: Vec<(String, String)>,
}

/// One build or configuration of the target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct VariantPlan {
    /// `baseline`, `comparison` or any other name.
    pub name: String,
    /// Source of its executable.
    pub binary: BinarySource,
    /// A whole command in place of the target's.
    pub command: Option<Vec<String>>,
    /// The URL in place of the target's, where the target is a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Arguments added after those of the command.
    pub arguments: Vec<String>,
    /// Environment variables added to the target's.
    pub environment: BTreeMap<String, String>,
    /// The folder that replaces `{files}`.
    pub files: Option<PathBuf>,
    /// Folders shown to this variant alone.
    pub mounts: Vec<MountPlan>,
}

impl VariantPlan {
    /// A variant that changes nothing.
    #[must_use]
    pub const fn unchanged(name: String) -> Self {
        Self {
            name,
            binary: BinarySource::AsPlanned,
            command: None,
            url: None,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            files: None,
            mounts: Vec::new(),
        }
    }
}

/// Source of a variant's executable.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BinarySource {
    /// The target's own program.
    AsPlanned,
    /// This file.
    Path(PathBuf),
    /// Built from a revision.
    Git(GitSource),
}

/// A revision of a repository and how it becomes an executable.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct GitSource {
    /// The repository: a folder on this host.
    pub repository: PathBuf,
    /// Anything that `git rev-parse` understands.
    pub revision: String,
    /// A shell command, run in the root of the revision's own worktree.
    pub build: String,
    /// The executable that the build leaves, relative to that root.
    pub output: PathBuf,
}

/// At which rate an experiment runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatingPoint {
    /// At the rates that its generators state.
    Stated,
    /// As fast as the target accepts it.
    Max,
    /// At the rate at which the target uses `share` of its CPUs,
    /// found by a run of the baseline at full speed for `length`.
    Probe {
        /// Above 0 and below 1.
        share: f64,
        /// Length of the probe's measured phase.
        length: Nanos,
    },
}

/// A link that is shown in reports.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReportLink {
    /// The shown text or path.
    pub text: String,
    /// Its destination.
    pub link: String,
}

/// A set of experiments.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(remote = "Self")]
pub struct SuitePlan {
    /// The experiments in the order in which they run.
    pub experiments: Vec<ExperimentPlan>,
    /// From which the order within pairs follows.
    pub seed: Seed,
}

crate::json::by_json_value!(SuitePlan);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::experiment;

    #[test]
    fn a_plan_of_before_a_stated_max_was_kept_is_read() {
        let mut plan = experiment(StoppingPlan::DEFAULT);
        let text = serde_json::to_string(&plan).unwrap();
        assert!(!text.contains("stated_max"), "{text}");
        let read: ExperimentPlan = serde_json::from_str(&text).unwrap();
        assert!(read.stated_max.is_empty());
        plan.stated_max.push("load".to_owned());
        let text = serde_json::to_string(&plan).unwrap();
        let read: ExperimentPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(read.stated_max, plan.stated_max);
    }
}
