//! Nighthawk's formats of a load's result, and the data that each of them needs.

use std::fmt;
use std::str::FromStr;

use stillwell_metric::empty_histogram;
use stillwell_report::load::hgrm::{self, PercentileRow, PercentileTable};
use stillwell_report::load::percentile::is_tick;
use stillwell_report::load::{
    GLOBAL, HistogramLog, LoadJsonError, LoadReport, LoadStatistic, NativeLoadFormat,
    NoDistribution, distribution, human, id, read_load_json,
};
use stillwell_units::float_from_u64;

use crate::{
    CommandLineOptions, Output, Quantity, Statistic, WorkerResult, write_json, write_yaml,
};

mod layout;
mod message;

use layout::Fortio;
pub(crate) use message::{GRPC_MODE, sort_counters};
pub use message::{nighthawk_output, nighthawk_result};

/// Format of a load's result, as Nighthawk or fortio writes it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NighthawkFormat {
    /// For readers, in Nighthawk's layout.
    Human,
    /// The same in its layout of 2020.
    Human2020,
    /// The JSON form of `nighthawk.client.Output`.
    Json,
    /// YAML of the same shape.
    Yaml,
    /// One line a number.
    Dotted,
    /// As Nighthawk's layout for readers, with commas.
    Csv,
    /// Prometheus' text, with Nighthawk's names.
    Prometheus,
    /// fortio's shape, as Nighthawk writes it.
    Fortio,
    /// The same as Nighthawk wrote it in early 2020.
    Fortio2020,
    /// fortio's shape with the types that fortio itself reads.
    FortioPedantic,
}

impl NighthawkFormat {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Human,
        Self::Human2020,
        Self::Json,
        Self::Yaml,
        Self::Dotted,
        Self::Csv,
        Self::Prometheus,
        Self::Fortio,
        Self::Fortio2020,
        Self::FortioPedantic,
    ];

    /// Name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "nighthawk-human",
            Self::Human2020 => "nighthawk-human-2020",
            Self::Json => "nighthawk-json",
            Self::Yaml => "nighthawk-yaml",
            Self::Dotted => "nighthawk-dotted",
            Self::Csv => "nighthawk-csv",
            Self::Prometheus => "nighthawk-prometheus",
            Self::Fortio => "fortio",
            Self::Fortio2020 => "fortio-2020",
            Self::FortioPedantic => "experimental_fortio_pedantic",
        }
    }
}

/// Format of a load's result: native, or of Nighthawk.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LoadFormat {
    /// Rendered by [`stillwell_report::load::render_load`].
    Native(NativeLoadFormat),
    /// Rendered by [`render_as`].
    Nighthawk(NighthawkFormat),
}

impl LoadFormat {
    /// For readers, the default.
    pub const HUMAN: Self = Self::Native(NativeLoadFormat::Human);

    /// All of them, native ones first.
    pub fn all() -> impl Iterator<Item = Self> {
        let native = NativeLoadFormat::ALL.into_iter().map(Self::Native);
        native.chain(NighthawkFormat::ALL.into_iter().map(Self::Nighthawk))
    }

    /// Name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native(format) => format.name(),
            Self::Nighthawk(format) => format.name(),
        }
    }
}

impl fmt::Display for LoadFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LoadFormat {
    type Err = LoadFormatError;

    fn from_str(text: &str) -> Result<Self, LoadFormatError> {
        Self::all()
            .find(|format| format.name() == text)
            .ok_or_else(|| LoadFormatError {
                typed: text.to_owned(),
            })
    }
}

/// A form that is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{typed}` is not a format of a load result: the formats are {}",
    names()
)]
pub struct LoadFormatError {
    /// The text as typed.
    pub typed: String,
}

fn names() -> String {
    let names: Vec<&str> = LoadFormat::all().map(LoadFormat::name).collect();
    names.join(", ")
}

/// A result that a format cannot hold.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadRenderError {
    /// The source does not hold what the form needs.
    #[error("{source_name} cannot be written as {format}: it has no {missing}")]
    CannotCarry {
        /// Name of the source.
        source_name: &'static str,
        /// The form.
        format: LoadFormat,
        /// The missing data.
        missing: &'static str,
    },
    /// A statistic has no distribution.
    #[error(transparent)]
    NoDistribution(#[from] NoDistribution),
}

/// Returns a load in this format.
#[must_use]
pub fn render_as(report: &LoadReport, format: NighthawkFormat) -> String {
    let output = || nighthawk_output(report);
    // With what Nighthawk adds to its results.
    let global = || {
        let mut results = output().results.into_iter();
        let global = results.find(|result| result.name == GLOBAL);
        global.unwrap_or_else(|| nighthawk_result(&report.global))
    };
    match format {
        NighthawkFormat::Human => layout::human(&global()),
        NighthawkFormat::Human2020 => layout::human_2020(&global()),
        NighthawkFormat::Json => write_json(&output()),
        NighthawkFormat::Yaml => write_yaml(&output()),
        NighthawkFormat::Dotted => layout::dotted(&output()),
        NighthawkFormat::Csv => layout::csv(&global()),
        NighthawkFormat::Prometheus => layout::prometheus(&output()),
        fortio @ (NighthawkFormat::Fortio
        | NighthawkFormat::Fortio2020
        | NighthawkFormat::FortioPedantic) => {
            let options = &report.options;
            let rate = options.original.is_none().then_some(options.rate);
            layout::fortio(&output(), &global(), rate, fortio_form(fortio))
        }
    }
}

/// Reads a load's result in Stillwell's own form, and checks the options that it has
/// in Nighthawk's words.
///
/// # Errors
/// [`LoadJsonError`] names the mistake.
pub fn read_load(text: &str) -> Result<LoadReport, LoadJsonError> {
    let report = read_load_json(text)?;
    if let Some(original) = &report.options.original {
        let read = serde_json::from_value::<CommandLineOptions>(original.clone());
        read.map_err(|error| LoadJsonError::Json {
            problem: error.to_string(),
        })?;
    }
    Ok(report)
}

/// A result of Nighthawk, in this form.
///
/// # Errors
/// [`LoadRenderError`] where the form needs what such a result does not hold: the
/// histograms themselves, or times from the intended time on; or where there is
/// no result of all workers.
pub fn render_nighthawk(
    output: &Output,
    format: LoadFormat,
    statistic: Option<&str>,
) -> Result<String, LoadRenderError> {
    let cannot = |missing| LoadRenderError::CannotCarry {
        source_name: "a result of Nighthawk",
        format,
        missing,
    };
    let global = || {
        let global = output.global();
        global.ok_or_else(|| cannot("result named `global`"))
    };
    use NativeLoadFormat as Native;
    use NighthawkFormat as Nighthawk;
    Ok(match format {
        LoadFormat::HUMAN | LoadFormat::Nighthawk(Nighthawk::Human) => layout::human(global()?),
        LoadFormat::Nighthawk(Nighthawk::Human2020) => layout::human_2020(global()?),
        LoadFormat::Nighthawk(Nighthawk::Json) => write_json(output),
        LoadFormat::Nighthawk(Nighthawk::Yaml) => write_yaml(output),
        LoadFormat::Nighthawk(Nighthawk::Dotted) => layout::dotted(output),
        LoadFormat::Nighthawk(Nighthawk::Csv) => layout::csv(global()?),
        LoadFormat::Nighthawk(Nighthawk::Prometheus) => layout::prometheus(output),
        LoadFormat::Nighthawk(
            fortio @ (Nighthawk::Fortio | Nighthawk::Fortio2020 | Nighthawk::FortioPedantic),
        ) => layout::fortio(output, global()?, None, fortio_form(fortio)),
        LoadFormat::Native(Native::Hgrm) => hgrm_of_result(global()?, statistic)?,
        LoadFormat::Native(Native::Hlog) => {
            return Err(cannot("histograms, only lists of percentiles"));
        }
        LoadFormat::Native(Native::Json | Native::Csv) => return Err(cannot("outcomes")),
        LoadFormat::Native(Native::Stillwell) => {
            return Err(cannot("histograms and no schedule"));
        }
    })
}

/// A log of histograms, in this form; `version` is ours.
///
/// # Errors
/// [`LoadRenderError`] where the form needs what a log does not hold: counters
/// and options.
pub fn render_log(
    log: &HistogramLog,
    format: LoadFormat,
    statistic: Option<&str>,
    version: &str,
) -> Result<String, LoadRenderError> {
    let output = || Output {
        results: vec![nighthawk_result(&log.to_result())],
        ..Output::default()
    };
    Ok(match format {
        LoadFormat::HUMAN => human::statistics(&log.to_result().statistics),
        LoadFormat::Nighthawk(NighthawkFormat::Dotted) => layout::dotted(&output()),
        LoadFormat::Nighthawk(NighthawkFormat::Prometheus) => layout::prometheus(&output()),
        LoadFormat::Native(NativeLoadFormat::Hgrm) => {
            let result = log.to_result();
            let all = result.statistics.iter();
            let by_id = all.map(|statistic| (&*statistic.id, statistic));
            let first = by_id.clone().next().map_or("", |(id, _)| id);
            let default = [id::RESPONSE_TIME, first];
            distribution(by_id, statistic, &default, hgrm::of_load)?
        }
        LoadFormat::Native(NativeLoadFormat::Hlog) => log.write(version),
        LoadFormat::Native(_) | LoadFormat::Nighthawk(_) => {
            return Err(LoadRenderError::CannotCarry {
                source_name: "a log of histograms",
                format,
                missing: "counters and no options",
            });
        }
    })
}

const fn fortio_form(format: NighthawkFormat) -> Fortio {
    match format {
        NighthawkFormat::Fortio2020 => Fortio::Nighthawk2020,
        NighthawkFormat::FortioPedantic => Fortio::Pedantic,
        _ => Fortio::Nighthawk,
    }
}

fn hgrm_of_result(
    global: &WorkerResult,
    statistic: Option<&str>,
) -> Result<String, LoadRenderError> {
    let by_id = global
        .statistics
        .iter()
        .map(|statistic| (&*statistic.id, statistic));
    // Ours are in what `load` itself wrote.
    let default = [id::RESPONSE_TIME, id::REQUEST_TO_RESPONSE];
    if statistic.is_none()
        && let Some(empty) = empty_hgrm(global, &default)
    {
        return Ok(empty);
    }
    Ok(distribution(by_id, statistic, &default, hgrm_text)?)
}

/// Returns the table of a result without a response, as `load` writes it; `None` if there may be responses: one of
/// `latencies` has samples, or all are missing although another tool measured something.
fn empty_hgrm(global: &WorkerResult, latencies: &[&str]) -> Option<String> {
    let all = &global.statistics;
    let mut present = latencies
        .iter()
        .filter_map(|id| all.iter().find(|statistic| statistic.id == **id));
    let is_empty = |statistic: &Statistic| {
        let mut entries = statistic.percentiles.iter();
        statistic.count == 0 && entries.all(|entry| entry.count == 0)
    };
    // `load` leaves out statistics without samples.
    let is_ours = |statistic: &Statistic| statistic.id.starts_with(id::STILLWELL_PREFIX);
    let has_no_response = match present.clone().next() {
        Some(_) => present.clone().all(is_empty),
        None => all.iter().any(is_ours) || all.iter().all(is_empty),
    };
    let first = present.next();
    let name = first.map_or(id::RESPONSE_TIME, |latency| latency.id.as_str());
    let empty = has_no_response.then(|| LoadStatistic::of_times(name, &empty_histogram()))?;
    hgrm::of_load(&empty)
}

/// Returns HdrHistogram's text of one statistic. Only the ticks of its list are written: then
/// the rows of two files match.
fn hgrm_text(statistic: &Statistic) -> Option<String> {
    let number = |value: Option<Quantity>| match value {
        Some(Quantity::Time(time)) => float_from_u64(time.as_u64()),
        Some(Quantity::Raw(value)) => value,
        None => 0.0,
    };
    let entries = statistic.percentiles.iter();
    let entries = entries.filter(|entry| is_tick(entry.percentile));
    hgrm::of_table(&PercentileTable {
        id: &statistic.id,
        is_time: matches!(statistic.max, Some(Quantity::Time(_))),
        rows: entries
            .map(|entry| PercentileRow {
                value: number(entry.value),
                share: entry.percentile,
                count: entry.count,
            })
            .collect(),
        mean: number(statistic.mean),
        pstdev: number(statistic.pstdev),
        max: number(statistic.max),
        count: statistic.count,
    })
}

#[cfg(test)]
mod tests;
