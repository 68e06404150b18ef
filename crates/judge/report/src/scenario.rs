//! The result of a scenario: a row for each step, for readers and for programs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_units::human::{count, nanos};
use stillwell_units::{Nanos, float_from_u64};

use crate::document::{Block, Cell, Column, Document, Sign, Table, Text};
use crate::load::{BRIEF_LOAD_SCHEMA, BriefLoad, BriefRoute, BriefTimes, BriefWarning};
use crate::{Format, FullReport, Style, words};

/// Names the shape of the JSON; keys are added within a version and never removed.
pub const SCENARIO_SCHEMA: &str = "stillwell/scenario-summary/v1";

/// The content of a scenario's report. Times in JSON are in seconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioReport {
    /// [`SCENARIO_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command that was typed.
    pub command: String,
    /// Seed of all random choices.
    pub seed: String,
    /// Host and port of the target.
    pub target: String,
    /// Users, for readers.
    pub load: String,
    /// `HTTP/1.1` or `HTTP/2`.
    #[serde(default)]
    pub protocol: String,
    /// True if users arrive at a rate.
    #[serde(default)]
    pub open_loop: bool,
    /// Threads of the generator.
    #[serde(default)]
    pub workers: u32,
    /// Maximum number of users at a time; each has a connection.
    #[serde(default)]
    pub users_max: u32,
    /// Wall clock at the start: milliseconds since 1970.
    #[serde(default)]
    pub started_wall_millis: Option<u64>,
    /// Length of the measured time, in seconds.
    pub duration: f64,
    /// Number of users by their end.
    pub users: ScenarioUsers,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that ended in the measured time, per second.
    pub requests_per_second: f64,
    /// Share of requests that failed.
    pub error_share: f64,
    /// Steps, in the order of flows and steps.
    pub steps: Vec<ScenarioStep>,
    /// Latency of all steps together.
    pub latency: Option<BriefTimes>,
    /// Strictness of the limits: `strict`, `normal` or `off`.
    pub validity: String,
    /// False if a warning says that the generator distorted the result.
    pub reliable: bool,
    /// Warnings, the worst first.
    pub warnings: Vec<BriefWarning>,
    /// Thresholds, each with its result.
    pub thresholds: Vec<ScenarioThreshold>,
}

/// A threshold of a scenario.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioThreshold {
    /// The bound, such as `p99<20ms`.
    pub bound: String,
    /// Measured figure, for readers.
    pub measured: String,
    /// True if the threshold holds.
    pub held: bool,
}

/// Number of users by their end.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ScenarioUsers {
    /// Started.
    pub started: u64,
    /// Followed all steps.
    pub completed: u64,
    /// Ended by a step that failed.
    pub failed: u64,
    /// On their way at the end.
    pub unfinished: u64,
    /// Arrived while the maximum number of users was on its way.
    pub not_started: u64,
}

/// Results of one step.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioStep {
    /// Flow; empty if there is only one.
    pub flow: String,
    /// Step.
    pub name: String,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Failed requests by reason.
    pub failures: BTreeMap<String, u64>,
    /// Description of the first failure.
    pub first_failure: Option<String>,
    /// Responses by status code.
    pub status_codes: BTreeMap<u16, u64>,
    /// Time from the moment at which the step was due to the end of its response.
    pub latency: Option<BriefTimes>,
}

impl ScenarioReport {
    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    /// A sentence fragment: `text` is no report of a scenario, or one of an earlier version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let report: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match report.schema == SCENARIO_SCHEMA {
            true => Ok(report),
            false => Err(format!("its schema is not {SCENARIO_SCHEMA}")),
        }
    }

    /// Returns the figures of a load, in which each step is a route.
    #[must_use]
    pub fn summary(&self) -> BriefLoad {
        let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
        let mut status_codes: BTreeMap<u16, u64> = BTreeMap::new();
        let errors = self.steps.iter().map(|step| step.errors).sum();
        outcomes.insert("ok".to_owned(), self.requests.saturating_sub(errors));
        for step in &self.steps {
            for (reason, count) in &step.failures {
                *outcomes.entry(reason.clone()).or_default() += count;
            }
            for (status, count) in &step.status_codes {
                *status_codes.entry(*status).or_default() += count;
            }
        }
        let routes = self.steps.iter().map(|step| BriefRoute {
            name: label(step),
            requests: step.requests,
            error_share: share(step.errors, step.requests),
            status_codes: step.status_codes.clone(),
            latency: step.latency.clone(),
            service_time: None,
            first_byte: None,
        });
        BriefLoad {
            schema: BRIEF_LOAD_SCHEMA.to_owned(),
            version: self.version.clone(),
            command: self.command.clone(),
            seed: self.seed.clone(),
            // Loads with other users are not compared with each other.
            targets: vec![format!("{}: {}", self.target, self.load)],
            protocol: self.protocol.clone(),
            open_loop: self.open_loop,
            workers: self.workers,
            connections: self.users_max,
            started_wall_millis: self.started_wall_millis,
            duration: self.duration,
            requests: self.requests,
            requests_per_second: self.requests_per_second,
            requested_per_second: None,
            rate_per_second: None,
            requests_not_sent: 0,
            error_share: self.error_share,
            outcomes,
            status_codes,
            routes: routes.collect(),
            bytes_received: 0,
            bytes_sent: 0,
            latency: self.latency.clone(),
            service_time: None,
            first_byte: None,
            connect: None,
            tls_handshake: None,
            validity: self.validity.clone(),
            reliable: self.reliable,
            warnings: self.warnings.clone(),
            ended_because: String::new(),
        }
    }
}

impl From<&ScenarioReport> for FullReport {
    fn from(report: &ScenarioReport) -> Self {
        Self {
            document: document(report),
            data: scenario_json(report),
            page_data: None,
        }
    }
}

/// Returns the report in a form of reports.
#[must_use]
pub fn render_scenario(report: &ScenarioReport, format: Format, style: Style) -> String {
    format.render(style, || document(report), || scenario_json(report))
}

fn scenario_json(report: &ScenarioReport) -> String {
    let text = serde_json::to_string_pretty(report);
    text.expect("every key is a text and every number finite") + "\n"
}

fn document(report: &ScenarioReport) -> Document {
    let title = format!("{}: {}", report.target, report.load);
    let title = match report.reliable {
        true => Text::from(title),
        false => Text::answer(Sign::Invalid, "unreliable").and(format!(": {title}")),
    };
    let mut blocks = vec![
        Block::KeyValue(totals(report)),
        Block::group([Block::Table(table(report))]),
    ];
    let failures = report.steps.iter().filter_map(|step| {
        let first = step.first_failure.as_ref()?;
        let share = words::percent(share(step.errors, step.requests));
        let errors = count(step.errors);
        Some(format!(
            "{}: {errors} failed ({share}); first: {first}",
            label(step)
        ))
    });
    let failures: Vec<String> = failures.collect();
    if !failures.is_empty() {
        blocks.push(Block::group([Block::list(failures)]));
    }
    let kept = report.thresholds.iter().map(|threshold| {
        let word = if threshold.held { "held" } else { "broken" };
        format!(
            "threshold {} {word}: {}",
            threshold.bound, threshold.measured
        )
    });
    let warnings = report.warnings.iter();
    let warnings = warnings.map(|warning| format!("warning: {}", warning.text));
    let lines: Vec<String> = warnings.chain(kept).collect();
    if !lines.is_empty() {
        blocks.push(Block::group([Block::list(lines)]));
    }
    let origin = format!(", seed {}, Stillwell {}", report.seed, report.version);
    Document::new([
        Block::section(1, title, blocks),
        Block::Colophon(Text::code(&report.command).and(origin)),
    ])
}

fn totals(report: &ScenarioReport) -> Vec<(Text, Text)> {
    let users = &report.users;
    let mut parts = vec![format!("{} completed", count(users.completed))];
    for (number, noun) in [
        (users.failed, "failed"),
        (users.unfinished, "unfinished at the end"),
        (users.not_started, "not started: too many at a time"),
    ] {
        if number > 0 {
            parts.push(format!("{} {noun}", count(number)));
        }
    }
    let per_second = words::grouped(report.requests_per_second);
    let requests = format!(
        "{} in {}, {per_second}/s, {} failed",
        count(report.requests),
        words::clock(Nanos::from_secs_f64(report.duration)),
        words::percent(report.error_share)
    );
    vec![
        ("users".into(), parts.join(", ").into()),
        ("requests".into(), requests.into()),
    ]
}

fn table(report: &ScenarioReport) -> Table {
    let mut columns = vec![Column::named("step")];
    let numbers = ["requests", "errors", "p50", "p90", "p99", "max"];
    columns.extend(numbers.map(Column::of_numbers));
    let rows = report.steps.iter().map(|step| {
        let time = |value: fn(&BriefTimes) -> f64| match &step.latency {
            None => Cell::default(),
            Some(times) => {
                let value = value(times);
                Cell::number(nanos(Nanos::from_secs_f64(value)), value, "s")
            }
        };
        let number = |number: u64| Cell::number(count(number), float_from_u64(number), "");
        vec![
            Cell {
                text: label(step).into(),
                datum: None,
            },
            number(step.requests),
            number(step.errors),
            time(|times| times.p50),
            time(|times| times.p90),
            time(|times| times.p99),
            time(|times| times.max),
        ]
    });
    Table::new(columns, rows)
}

fn label(step: &ScenarioStep) -> String {
    match step.flow.as_str() {
        "" => step.name.clone(),
        flow => format!("{flow}: {}", step.name),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    float_from_u64(part) / float_from_u64(whole.max(1))
}
