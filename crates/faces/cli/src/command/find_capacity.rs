//! `stillwell find-capacity`.

pub(crate) mod adaptive;
mod http;
mod knee;
mod run;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use anyhow::Context;
use stillwell_experiment::capacity::{CapacitySearched, SearchWatcher, highest_rate};
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::{Validity, WorkUnit};
use stillwell_report::{
    CapacityReport, Format, FullReport, capacity_csv, capacity_json, probe_line,
};
use stillwell_run::Interrupt;
use stillwell_scope::{Scope, clock};
use stillwell_stats::Level;
use stillwell_stats::capacity::{CapacityFound, CapacitySearch, Purpose, SearchEnd, SearchPlan};
use stillwell_target::Privileges;
use stillwell_units::{Moment, Nanos};
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe};

use crate::arguments::{CapacityFormat, FindCapacityArguments, Objective};
use crate::command::{output, places};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::progress::SearchDisplay;
use crate::signals;

/// Name of the saved search in the folder of its results.
pub(super) const SAVED: &str = "capacity.json";

/// Longest part of a URL in the name of a folder.
const NAME_MAX: usize = 60;

/// Returns the bounds of `given`, and those of `defaults` about figures without one.
fn with_defaults(given: &[CapacityBound], defaults: &[&str]) -> Vec<CapacityBound> {
    let mut bounds = given.to_vec();
    for default in defaults
        .iter()
        .flat_map(|text| text.parse::<CapacityBound>())
    {
        if bounds.iter().all(|bound| bound.figure != default.figure) {
            bounds.push(default);
        }
    }
    bounds
}

/// Returns an error for a folder that has results: `report` would show these in place of its own.
fn refuse_used(folder: Option<&Path>) -> Result<(), CommandError> {
    let names = [
        SAVED,
        "suite.json",
        "targets.json",
        "bisect.json",
        "manifest.json",
        "probe-001",
    ];
    let is_used = |folder: &&Path| names.iter().any(|name| folder.join(name).exists());
    folder.filter(is_used).map_or(Ok(()), |folder| {
        let error = anyhow::anyhow!("{} already contains results", folder.display());
        Err(CommandError::new(Exit::Usage, error).hint("choose another folder with --results DIR"))
    })
}

pub(crate) fn run(
    arguments: &FindCapacityArguments,
    paint: &Paint,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    output::check_writable_as(&arguments.output, |file| match is_csv(file) {
        true => Ok(()),
        false => output::format_of(file).map(|_| ()),
    })?;
    places::refuse_store(arguments.results.as_deref())?;
    refuse_used(arguments.results.as_deref())?;
    let watch = Watch::start()?;
    let file = match arguments.urls.as_slice() {
        [only] if is_file(only) => Some(PathBuf::from(only)),
        _ => None,
    };
    let name = match &file {
        Some(file) => places::name_of(file),
        None => name_of_url(arguments.urls.first().map_or("", String::as_str)),
    };
    let folder = arguments
        .results
        .clone()
        .unwrap_or_else(|| places::fresh("capacity", &name));
    let begun = clock::now();
    let search = Search {
        arguments,
        watch,
        begun,
        display: SearchDisplay::new(paint, arguments.quiet),
    };
    let result = match (&file, arguments.objective) {
        (Some(file), Objective::Bounds) => {
            output::report_privileges(Some(privileges), arguments.quiet);
            run::search(&search, file, &folder, paint)
        }
        (Some(file), Objective::Knee) => {
            output::report_privileges(Some(privileges), arguments.quiet);
            knee::of_run(&search, file, &folder, paint)
        }
        (None, Objective::Bounds) => http::search(&search),
        (None, Objective::Knee) => knee::of_url(&search),
    };
    let signal = search.watch.interrupt.signal();
    let elapsed = clock::now().since(begun);
    // The view is taken away before other output.
    drop(search.display);
    search.watch.end();
    let result = result?;
    let report = CapacityReport {
        target: result.target,
        unit: result.unit,
        bounds: result.bounds,
        probes: result.searched.probes,
        answer: result.searched.answer,
        within: arguments.within,
        validity: result.validity,
        level: Level::NINETY_FIVE,
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        elapsed,
    };
    let delivered = deliver(&report, arguments, &folder, paint);
    let failure = result.searched.failure.filter(|_| signal.is_none());
    exit_after(exit_of(&report, signal), failure, delivered, paint)
}

/// Returns the exit code of a search that ended with `exit`, or with an error, and whose report was `delivered`.
fn exit_after(
    exit: Exit,
    failure: Option<CommandError>,
    delivered: Result<(), CommandError>,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    match failure {
        Some(error) => {
            output::exit_after(error.exit, delivered, paint)?;
            Err(error)
        }
        None => output::exit_after(exit, delivered, paint),
    }
}

/// Saves and prints the report, and writes it to the files of --output. Each is done although another one fails.
fn deliver(
    report: &CapacityReport,
    arguments: &FindCapacityArguments,
    folder: &Path,
    paint: &Paint,
) -> Result<(), CommandError> {
    let kept = save(report, folder);
    let full = FullReport::from(report);
    let text = match arguments.format {
        CapacityFormat::Terminal => full.render(Format::Terminal, output::styled(paint)),
        CapacityFormat::Json => full.render(Format::Json, output::plain()),
        CapacityFormat::Html => full.render(Format::Html, output::plain()),
        CapacityFormat::Csv => capacity_csv(report),
    };
    if kept.is_ok() {
        Paint::print_message(&format!("response curve: {}", output::show_path(folder)));
    }
    // The answer is what a terminal still shows in the end.
    let printed = output::print(&text);
    let kept = kept.map_err(|error| CommandError::new(Exit::CouldNotRun, error));
    let written = write_files(report, &full, &arguments.output);
    printed.and(kept).and(written)
}

/// Returns true for an existing file or the name of a run file.
fn is_file(target: &str) -> bool {
    let is_named = [".yaml", ".yml"]
        .iter()
        .any(|ending| target.ends_with(ending));
    !target.contains("://") && (is_named || Path::new(target).is_file())
}

fn usage(what: &str) -> CommandError {
    CommandError::new(Exit::Usage, anyhow::anyhow!("{what}"))
}

fn save(report: &CapacityReport, folder: &Path) -> anyhow::Result<()> {
    let why = || format!("save the response curve in {}", folder.display());
    stillwell_capture::make_private(folder).with_context(why)?;
    let files = [
        (SAVED, capacity_json(report)),
        ("capacity.csv", capacity_csv(report)),
        (
            "report.html",
            FullReport::from(report).render(Format::Html, output::plain()),
        ),
    ];
    for (name, text) in files {
        stillwell_capture::write_private(&folder.join(name), text).with_context(why)?;
    }
    Ok(())
}

/// Returns the name of the results of a URL: its host and path, in letters, digits and dashes. So searches of
/// several services that begin at the same time have folders of their own.
fn name_of_url(url: &str) -> String {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let address = format!("{host}/{path}");
    let parts = address.split(|character: char| !character.is_ascii_alphanumeric());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(NAME_MAX).collect();
    if name.is_empty() {
        "http".to_owned()
    } else {
        name
    }
}

/// Returns true for a file of comma-separated values.
fn is_csv(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "csv")
}

/// Writes the report to all `files`.
fn write_files(
    report: &CapacityReport,
    full: &FullReport,
    files: &[PathBuf],
) -> Result<(), CommandError> {
    let (tables, pages): (Vec<PathBuf>, Vec<PathBuf>) =
        files.iter().cloned().partition(|file| is_csv(file));
    let tables = output::write_each(&tables, |file| {
        std::fs::write(file, capacity_csv(report))
            .with_context(|| format!("write the report to {}", file.display()))
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
    });
    let pages = output::write_files(&pages, full, None);
    tables.and(pages)
}

fn exit_of(report: &CapacityReport, signal: Option<i32>) -> Exit {
    match &report.answer {
        None => signal.map_or(Exit::Invalid, Exit::Interrupted),
        Some(CapacityAnswer::Bounds(bounds)) => match bounds.end {
            SearchEnd::Confirmed | SearchEnd::AboveMaximum => Exit::Held,
            SearchEnd::BelowMinimum => Exit::Failed,
            SearchEnd::Stopped => signal.map_or(Exit::Invalid, Exit::Interrupted),
            SearchEnd::NotConfirmed
            | SearchEnd::GeneratorLimit
            | SearchEnd::BudgetSpent
            | SearchEnd::TimeSpent => Exit::Invalid,
        },
        Some(CapacityAnswer::Knee(Ok(bounds))) if bounds.knee.is_some() => Exit::Held,
        Some(CapacityAnswer::Knee(_)) => Exit::Invalid,
    }
}

/// Executors of probes.
struct Search<'a> {
    arguments: &'a FindCapacityArguments,
    watch: Watch,
    begun: Moment,
    display: SearchDisplay,
}

/// Result of a search, and its target.
struct Found {
    /// Strictness of the limits above which a probe is inconclusive.
    validity: Validity,
    target: String,
    unit: WorkUnit,
    bounds: Vec<CapacityBound>,
    searched: CapacitySearched<CommandError>,
}

impl Search<'_> {
    /// The highest rate from `from` to `to` at which probes hold.
    fn highest(
        &self,
        (from, to): (f64, f64),
        (unit, bounds): (WorkUnit, &[CapacityBound]),
        probe: impl FnMut(f64, Purpose) -> Result<CapacityProbe, CommandError>,
    ) -> Result<CapacitySearched<CommandError>, CommandError> {
        let plan = SearchPlan {
            from,
            to,
            within: self.arguments.within,
            repeats: self.arguments.repeats,
            probes_max: self.arguments.max_probes,
            level: Level::NINETY_FIVE,
        };
        let search =
            CapacitySearch::try_new(plan).map_err(|error| CommandError::new(Exit::Usage, error))?;
        highest_rate(search, &mut self.watcher(unit, bounds), probe)
    }

    /// Time since the search began.
    fn elapsed(&self) -> Nanos {
        clock::now().since(self.begun)
    }

    fn watcher(&self, unit: WorkUnit, bounds: &[CapacityBound]) -> ProbeWatcher<'_> {
        ProbeWatcher {
            search: self,
            unit,
            shown: shown(bounds),
        }
    }

    /// The warm-up and the measured time of a probe.
    fn lengths(&self, measure: Nanos) -> (Nanos, Nanos) {
        let quarter = Nanos::new(self.arguments.probe.as_u64() / 4);
        (self.arguments.warmup.unwrap_or(quarter), measure)
    }
}

/// Shows probes as they end.
struct ProbeWatcher<'a> {
    search: &'a Search<'a>,
    unit: WorkUnit,
    shown: Vec<CapacityFigure>,
}

impl SearchWatcher for ProbeWatcher<'_> {
    fn is_interrupted(&self) -> bool {
        self.search.watch.interrupt.signal().is_some()
    }

    fn report(&mut self, number: usize, probe: &CapacityProbe) {
        let line = probe_line(number, probe, self.unit, &self.shown);
        self.search.display.print_message(&line);
    }

    fn report_progress(&mut self, so_far: &CapacityFound, probes_left: u32) {
        let elapsed = self.search.elapsed();
        let each = elapsed.as_u64() / u64::from(so_far.probes.max(1));
        let mut left = Nanos::new(each.saturating_mul(u64::from(probes_left)));
        if let Some(time_max) = self.search.arguments.max_time {
            let until_end = time_max.as_u64().saturating_sub(elapsed.as_u64());
            left = left.min(Nanos::new(until_end));
        }
        self.search.display.show_result(so_far, self.unit, left);
    }

    fn is_out_of_time(&self) -> bool {
        let time_max = self.search.arguments.max_time;
        time_max.is_some_and(|time_max| self.search.elapsed() >= time_max)
    }

    fn cool_down(&self) {
        self.search.watch.wait(self.search.arguments.cooldown);
    }
}

/// Progress line of a probe.
fn shown(bounds: &[CapacityBound]) -> Vec<CapacityFigure> {
    let mut shown: Vec<CapacityFigure> = bounds.iter().map(|bound| bound.figure).collect();
    shown.dedup();
    shown
}

/// Signals, for all probes of a search together.
struct Watch {
    interrupt: Interrupt,
    signals: Scope,
    woken: Receiver<()>,
}

impl Watch {
    fn start() -> Result<Self, CommandError> {
        let interrupt = Interrupt::new();
        let raised = interrupt.clone();
        let (wake, woken) = sync_channel(1);
        let signals = signals::listen(move |signal| {
            raised.raise(signal);
            // A second signal finds the first one still there.
            wake.try_send(()).ok();
        });
        Ok(Self {
            interrupt,
            signals: signals.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?,
            woken,
        })
    }

    /// Waits for `length`, or until a signal comes.
    fn wait(&self, length: Nanos) {
        match self.woken.recv_timeout(length.as_duration()) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn end(self) {
        self.signals.close(Nanos::SECOND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ColorWhen;

    #[test]
    fn a_search_does_not_begin_in_a_folder_with_results_of_any_command() {
        let folder = tempfile::tempdir().unwrap();
        refuse_used(Some(folder.path())).unwrap();
        for name in [
            "capacity.json",
            "suite.json",
            "targets.json",
            "bisect.json",
            "manifest.json",
        ] {
            let file = folder.path().join(name);
            std::fs::write(&file, "{}").unwrap();
            let refused = refuse_used(Some(folder.path()));
            let exit = refused.map_err(|error| error.exit);
            assert_eq!(exit, Err(Exit::Usage), "{name}");
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_default_bound_is_added_unless_one_is_about_its_figure() {
        for (given, expected) in [
            ("", "throughput>99% loss<1%"),
            ("p99<20ms", "p99<20ms throughput>99% loss<1%"),
            ("throughput>50%", "throughput>50% loss<1%"),
            ("loss<9% throughput>50%", "loss<9% throughput>50%"),
        ] {
            let given = given.split_whitespace();
            let given: Vec<CapacityBound> = given.map(|text| text.parse().unwrap()).collect();
            let bounds = with_defaults(&given, &["throughput>99%", "loss<1%"]);
            let bounds: Vec<String> = bounds.iter().map(ToString::to_string).collect();
            assert_eq!(bounds.join(" "), expected);
        }
    }

    #[test]
    fn a_report_that_cannot_be_written_does_not_replace_the_end_of_a_search() {
        let paint = Paint::new(ColorWhen::Never);
        let error = |exit: Exit| CommandError::new(exit, anyhow::anyhow!("the disk is full"));
        let after = |exit: Exit, failure: Option<Exit>| {
            let delivered = Err(error(Exit::CouldNotRun));
            let ended = exit_after(exit, failure.map(error), delivered, &paint);
            ended.map_err(|error| error.exit)
        };
        assert_eq!(after(Exit::Held, None), Err(Exit::Invalid));
        for exit in [Exit::Failed, Exit::Invalid, Exit::Interrupted(2)] {
            assert_eq!(after(exit, None), Ok(exit));
        }
        for failure in [Exit::Usage, Exit::CouldNotRun, Exit::Invalid] {
            assert_eq!(after(Exit::Held, Some(failure)), Err(failure));
        }
    }
}
