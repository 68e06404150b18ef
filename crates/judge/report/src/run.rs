//! One observed run as a document.

mod charts;
pub(crate) mod stamps;

use std::collections::BTreeMap;

use stillwell_capture::{Capture, RunMachines};
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_units::human::count;
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::{
    CheckPassed, Component, GeneratorFigures, RouteFigures, RunFigures, RunOutcome, RunSummary,
    RunWarning, TimeQuantiles, Totals,
};

use crate::document::{
    Block, Cell, Chart, Column, Curve, Document, Fold, Medium, Section, Severity, Sign, Table, Text,
};
use crate::profiles::{self, TargetProfiles};
use crate::{Format, FullReport, Style, words};

pub use charts::{overlaid_runs, run_curves};

/// The content of the report of one observed run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The run in numbers.
    pub summary: RunSummary,
    /// Lines over time and by percentile, from the capture.
    pub curves: Vec<Curve>,
    /// Profiles of the target.
    pub profiles: TargetProfiles,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// Folder of the capture.
    pub capture: String,
    /// The command that was typed.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
}

impl RunReport {
    /// Returns the report of a run without what only its capture has.
    fn of(summary: &RunSummary) -> Self {
        Self {
            summary: summary.clone(),
            curves: Vec::new(),
            profiles: TargetProfiles::default(),
            host: Vec::new(),
            capture: String::new(),
            command: String::new(),
            version: String::new(),
        }
    }

    /// Returns the report of the run in a capture, which the caller summarised.
    #[must_use]
    pub fn new(summary: RunSummary, capture: &Capture, folder: String, command: String) -> Self {
        Self {
            summary,
            curves: run_curves(capture),
            profiles: TargetProfiles::default(),
            host: Vec::new(),
            capture: folder,
            command,
            version: capture.manifest.version.clone(),
        }
    }
}

impl From<&RunReport> for FullReport {
    fn from(report: &RunReport) -> Self {
        let mut data = serde_json::to_value(&report.summary).unwrap_or_default();
        if !report.profiles.summaries.is_empty() {
            data["profiles"] = profiles::data(&report.profiles);
        }
        Self {
            document: document(report),
            // `#` formats indented text; printing a value cannot fail.
            data: format!("{data:#}\n"),
            page_data: None,
        }
    }
}

/// Returns one observed run for readers at a terminal: its validity, events sent and
/// received, latency, and the resource cost of the target.
#[must_use]
pub fn run_terminal(run: &RunSummary, style: Style) -> String {
    let report = RunReport::of(run);
    Format::Terminal.render(style, || document(&report), String::new)
}

/// Returns the document. A terminal shows the remarks last, where they stay on the screen; a page begins with
/// them.
fn document(report: &RunReport) -> Document {
    let run = &report.summary;
    let figures = &run.figures;
    let remarks = Block::group(remarks(run));
    let steps = Block::group([steps(figures)]);
    let routes = Block::group(routes(&figures.routes));
    let rows = Block::KeyValue(rows(run));
    let figures = [rows, routes, steps, restarts(&run.figures)];
    let screen = [
        Block::group([figures[0].clone()]),
        figures[1].clone(),
        Block::group([figures[2].clone()]),
        figures[3].clone(),
        Block::group(profiles::blocks(&report.profiles, "Profiles".to_owned(), 1)),
        remarks.clone(),
    ];
    let mut page = vec![remarks, Block::section(2, "Figures", figures)];
    let curves = report.curves.iter().cloned();
    let curves = curves.map(|curve| Block::Chart(Chart::Curve(curve)));
    if !report.curves.is_empty() {
        let curves = [Block::section(2, "Over time and by percentile", curves)];
        page.push(Block::On(Medium::Browser, curves.into()));
    }
    page.extend(profiles::blocks(&report.profiles, "Profiles".to_owned(), 1));
    page.push(environment(report));
    let origin = format!(", Stillwell {}", report.version);
    page.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new([
        // The answer is what a terminal still shows in the end.
        Block::on_screen([
            Block::section(1, run.target.as_str(), screen),
            Block::group([Block::paragraph(headline(run))]),
        ]),
        Block::on_page([Block::section(1, headline(run), page)]),
    ])
}

/// Returns facts about the run and its host, folded.
fn environment(report: &RunReport) -> Block {
    let environment = &report.summary.environment;
    // The command line of a kernel is long, and explains no result.
    let facts = environment
        .iter()
        .filter(|(name, _)| *name != "kernel_command_line");
    let facts = facts.map(|(name, fact)| (name.as_str(), fact.as_str()));
    let host = report.host.iter();
    let host = host.filter(|(name, _)| !environment.contains_key(&name.replace(' ', "_")));
    let host = host.map(|(name, fact)| (name.as_str(), fact.as_str()));
    let capture = [("capture", report.capture.as_str())];
    let rows = facts.chain(host).chain(capture);
    let rows = rows.map(|(name, fact)| (name.into(), fact.into()));
    Block::Section(Section {
        fold: Fold::Folded("Environment".into()),
        blocks: vec![Block::KeyValue(rows.collect())],
        ..Section::default()
    })
}

/// Returns all figures, each with its name.
fn rows(run: &RunSummary) -> Vec<(Text, Text)> {
    let figures = &run.figures;
    let mut rows: Vec<(Text, Text)> = Vec::new();
    let mut row = |head: &str, text: Option<String>| {
        rows.extend(text.map(|text| (head.into(), text.into())));
    };
    for generator in &figures.generators {
        row(&format!("rate of {}", generator.id), rate(generator));
    }
    row(
        "sent",
        volume(run, figures.work, |t| (t.bytes_sent, t.events_sent)),
    );
    row(
        "received",
        volume(run, WorkUnit::Events, |t| {
            (t.bytes_received, t.events_received)
        }),
    );
    if figures.ledger.is_none() {
        row("events lost", loss(&figures.whole));
    }
    if let Some(ledger) = &figures.ledger {
        for (head, text) in stamps::rows(ledger) {
            row(&head, Some(text));
        }
    }
    row("time prefixes", figures.prefixes.map(stamps::prefixes));
    row("event latency", between(figures, figures.event_latency));
    row("from sent time", between(figures, figures.event_transit));
    row("lateness", figures.lateness.map(times));
    row("response time", figures.response_time.map(times));
    row("service time", figures.service_time.map(times));
    row("first byte", figures.first_byte.map(times));
    row("status codes", statuses(&figures.statuses));
    row("outcomes", outcomes(figures));
    row("machines", figures.machines.as_ref().map(machines));
    row("target CPU", cpu(run));
    row("target memory", memory(figures));
    for worker in &figures.workers {
        let kind = match worker.component {
            Component::Generator => "generator",
            Component::Sink => "sink",
        };
        let shares = format!(
            "running {}, blocked {}, idle {}, late {}",
            words::percent(worker.running),
            words::percent(worker.blocked),
            words::percent(worker.idle),
            words::percent(worker.late)
        );
        row(
            &format!("{kind} {}, worker {}", worker.id, worker.worker),
            Some(shares),
        );
    }
    row("foreign CPU", figures.foreign_cpu_share.map(of_host));
    row("steal", figures.steal_share.map(of_host));
    rows
}

/// Returns latencies of events, with their error if they are between machines.
fn between(figures: &RunFigures, latency: Option<TimeQuantiles>) -> Option<String> {
    let latency = times(latency?);
    let ledger = figures.ledger.as_ref();
    Some(match ledger.and_then(|ledger| ledger.clock_error) {
        Some(error) => format!(
            "{latency} (± {}, clock error between machines)",
            words::nanos(error)
        ),
        None => latency,
    })
}

/// `target on n0, generator 0 on n1 (slurm); 0.52 node minutes`.
fn machines(machines: &RunMachines) -> String {
    let tasks: Vec<String> = machines.tasks.iter().map(|task| task.name()).collect();
    let minutes = float_from_u64(machines.held().as_u64()) / 60e9;
    format!(
        "{} ({}); {minutes:.2} node minutes",
        tasks.join(", "),
        machines.engine
    )
}

/// `200: 1,190, 503: 10`.
fn statuses(counts: &BTreeMap<u16, u64>) -> Option<String> {
    let counts = counts.iter();
    let counts = counts.map(|(status, responses)| format!("{status}: {}", count(*responses)));
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// Returns the requests of each route, if there are several.
fn routes(routes: &[RouteFigures]) -> Option<Block> {
    let head = ["route", "requests", "errors", "p50", "p99", "status codes"];
    let rows = routes.iter().map(|route| {
        let ended = |is_counted: &dyn Fn(&str) -> bool| {
            let all = route.outcomes.iter();
            let counted = all.filter(|entry| is_counted(&entry.outcome));
            counted.map(|entry| entry.count).sum::<u64>()
        };
        let at = |quantile: fn(TimeQuantiles) -> Nanos| {
            let time = route.response_time.map(quantile);
            time.map_or_else(
                || words::MISSING.into(),
                |time| {
                    let time = float_from_u64(time.as_u64());
                    Cell::number(words::time(time), time, "ns")
                },
            )
        };
        let errors = ended(&|outcome| !matches!(outcome, "ok" | "status_3xx" | "unfinished"));
        vec![
            route.name.as_str().into(),
            count(ended(&|_| true)).into(),
            count(errors).into(),
            at(|times| times.p50),
            at(|times| times.p99),
            statuses(&route.statuses).unwrap_or_default().into(),
        ]
    });
    let table = Table::new(head.map(Column::of_numbers), rows);
    (!routes.is_empty()).then_some(Block::Table(table))
}

/// The most steps of a timeline that a report lists. All of them are in `events.jsonl`.
const STEPS_LISTED_MAX: usize = 20;

fn steps(figures: &RunFigures) -> Block {
    let listed = figures.steps.iter().take(STEPS_LISTED_MAX);
    let rows = listed.map(|step| {
        let at = format!("at {}", words::nanos(step.at));
        (Text::from(at), Text::from(step.what.as_str()))
    });
    let left_out = figures.steps.len().saturating_sub(STEPS_LISTED_MAX);
    let rest = (left_out > 0).then(|| {
        let more = words::counted(stillwell_units::count(left_out), "more step", "more steps");
        (
            Text::from(more),
            Text::from("all are in events.jsonl of the capture"),
        )
    });
    Block::KeyValue(rows.chain(rest).collect())
}

/// Returns how the target came back from restarts, a sentence each.
fn restarts(figures: &RunFigures) -> Block {
    Block::list(figures.restarts.iter().map(|restart| {
        let ready = match restart.ready_after {
            Some(after) => format!("ready again {} later", words::nanos(after)),
            None => "was not ready again".to_owned(),
        };
        let delivered = restart.delivered_after.map_or_else(String::new, |after| {
            format!(", delivering again {} later", words::nanos(after))
        });
        let how = if restart.killed {
            " (killed, because it did not stop in time)"
        } else {
            ""
        };
        format!(
            "restart: ended after {}{how}, {ready}{delivered}",
            words::nanos(restart.ended_after)
        )
    }))
}

fn of_host(share: f64) -> String {
    format!("{} of the host's CPU time", words::percent(share))
}

fn headline(run: &RunSummary) -> Text {
    let target = &run.target;
    let measured = words::nanos(run.measured);
    if run.warnings.is_empty() {
        return format!("run of {target} completed, {measured} measured").into();
    }
    let why = if run.outcome == RunOutcome::Completed {
        format!(": run of {target}, {measured} measured; these numbers are unreliable")
    } else {
        let reason = run.warnings.iter().find(|warning| is_end(warning));
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        format!(": run of {target} did not complete{reason}")
    };
    Text::answer(Sign::Invalid, "invalid").and(why)
}

/// Returns true for the warning that the headline has.
const fn is_end(warning: &RunWarning) -> bool {
    matches!(warning, RunWarning::NotCompleted { .. })
}

fn rate(generator: &GeneratorFigures) -> Option<String> {
    let achieved = generator.achieved_per_second?;
    let sent = generator.unit.rate(achieved);
    Some(match generator.requested_per_second {
        None => format!("{sent} sent at full speed"),
        Some(requested) => {
            let share = if requested > 0.0 {
                achieved / requested
            } else {
                1.0
            };
            format!(
                "{sent} sent of {} requested ({})",
                generator.unit.rate(requested),
                words::percent(share)
            )
        }
    })
}

/// Bytes and units of work of the measured phase, for each second with load and in all.
fn volume(
    run: &RunSummary,
    work: WorkUnit,
    of: fn(&Totals) -> (Option<f64>, Option<f64>),
) -> Option<String> {
    let active = run.figures.active;
    let length = active.map_or(run.measured, |active| active.min(run.measured));
    let seconds = length.as_secs_f64();
    let (bytes, events) = of(&run.figures.measured);
    let bytes = bytes.filter(|_| seconds > 0.0)?;
    let mut text = format!("{}/s", words::bytes(bytes / seconds));
    if let Some(events) = events {
        text.push_str(&format!(", {}", work.rate(events / seconds)));
    }
    text.push_str(&format!("; {} in all", words::bytes(bytes)));
    if let Some(events) = events {
        text.push_str(&format!(", {} {}", words::grouped(events), work.plural()));
    }
    Some(text)
}

/// Over the whole run: what is still on its way at the end of the measured phase
/// is not lost.
fn loss(whole: &Totals) -> Option<String> {
    let (sent, received) = whole.events_sent.zip(whole.events_received)?;
    if sent <= 0.0 {
        return None;
    }
    let hint = "events may also differ because the target joins, splits or drops them by design";
    Some(if received >= sent {
        let more = received - sent;
        if more > 0.0 {
            format!(
                "none; {} more received than sent ({hint})",
                words::grouped(more)
            )
        } else {
            format!("none of {} over the whole run", words::grouped(sent))
        }
    } else {
        let lost = sent - received;
        format!(
            "{} of {} over the whole run ({}; {hint})",
            words::grouped(lost),
            words::grouped(sent),
            words::percent(lost / sent)
        )
    })
}

fn times(times: TimeQuantiles) -> String {
    format!(
        "p50 {}, p99 {}, p99.9 {}, max {}",
        words::nanos(times.p50),
        words::nanos(times.p99),
        words::nanos(times.p999),
        words::nanos(times.max)
    )
}

fn outcomes(figures: &RunFigures) -> Option<String> {
    let all = figures.outcomes.iter();
    let all = all.map(|entry| {
        format!(
            "{} {}",
            words::grouped(float_from_u64(entry.count)),
            entry.outcome
        )
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn cpu(run: &RunSummary) -> Option<String> {
    let share = run.figures.target_cpu_share?;
    let mut text = format!("{} of one core", words::percent(share));
    if let Some(core) = run.figures.target_core_share {
        let cpus = words::cpus(run.figures.target_cpus.as_deref());
        text.push_str(&format!(", {} of its CPUs ({cpus})", words::percent(core)));
    }
    let work = run.figures.work.singular();
    for (metric, unit) in [
        (GoalMetric::CpuPerEvent, ""),
        (GoalMetric::InstructionsPerEvent, " instructions"),
    ] {
        if let Some(value) = run.value(&metric) {
            let value = words::goal_value(&metric, value);
            text.push_str(&format!(", {value}{unit} per {work}"));
        }
    }
    Some(text)
}

fn memory(figures: &RunFigures) -> Option<String> {
    let parts = [
        ("mean", figures.rss_mean_bytes),
        ("peak", figures.rss_peak_bytes),
        ("proportional mean", figures.pss_mean_bytes),
    ];
    let known = parts
        .into_iter()
        .filter_map(|(word, value)| Some(format!("{word} {}", words::bytes(value?))));
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn remarks(run: &RunSummary) -> Vec<Block> {
    let remark = |severity, text: String| Block::Note(severity, text.into());
    let warnings = run.warnings.iter().filter(|warning| !is_end(warning));
    let mut blocks: Vec<Block> = warnings
        .map(|warning| remark(Severity::Warning, warning.to_string()))
        .collect();
    let checks = run.checks.iter().map(|check| {
        let word = match check.passed {
            CheckPassed::Pass => Text::from("passed"),
            CheckPassed::Fail => Text::bad("failed"),
            CheckPassed::NotMeasured => Text::bad("not measured"),
        };
        let observed = check.observed.map_or_else(String::new, |value| {
            format!(", observed {}", words::check_value(value, &check.unit))
        });
        let bounds = words::bounds(check.upper, check.lower, &check.unit);
        let check = format!("check {} ({bounds}): ", check.name);
        Text::from(check).and(word).and(observed)
    });
    blocks.push(Block::list(checks));
    let notes = run.notes.iter();
    blocks.extend(notes.map(|note| remark(Severity::Note, note.to_string())));
    blocks
}
