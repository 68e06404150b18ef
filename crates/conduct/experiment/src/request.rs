//! The request of one run of an experiment.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use stillwell_capture::{RunIdentity, RunStage};
use stillwell_plan::target::Places;
use stillwell_plan::{ExperimentPlan, RunPlan, TargetKind, TargetPlan};
use stillwell_run::{Exports, RunRequest};
use stillwell_scope::clock;
use stillwell_units::{RunId, Seed};

use crate::SuiteOptions;
use crate::order::of_stage;

/// The variable that moves the target's stack. Programs ignore it.
pub(crate) const PADDING: &str = "STILLWELL_PADDING";
/// Longest padding in bytes: one page.
pub(crate) const PADDING_MAX: u64 = 4096;

/// Context of a run besides its plan.
#[derive(Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) options: &'a SuiteOptions,
    pub(crate) experiment: &'a ExperimentPlan,
    /// The experiment's place in the suite.
    pub(crate) index: usize,
    /// The variant's place in the experiment.
    pub(crate) variant: usize,
    pub(crate) target: &'a TargetPlan,
}

/// The run of `identity`, whose capture goes to `folder`.
pub(crate) fn request(
    about: &Circumstances<'_>,
    identity: RunIdentity,
    folder: PathBuf,
) -> RunRequest {
    let variant = about.experiment.variants.get(about.variant);
    // Short, since Unix sockets may lie in it: their paths end at 108 bytes.
    let stage = match identity.stage {
        RunStage::Search => "",
        RunStage::Confirm => "c",
    };
    let state = format!(
        "{:02}-{stage}{:03}-{}",
        about.index, identity.pair, about.variant
    );
    RunRequest {
        plan: plan_of(about, identity.stage, identity.pair),
        places: Places {
            stillwell: about.options.stillwell.clone(),
            state: about.options.state_root.join(state),
            files: variant.and_then(|variant| variant.files.clone()),
            experiment: about.experiment.folder.clone(),
        },
        folder,
        run: new_run_id(&identity),
        identity: Some(identity),
        command: about.options.command.clone(),
        secrets: about.options.secrets,
        exports: Exports {
            metrics: about.options.metrics.clone(),
            ..Exports::default()
        },
        fleet: None,
        describer: about.options.describer.clone(),
    }
}

/// All runs of a pair have the same seeds, so every variant gets the same
/// bytes; every pair has others, so a verdict does not hang on one draw.
fn plan_of(about: &Circumstances<'_>, stage: RunStage, pair: u32) -> RunPlan {
    let mut run_plan = about.experiment.run_plan.around(about.target.clone());
    let of_pair = |seed: Seed| of_stage(seed, stage).derive("pair", u64::from(pair));
    let padding_seed = of_pair(run_plan.seed).derive(PADDING, about.variant as u64);
    run_plan.seed = of_pair(run_plan.seed);
    for generator in &mut run_plan.generators {
        generator.seed = of_pair(generator.seed);
    }
    if let TargetKind::Child(child) = &mut run_plan.target.kind {
        let variables = &mut child.environment.variables;
        variables
            .entry(PADDING.to_owned())
            .or_insert_with(|| padding(&padding_seed));
    }
    run_plan
}

/// The size of the environment moves the stack, and with it what shares a cache
/// line: a different length for each run turns that bias into noise, which more
/// pairs average away (Mytkowicz et al., "Producing wrong data without doing
/// anything obviously wrong!", ASPLOS 2009).
fn padding(seed: &Seed) -> String {
    let [first, second, ..] = *seed.bytes();
    let length = u64::from(u16::from_le_bytes([first, second])) % (PADDING_MAX + 1);
    (0..length).map(|_| 'x').collect()
}

/// A name that no other run has: neither in this process nor on another host or at another time, up
/// to a collision of hashes.
fn new_run_id(identity: &RunIdentity) -> RunId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hash = Sha256::new();
    hash.update(clock::wall().as_u64().to_le_bytes());
    hash.update(clock::now().as_u64().to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    hash.update(COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    hash.update(identity.experiment.as_bytes());
    hash.update([0]);
    hash.update(identity.variant.as_bytes());
    hash.update([u8::from(identity.stage == RunStage::Confirm)]);
    hash.update(identity.pair.to_le_bytes());
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    RunId::from_bytes(bytes)
}
