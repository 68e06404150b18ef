//! `stillwell load`.

mod fill;
pub(crate) mod nighthawk;
mod plan;
mod source;

use std::fs::File;
use std::io::Read;

use stillwell_plan::LoadPlan;
use stillwell_report::load::{LoadFormat, render_load};
use stillwell_run::{
    AddressFamily, Interrupt, LoadBeat, LoadEnd, LoadError, LoadFound, conduct_load, load_doubts,
};
use stillwell_scope::Place;
use stillwell_units::{EventRate, Nanos, Seed, float_from_u64};

use crate::arguments::LoadArguments;
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

pub(crate) fn run(arguments: &LoadArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let usage = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed().map_err(|error| CommandError::new(Exit::CouldNotRun, error))?,
    };
    let place = |cpu: &u16| Place {
        cpus: Some(vec![*cpu]),
        network: None,
    };
    let job = Job {
        plan: plan::plan(arguments, seed).map_err(usage)?,
        seed,
        family: arguments.connecting.address_family.into(),
        places: arguments.cpus.iter().map(place).collect(),
        targets: &arguments.urls,
        labels: &arguments.label,
        closed_loop: arguments.closed_loop,
        quiet: arguments.quiet,
        format: arguments.output_format,
    };
    let (found, is_valid) = job.conduct(paint)?;
    Ok(exit_of(&found, is_valid))
}

/// A load to be made and told.
struct Job<'a> {
    plan: LoadPlan,
    seed: Seed,
    family: AddressFamily,
    places: Vec<Place>,
    targets: &'a [String],
    labels: &'a [String],
    closed_loop: bool,
    quiet: bool,
    format: LoadFormat,
}

impl Job<'_> {
    /// Makes it and prints what was found; gives that, and whether it is to be
    /// believed.
    fn conduct(self, paint: &Paint) -> Result<(LoadFound, bool), CommandError> {
        let usage = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
        let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
        self.plan.check().map_err(|error| usage(error.into()))?;
        let interrupt = Interrupt::new();
        let raised = interrupt.clone();
        let signals = signals::listen(move |signal| raised.raise(signal))
            .map_err(|error| could_not(error.into()))?;
        let mut tell = |beat: &LoadBeat| {
            if !self.quiet {
                Paint::say(&told(beat));
            }
        };
        let plan = self.plan.clone();
        let found = conduct_load(plan, self.family, &self.places, &interrupt, &mut tell);
        signals.close(Nanos::SECOND);
        let found = found.map_err(refused)?;
        let doubts = load_doubts(&self.plan, &found);
        let report = fill::report(&fill::Told {
            targets: self.targets,
            labels: self.labels,
            closed_loop: self.closed_loop,
            plan: &self.plan,
            seed: &self.seed,
            found: &found,
            doubts: &doubts,
        });
        let text = render_load(&report, self.format, None, output::styled(paint));
        let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
        Paint::data(&text).map_err(|error| could_not(error.into()))?;
        Ok((found, report.health.is_valid()))
    }
}

fn random_seed() -> anyhow::Result<Seed> {
    let mut bytes = [0; 4];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Seed::from_number(u32::from_le_bytes(bytes).into()))
}

fn refused(error: LoadError) -> CommandError {
    let exit = match &error {
        LoadError::Prepare(_) => Exit::Usage,
        LoadError::Resolve(_) | LoadError::Start(_) => Exit::CouldNotRun,
    };
    CommandError::new(exit, error)
}

/// What is said every second.
fn told(beat: &LoadBeat) -> String {
    let rate = EventRate::try_new(float_from_u64(beat.ended));
    let rate = rate.map_or_else(|_| "0/s".to_owned(), |rate| rate.to_string());
    let [median, p99] = beat.latency.map(rounded);
    let failed = beat.ended - beat.good;
    format!(
        "{:>5.0} s  {rate:>12}  {failed:>6} failed  p50 {median:>9}  p99 {p99:>9}",
        beat.elapsed.as_secs_f64()
    )
}

/// To three digits or so: more is noise here.
fn rounded(time: Nanos) -> String {
    let mut unit = 1;
    while time.as_u64() / unit >= 1000 {
        unit *= 10;
    }
    Nanos::new(time.as_u64() / unit * unit).to_string()
}

fn exit_of(found: &LoadFound, is_valid: bool) -> Exit {
    match &found.end {
        LoadEnd::Interrupted(signal) => Exit::Interrupted(*signal),
        LoadEnd::PartFailed(_) => Exit::Invalid,
        LoadEnd::Failure(_) => Exit::Failed,
        LoadEnd::Duration | LoadEnd::Requests | LoadEnd::Termination(_) => {
            if is_valid {
                Exit::Held
            } else {
                Exit::Invalid
            }
        }
    }
}
