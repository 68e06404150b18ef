//! `stillwell calibrate`.

pub(crate) mod disturb;
mod ledger;

use std::path::{Path, PathBuf};

use stillwell_experiment::calibrate::{
    CalibrationError, CalibrationHost, CalibrationLimits, calibrate,
};
use stillwell_experiment::{Results, SuiteError, SuiteOptions, SuiteProgress};
use stillwell_plan::{ExperimentPlan, SuitePlan, TargetKind, TimeEstimate};
use stillwell_report::{CalibrationReport, Format, FullReport};
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, count};
use stillwell_verdict::calibration::{CalibratedExperiment, Trial};

use crate::arguments::CalibrateArguments;
use crate::command::check::describe;
use crate::command::conduct::Conductor;
use crate::command::{output, places, privileges, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;
use crate::progress::ProgressDisplay;

pub(crate) fn run(arguments: &CalibrateArguments, paint: &Paint) -> Result<Exit, CommandError> {
    check_flags(arguments)?;
    // `runs push` copies no calibrations.
    places::refuse_store(arguments.results.as_deref())
        .map_err(|error| error.hint("give a folder: --results DIR"))?;
    if let Some(path) = &arguments.ledger {
        return ledger::run(arguments, path, paint);
    }
    let started = clock::now();
    let plan = load(arguments, paint)?;
    let privileges = privileges::prepare_suite(&plan);
    output::check_outputs(&arguments.output)?;
    let quiet = arguments.output.quiet;
    output::report_privileges(privileges.as_ref(), quiet);
    let root = results_folder(arguments)?;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, quiet)?;
    let mut host = Host {
        conductor: &conductor,
        display: None,
        is_quiet: quiet,
        facts: Vec::new(),
    };
    let (experiments, failure) = calibrate_all(arguments, &plan, (&mut host, &root), started);
    let host = host.facts;
    let signal = conductor.end();
    let failed = failure.as_ref().map(|error| error.exit);
    match failure {
        Some(error) if experiments.is_empty() => return Err(error),
        // What was calibrated before is reported.
        Some(error) => paint.error(&error),
        None => {}
    }
    let report = CalibrationReport {
        title: title(arguments),
        experiments,
        results_folder: output::show_path(&root),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        elapsed: clock::now().since(started),
    };
    let exit = exit_of(signal, failed, has_verdicts(&report));
    let delivered = output::deliver(&arguments.output, paint, &FullReport::from(&report));
    output::exit_after(exit, delivered, paint)
}

/// Refuses a flag without an effect. A ledger has its own experiments and no report; without a ledger, the baseline is
/// compared with itself.
fn check_flags(arguments: &CalibrateArguments) -> Result<(), CommandError> {
    let flags = select::given_flags(&arguments.select);
    let refuse =
        |error: anyhow::Error, hint: &str| Err(CommandError::new(Exit::Usage, error).hint(hint));
    if arguments.ledger.is_none() {
        return match flags.contains(&"--comparison") {
            true => refuse(
                anyhow::anyhow!("--comparison has no effect: the baseline is compared with itself"),
                "leave it out; --baseline changes the version that is calibrated",
            ),
            false => Ok(()),
        };
    }
    let output = &arguments.output;
    let of_report = [
        ("--output", !output.output.is_empty()),
        ("--assets", output.assets.is_some()),
        ("--format", output.format != Format::Terminal),
    ];
    let of_report = of_report.into_iter().filter(|(_, is_given)| *is_given);
    let mut given = flags.into_iter().chain(of_report.map(|(flag, _)| flag));
    given.next().map_or(Ok(()), |flag| {
        refuse(
            anyhow::anyhow!("{flag} has no effect with --ledger"),
            "leave it out; a ledger has its own experiments, and --table prints its results",
        )
    })
}

/// Returns the exit code of a calibration: of the signal that ended it, else of the error that did.
fn exit_of(signal: Option<i32>, failed: Option<Exit>, has_verdicts: bool) -> Exit {
    match (signal, failed) {
        (Some(signal), _) => Exit::Interrupted(signal),
        (None, Some(exit)) => exit,
        (None, None) if has_verdicts => Exit::Held,
        (None, None) => Exit::Invalid,
    }
}

fn title(arguments: &CalibrateArguments) -> String {
    let paths = arguments.paths.iter();
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

fn has_verdicts(report: &CalibrationReport) -> bool {
    let experiments = report.experiments.iter();
    let mut self_comparisons = experiments.map(|experiment| experiment.self_comparison);
    self_comparisons.any(|figures| figures.comparisons > figures.invalid)
}

fn load(arguments: &CalibrateArguments, paint: &Paint) -> Result<SuitePlan, CommandError> {
    let overrides = select::overrides(&arguments.select);
    let loaded = loader()
        .suite(&arguments.paths, &overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let not_ours = loaded.plan.experiments.iter().find(|experiment| {
        !matches!(
            experiment.run_plan.target.kind,
            TargetKind::Child(_) | TargetKind::None
        )
    });
    not_ours.map_or(Ok(()), |experiment| {
        Err(CommandError::new(
            Exit::Usage,
            anyhow::anyhow!("{}: its target is already running", experiment.name),
        )
        .hint("only a target that Stillwell starts can be compared with itself"))
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

/// Calibrates one experiment after the other, until one fails. Each has an equal part of the time.
fn calibrate_all(
    arguments: &CalibrateArguments,
    plan: &SuitePlan,
    (host, root): (&mut Host<'_>, &Path),
    started: Moment,
) -> (Vec<CalibratedExperiment>, Option<CommandError>) {
    let limits = CalibrationLimits {
        comparisons: arguments.experiments,
        minutes: arguments.minutes,
        slowdown: arguments.slowdown,
    };
    if !arguments.output.quiet {
        let each: Vec<TimeEstimate> = plan.experiments.iter().map(ExperimentPlan::time).collect();
        Paint::print_message(&forecast(&each, arguments.experiments, arguments.minutes));
    }
    let all = Nanos::from_secs(60 * u64::from(arguments.minutes));
    let parts = u64::from(count(plan.experiments.len())).max(1);
    let mut calibrated = Vec::new();
    for (number, experiment) in (1_u64..).zip(&plan.experiments) {
        let until = started + Nanos::new(all.as_u64() / parts * number);
        let folder = Results::new(root.to_path_buf()).experiment(&experiment.name);
        let (result, failure) = calibrate(experiment, (plan.seed, &folder), (&limits, until), host);
        calibrated.extend(result);
        if let Some(error) = failure {
            return (calibrated, Some(refused(error)));
        }
        if host.conductor.interrupt().signal().is_some() {
            break;
        }
    }
    (calibrated, None)
}

/// Comparisons of each experiment that are made however little time is given: one with itself, and one
/// with a slowed version.
const COMPARISONS_MIN: u32 = 2;

/// Returns the length of a calibration that ends as early as it can, and what more time does.
fn forecast(experiments: &[TimeEstimate], comparisons_max: u32, minutes: u32) -> String {
    let comparisons = u64::from(comparisons_max.min(COMPARISONS_MIN));
    let mut time = TimeEstimate::default();
    for each in experiments {
        let add = |sum: &mut Nanos, each: Nanos| {
            let all = each.as_u64().saturating_mul(comparisons);
            *sum = Nanos::new(sum.as_u64().saturating_add(all));
        };
        add(&mut time.least, each.least);
        add(&mut time.most, each.most);
    }
    let least = comparisons * u64::from(count(experiments.len()));
    let plural = if least == 1 { "" } else { "s" };
    let takes = describe::between(time);
    format!("at least {least} comparison{plural}, {takes}; none starts after {minutes} min")
}

/// Shows how comparisons go.
struct Host<'a> {
    conductor: &'a Conductor<'a>,
    display: Option<ProgressDisplay<'a>>,
    is_quiet: bool,
    /// Facts about the machine, by name.
    facts: Vec<(String, String)>,
}

impl CalibrationHost for Host<'_> {
    fn options(&self, results: &Path) -> SuiteOptions {
        self.conductor.options(results, false)
    }

    fn interrupt(&self) -> &Interrupt {
        self.conductor.interrupt()
    }

    fn announce(&mut self, experiment: &ExperimentPlan, trial: Trial, number: u32) {
        let conductor = self.conductor;
        let display = self.display.get_or_insert_with(|| conductor.display());
        display.begin();
        if !self.is_quiet {
            let with = match trial {
                Trial::SelfComparison => "with itself",
                Trial::Worse => "with a slowed version",
            };
            display.print_message(&format!("{number}. {} {with}", experiment.name));
        }
    }

    fn progress(&mut self, progress: SuiteProgress<'_>) {
        let conductor = self.conductor;
        let display = self.display.get_or_insert_with(|| conductor.display());
        display.suite(progress);
    }

    fn ended(&mut self) {
        if let Some(mut display) = self.display.take() {
            display.clear();
        }
    }

    fn first(&mut self, results: &Results, plan: &SuitePlan) {
        if self.facts.is_empty() {
            self.facts = results.host_facts(plan);
        }
    }
}

fn refused(error: CalibrationError) -> CommandError {
    match error {
        CalibrationError::Suite(error) => suite_error(error),
        CalibrationError::Start(_) => CommandError::new(Exit::CouldNotRun, error),
        CalibrationError::Incomplete(_) => CommandError::new(Exit::Invalid, error),
    }
}

fn suite_error(error: SuiteError) -> CommandError {
    let exit = match error {
        SuiteError::AlreadyThere { .. } | SuiteError::Design { .. } => Exit::Usage,
        _ => Exit::CouldNotRun,
    };
    CommandError::new(exit, error)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, ColorWhen, Command};

    /// Parses `stillwell calibrate` with these words.
    fn parsed(words: &str) -> CalibrateArguments {
        let line = ["stillwell", "calibrate"].into_iter();
        let line = line.chain(words.split_whitespace());
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Calibrate(calibrate) => *calibrate,
            command => panic!("{command:?}"),
        }
    }

    /// Checks the flags of `stillwell calibrate` with these words.
    fn checked(words: &str) -> Result<(), String> {
        check_flags(&parsed(words)).map_err(|error| {
            assert_eq!(error.exit, Exit::Usage);
            error.to_string()
        })
    }

    #[test]
    fn an_object_store_is_refused_first_with_a_hint_that_works() {
        for words in ["absent", "--ledger absent/a.jsonl"] {
            for store in ["s3://bench/nightly", "s3:/bench"] {
                let arguments = parsed(&format!("{words} --results {store}"));
                let error = run(&arguments, &Paint::new(ColorWhen::Never)).unwrap_err();
                assert_eq!(error.exit, Exit::Usage);
                assert!(error.to_string().ends_with("is not a folder"), "{error}");
                assert_eq!(error.hint.as_deref(), Some("give a folder: --results DIR"));
            }
        }
    }

    #[test]
    fn flags_without_an_effect_are_refused_by_name() {
        for words in [
            "--baseline same",
            "--pairs 4",
            "--only quick*",
            "--goal cpu",
            "--output report.html",
            "--assets charts",
            "--format json",
        ] {
            let flag = words.split(' ').next().unwrap();
            let expected = format!("{flag} has no effect with --ledger");
            for line in ["--ledger a.jsonl", "--ledger a.jsonl --table"] {
                assert_eq!(checked(&format!("{line} {words}")), Err(expected.clone()));
            }
            assert_eq!(checked(&format!("suite {words}")), Ok(()));
        }
        let error = checked("suite --comparison same").unwrap_err();
        assert!(error.starts_with("--comparison has no effect"), "{error}");
        for words in [
            "--resume --minutes 5 --results r --cache c --quiet",
            "--table",
        ] {
            assert_eq!(checked(&format!("--ledger a.jsonl {words}")), Ok(()));
        }
    }

    #[test]
    fn a_signal_gives_the_exit_code_before_an_error_and_an_error_before_missing_verdicts() {
        for (signal, failed, has_verdicts, exit) in [
            (Some(2), Some(Exit::CouldNotRun), true, Exit::Interrupted(2)),
            (None, Some(Exit::CouldNotRun), true, Exit::CouldNotRun),
            (None, None, true, Exit::Held),
            (None, None, false, Exit::Invalid),
        ] {
            assert_eq!(exit_of(signal, failed, has_verdicts), exit);
        }
    }

    /// `--minutes 1` took longer, and did not say so before.
    #[test]
    fn the_shortest_length_is_printed_before_it_begins() {
        let each = [TimeEstimate {
            least: Nanos::from_secs(80),
            most: Nanos::from_secs(800),
        }];
        assert_eq!(
            forecast(&each, 40, 1),
            "at least 2 comparisons, about 2 min 40 s to 27 min; none starts after 1 min"
        );
        assert_eq!(
            forecast(&each, 1, 20),
            "at least 1 comparison, about 1 min 20 s to 14 min; none starts after 20 min"
        );
    }
}
