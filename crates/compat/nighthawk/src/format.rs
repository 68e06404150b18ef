//! The formats of a load's result, and the data that each of them needs.

use std::fmt;
use std::str::FromStr;

use stillwell_report::Style;
use stillwell_report::load::hgrm::{self, PercentileRow, PercentileTable};
use stillwell_report::load::percentile::is_tick;
use stillwell_report::load::{
    BriefLoad, HistogramLog, LoadJsonError, LoadReport, human, id, read_load_json, write_load_json,
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

/// Format of a load's result.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LoadFormat {
    /// For readers.
    Human,
    /// The most important figures as JSON, for programs.
    Json,
    /// The same as CSV: a name and a value in each line.
    Csv,
    /// For readers, in Nighthawk's layout.
    NighthawkHuman,
    /// The JSON form of `nighthawk.client.Output`.
    NighthawkJson,
    /// YAML of the same shape.
    NighthawkYaml,
    /// One line a number.
    NighthawkDotted,
    /// As Nighthawk's layout for readers, with commas.
    NighthawkCsv,
    /// Prometheus' text, with Nighthawk's names.
    NighthawkPrometheus,
    /// fortio's shape, as Nighthawk writes it.
    Fortio,
    /// fortio's shape with the types that fortio itself reads.
    FortioPedantic,
    /// HdrHistogram's text of percentiles.
    Hgrm,
    /// HdrHistogram's log of intervals.
    Hlog,
    /// All that there is, for programs.
    Stillwell,
}

impl LoadFormat {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Human,
        Self::Json,
        Self::Csv,
        Self::NighthawkHuman,
        Self::NighthawkJson,
        Self::NighthawkYaml,
        Self::NighthawkDotted,
        Self::NighthawkCsv,
        Self::NighthawkPrometheus,
        Self::Fortio,
        Self::FortioPedantic,
        Self::Hgrm,
        Self::Hlog,
        Self::Stillwell,
    ];

    /// Name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::NighthawkHuman => "nighthawk-human",
            Self::NighthawkJson => "nighthawk-json",
            Self::NighthawkYaml => "nighthawk-yaml",
            Self::NighthawkDotted => "nighthawk-dotted",
            Self::NighthawkCsv => "nighthawk-csv",
            Self::NighthawkPrometheus => "nighthawk-prometheus",
            Self::Fortio => "fortio",
            Self::FortioPedantic => "experimental_fortio_pedantic",
            Self::Hgrm => "hgrm",
            Self::Hlog => "hlog",
            Self::Stillwell => "stillwell",
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
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.name() == text)
            .ok_or_else(|| LoadFormatError {
                typed: text.to_owned(),
            })
    }
}

/// A form that is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{typed}` is not a format of a load result: there are {}", names())]
pub struct LoadFormatError {
    /// The text as typed.
    pub typed: String,
}

fn names() -> String {
    LoadFormat::ALL.map(LoadFormat::name).join(", ")
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
    /// No statistic of this name has a distribution.
    #[error("there is no distribution of `{id}`; there is one of {}", .known.join(", "))]
    NoDistribution {
        /// Requested statistic.
        id: String,
        /// Statistics with a distribution.
        known: Vec<String>,
    },
}

/// A load, in this form; `style` is for [`LoadFormat::Human`]. A histogram's text
/// is of latency from the intended time, or of `statistic`.
///
/// # Errors
/// [`LoadRenderError::NoDistribution`] where that statistic has none.
pub fn render_load(
    report: &LoadReport,
    format: LoadFormat,
    statistic: Option<&str>,
    style: Style,
) -> Result<String, LoadRenderError> {
    let output = || nighthawk_output(report);
    let global = || nighthawk_result(&report.global);
    Ok(match format {
        LoadFormat::Human => human::human(report, style),
        LoadFormat::Json => BriefLoad::of(report).to_json(),
        LoadFormat::Csv => BriefLoad::of(report).to_csv(),
        LoadFormat::NighthawkHuman => layout::human(&global()),
        LoadFormat::NighthawkJson => write_json(&output()),
        LoadFormat::NighthawkYaml => write_yaml(&output()),
        LoadFormat::NighthawkDotted => layout::dotted(&output()),
        LoadFormat::NighthawkCsv => layout::csv(&global()),
        LoadFormat::NighthawkPrometheus => layout::prometheus(&output()),
        LoadFormat::Fortio | LoadFormat::FortioPedantic => {
            let rate = report
                .options
                .original
                .is_none()
                .then_some(report.options.rate);
            layout::fortio(&output(), &global(), rate, types(format))
        }
        LoadFormat::Hgrm => {
            let all = &report.global.statistics;
            let default = [id::RESPONSE_TIME, id::REQUEST_TO_RESPONSE];
            let by_id = all.iter().map(|statistic| (&*statistic.id, statistic));
            distribution(by_id.collect(), statistic, &default, hgrm::of_load)?
        }
        LoadFormat::Hlog => HistogramLog::of(report).write(&report.version),
        LoadFormat::Stillwell => write_load_json(report),
    })
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
    Ok(match format {
        LoadFormat::Human | LoadFormat::NighthawkHuman => layout::human(global()?),
        LoadFormat::NighthawkJson => write_json(output),
        LoadFormat::NighthawkYaml => write_yaml(output),
        LoadFormat::NighthawkDotted => layout::dotted(output),
        LoadFormat::NighthawkCsv => layout::csv(global()?),
        LoadFormat::NighthawkPrometheus => layout::prometheus(output),
        LoadFormat::Fortio | LoadFormat::FortioPedantic => {
            layout::fortio(output, global()?, None, types(format))
        }
        LoadFormat::Hgrm => hgrm_of_result(global()?, statistic)?,
        LoadFormat::Hlog => return Err(cannot("histograms, only lists of percentiles")),
        LoadFormat::Json | LoadFormat::Csv => return Err(cannot("outcomes")),
        LoadFormat::Stillwell => return Err(cannot("histograms and no schedule")),
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
    let result = log.to_result();
    let result_message = || nighthawk_result(&result);
    let output = || Output {
        results: vec![result_message()],
        ..Output::default()
    };
    Ok(match format {
        LoadFormat::Human => human::statistics(&result.statistics),
        LoadFormat::NighthawkDotted => layout::dotted(&output()),
        LoadFormat::NighthawkPrometheus => layout::prometheus(&output()),
        LoadFormat::Hgrm => {
            let by_id = result
                .statistics
                .iter()
                .map(|statistic| (&*statistic.id, statistic));
            let first = result
                .statistics
                .first()
                .map_or("", |statistic| &*statistic.id);
            let default = [id::RESPONSE_TIME, first];
            distribution(by_id.collect(), statistic, &default, hgrm::of_load)?
        }
        LoadFormat::Hlog => log.write(version),
        LoadFormat::Json
        | LoadFormat::Csv
        | LoadFormat::NighthawkHuman
        | LoadFormat::NighthawkJson
        | LoadFormat::NighthawkYaml
        | LoadFormat::NighthawkCsv
        | LoadFormat::Fortio
        | LoadFormat::FortioPedantic
        | LoadFormat::Stillwell => {
            return Err(LoadRenderError::CannotCarry {
                source_name: "a log of histograms",
                format,
                missing: "counters and no options",
            });
        }
    })
}

const fn types(format: LoadFormat) -> Fortio {
    match format {
        LoadFormat::FortioPedantic => Fortio::Pedantic,
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
    distribution(by_id.collect(), statistic, &default, hgrm_text)
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

/// Returns the text of the requested statistic, or of the first of `default` that exists.
fn distribution<T>(
    all: Vec<(&str, &T)>,
    requested: Option<&str>,
    default: &[&str],
    text: fn(&T) -> Option<String>,
) -> Result<String, LoadRenderError> {
    let wanted = requested.map_or_else(|| default.to_vec(), |requested| vec![requested]);
    let find = |id: &&str| {
        let (_, statistic) = all.iter().find(|(name, _)| name == id)?;
        text(statistic)
    };
    wanted.iter().find_map(find).ok_or_else(|| {
        let known = all
            .iter()
            .filter(|(_, statistic)| text(statistic).is_some());
        LoadRenderError::NoDistribution {
            id: wanted
                .first()
                .map_or_else(String::new, |id| (*id).to_owned()),
            known: known.map(|(id, _)| (*id).to_owned()).collect(),
        }
    })
}

#[cfg(test)]
mod tests;
