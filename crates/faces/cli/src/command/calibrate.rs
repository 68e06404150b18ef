//! `stillwell calibrate`.

mod figures;
pub(crate) mod hinder;
mod trial;

use std::path::{Path, PathBuf};

use stillwell_experiment::{LabError, LabProgress, Local, Results, run_lab};
use stillwell_plan::{ExperimentPlan, LabPlan, SubjectKind};
use stillwell_report::{CalibratedExperiment, CalibrationReport, render_calibration};
use stillwell_scope::clock;
use stillwell_target::Privileges;
use stillwell_units::{Moment, Nanos, Tolerance, float_from_u64};

use self::figures::{Compared, Hindered};
use self::trial::Trial;
use crate::arguments::CalibrateArguments;
use crate::command::conduct::Conductor;
use crate::command::{output, places, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// The largest slowdown that is chosen where none is told.
const SLOWDOWN_MAX: f64 = 0.5;

pub(crate) fn run(
    arguments: &CalibrateArguments,
    paint: &Paint,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    let started = clock::now();
    let plan = load(arguments, paint)?;
    output::check_writable(&arguments.output.output)?;
    let quiet = arguments.output.quiet;
    output::tell_privileges(privileges, quiet);
    let root = results_folder(arguments)?;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, quiet)?;
    let rig = Rig {
        arguments,
        conductor: &conductor,
        root: &root,
    };
    let calibrated = rig.calibrate_all(&plan, started);
    let signal = conductor.end();
    let (experiments, host) = calibrated?;
    let report = CalibrationReport {
        title: title(arguments),
        experiments,
        results_folder: output::show_path(&root),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        elapsed: clock::now().since(started),
    };
    output::deliver_text(&arguments.output, paint, |format, style| {
        render_calibration(&report, format, style)
    })?;
    Ok(match signal {
        Some(signal) => Exit::Interrupted(signal),
        None if told_anything(&report) => Exit::Held,
        None => Exit::Invalid,
    })
}

fn title(arguments: &CalibrateArguments) -> String {
    let paths = arguments.paths.iter();
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

fn told_anything(report: &CalibrationReport) -> bool {
    let mut alike = report.experiments.iter().map(|own| own.alike);
    alike.any(|alike| alike.comparisons > alike.invalid)
}

fn load(arguments: &CalibrateArguments, paint: &Paint) -> Result<LabPlan, CommandError> {
    let overrides = select::overrides(&arguments.select);
    let loaded = stillwell_config::load_lab(&arguments.paths, &overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let not_ours = loaded.plan.experiments.iter().find(|experiment| {
        !matches!(
            experiment.rig.subject.kind,
            SubjectKind::Child(_) | SubjectKind::None
        )
    });
    not_ours.map_or(Ok(()), |experiment| {
        Err(CommandError::new(
            Exit::Usage,
            anyhow::anyhow!("{}: its subject is not started by us", experiment.name),
        )
        .hint("a process that runs already cannot be compared with itself"))
    })?;
    Ok(loaded.plan)
}

fn results_folder(arguments: &CalibrateArguments) -> Result<PathBuf, CommandError> {
    let folder = arguments.results.clone().unwrap_or_else(|| {
        let name = arguments.paths.first().map(|path| places::name_of(path));
        places::fresh("calibrations", &name.unwrap_or_default())
    });
    std::path::absolute(&folder).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// What all comparisons share.
struct Rig<'a> {
    arguments: &'a CalibrateArguments,
    conductor: &'a Conductor<'a>,
    root: &'a Path,
}

/// Facts about the host, by name.
type Facts = Vec<(String, String)>;

impl Rig<'_> {
    /// Every experiment has an equal part of the time.
    fn calibrate_all(
        &self,
        plan: &LabPlan,
        started: Moment,
    ) -> Result<(Vec<CalibratedExperiment>, Facts), CommandError> {
        let all = Nanos::from_secs(60 * u64::from(self.arguments.minutes));
        let count = u64::try_from(plan.experiments.len())
            .unwrap_or(u64::MAX)
            .max(1);
        let mut calibrated = Vec::new();
        let mut host = Vec::new();
        for (number, experiment) in (1_u64..).zip(&plan.experiments) {
            let until = started + Nanos::new(all.as_u64() / count * number);
            let (own, facts) = self.calibrate(experiment, plan, until)?;
            if host.is_empty() {
                host = facts;
            }
            calibrated.extend(own);
            if self.is_interrupted() {
                break;
            }
        }
        Ok((calibrated, host))
    }

    /// One comparison after the other while there is time; `None` if none ended.
    fn calibrate(
        &self,
        experiment: &ExperimentPlan,
        plan: &LabPlan,
        until: Moment,
    ) -> Result<(Option<CalibratedExperiment>, Facts), CommandError> {
        let hindrance = trial::hindrance(experiment);
        let slowdown = self.slowdown(experiment);
        let hindered = hindrance.clone().map(|how| Hindered {
            how,
            truth: trial::truth(experiment, slowdown.share()),
        });
        let mut compared: Vec<Compared> = Vec::new();
        let (mut binary, mut host) = (None, Vec::new());
        let began = clock::now();
        for number in 1..=self.arguments.experiments {
            let trial = Trial::of(number, hindrance.is_ok());
            let seed = plan.seed.derive("calibrate", number.into());
            let lab = match (trial, &hindrance) {
                (Trial::Worse, Ok(how)) => {
                    let percent = slowdown.to_string();
                    trial::worse(experiment, seed, binary.as_deref(), (*how, &percent))
                }
                _ => trial::alike(experiment, seed),
            };
            self.announce(experiment, trial, number);
            let results = Results::new(self.root.join(format!(
                "{}/{number:03}-{}",
                places::name_of(Path::new(&experiment.name)),
                trial.name()
            )));
            compared.extend(self.compare(&lab, trial, &results)?);
            if number == 1 {
                binary = binary_of(&results);
                host = output::host_of(&results, &lab);
            }
            // One of each kind at least.
            let is_enough = number >= 2 && !fits(&compared, began, until);
            if is_enough || self.is_interrupted() {
                break;
            }
        }
        let told = (!compared.is_empty())
            .then(|| figures::calibrated(experiment, &compared, hindered, self.arguments.minutes));
        Ok((told, host))
    }

    /// Twice what matters, so that it ought to be found.
    fn slowdown(&self, experiment: &ExperimentPlan) -> Tolerance {
        let tolerance = experiment.goals.first().map(|goal| goal.tolerance);
        let twice = tolerance.map(|own| (2.0 * own.share()).min(SLOWDOWN_MAX));
        let twice = twice.and_then(|share| Tolerance::try_new(share).ok());
        self.arguments
            .slowdown
            .or(twice)
            .unwrap_or(Tolerance::DEFAULT)
    }

    fn is_interrupted(&self) -> bool {
        self.conductor.interrupt().signal().is_some()
    }

    fn announce(&self, experiment: &ExperimentPlan, trial: Trial, number: u32) {
        if !self.arguments.output.quiet {
            let with = match trial {
                Trial::Alike => "with itself",
                Trial::Worse => "with itself made worse",
            };
            Paint::say(&format!("{number}. {} {with}", experiment.name));
        }
    }

    /// Runs a lab of one experiment; `None` where it came to nothing.
    fn compare(
        &self,
        lab: &LabPlan,
        trial: Trial,
        results: &Results,
    ) -> Result<Option<Compared>, CommandError> {
        let options = self.conductor.options(results.root(), false);
        let interrupt = self.conductor.interrupt();
        let mut teller = self.conductor.teller();
        let mut runs = Vec::new();
        let ran = run_lab(lab, &options, &mut Local, interrupt, &mut |progress| {
            if let LabProgress::RunEnded { summary } = &progress
                // The probe is no comparison.
                && summary.identity.as_ref().is_some_and(|own| own.pair > 0)
            {
                runs.push((*summary).clone());
            }
            teller.lab(progress);
        });
        teller.clear();
        let outcome = ran.map_err(lab_error)?;
        if let Some(problem) = outcome.gravest().filter(|it| it.kind.is_about_starting()) {
            let error = anyhow::anyhow!("{}: {}", problem.experiment, problem.reason);
            return Err(CommandError::new(Exit::CouldNotRun, error));
        }
        if outcome.interrupted.is_some() {
            // Half a comparison would count as one that could not tell.
            return Ok(None);
        }
        let elapsed = outcome.elapsed;
        let mut verdicts = outcome.verdicts.into_iter();
        Ok(verdicts.next().map(|verdict| Compared {
            trial,
            verdict,
            runs,
            elapsed,
        }))
    }
}

/// Whether one more comparison, as long as those before in the mean, ends in time.
fn fits(compared: &[Compared], began: Moment, until: Moment) -> bool {
    let now = clock::now();
    let count = float_from_u64(compared.len().max(1) as u64);
    let mean = now.since(began).as_secs_f64() / count;
    now + Nanos::from_secs_f64(mean) <= until
}

/// What the baseline was built as.
fn binary_of(results: &Results) -> Option<PathBuf> {
    let binaries = results.record().ok()?.binaries;
    binaries.into_iter().next()?.path
}

fn lab_error(error: LabError) -> CommandError {
    let exit = match error {
        LabError::AlreadyThere { .. } | LabError::Design { .. } => Exit::Usage,
        _ => Exit::CouldNotRun,
    };
    CommandError::new(exit, error)
}
