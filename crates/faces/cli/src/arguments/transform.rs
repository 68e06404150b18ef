//! Arguments of `stillwell transform`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};
use stillwell_nighthawk::format::{LoadFormat, NighthawkFormat};

const SOURCES: &str = "\
Formats that each source can be converted to:
  stillwell  all formats
  nighthawk  human, hgrm, fortio and all that begin with nighthawk-
  hlog       human, hgrm, hlog, nighthawk-dotted, nighthawk-prometheus

Example:
  stillwell load http://127.0.0.1:8080/ --format stillwell | stillwell transform --format fortio

Exit codes:
  0  converted
  2  usage, an unreadable source, or one that lacks data for the format";

/// `stillwell transform`.
#[derive(Args, Debug)]
#[command(after_help = SOURCES)]
pub(crate) struct TransformArguments {
    /// Result of a load [default: standard input, also `-`]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Format of FILE [default: detected]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) from: Option<TransformSource>,
    /// Output format: human, json, csv, stillwell, hgrm, hlog, fortio, fortio-2020,
    /// experimental_fortio_pedantic, nighthawk-human, nighthawk-human-2020, nighthawk-json,
    /// nighthawk-yaml, nighthawk-dotted, nighthawk-csv or nighthawk-prometheus
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_parser = LoadFormat::from_str)]
    pub(crate) output_format: LoadFormat,
    /// Statistic for hgrm [default: stillwell.response_time, or
    /// benchmark_http_client.request_to_response where it is missing]
    #[arg(long, value_name = "ID")]
    pub(crate) statistic: Option<String>,
}

/// Formats of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TransformSource {
    /// JSON of `--format stillwell`.
    Stillwell,
    /// Nighthawk's JSON.
    Nighthawk,
    /// Nighthawk's YAML.
    NighthawkYaml,
    /// HdrHistogram log.
    Hlog,
}

/// `nighthawk_output_transform`: Nighthawk's JSON on standard input.
#[derive(Debug, Parser)]
#[command(
    name = "nighthawk_output_transform",
    version,
    override_usage = "nighthawk_output_transform --output-format <FORMAT> [--version] [-h]\n\nUSAGE in full: \
        Nighthawk's JSON is read from standard input and written in another format"
)]
pub(crate) struct NighthawkTransformArguments {
    /// json, human, yaml, dotted, fortio, experimental_fortio_pedantic, csv, prometheus,
    /// human-2020 or fortio-2020
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output_format: NighthawkTransformFormat,
    /// Words after `--` are ignored
    #[arg(last = true, hide = true)]
    ignored: Vec<String>,
}

/// Formats of the tool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NighthawkTransformFormat(pub(crate) NighthawkFormat);

impl FromStr for NighthawkTransformFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [
            ("json", NighthawkFormat::Json),
            ("human", NighthawkFormat::Human),
            ("human-2020", NighthawkFormat::Human2020),
            ("yaml", NighthawkFormat::Yaml),
            ("dotted", NighthawkFormat::Dotted),
            ("fortio", NighthawkFormat::Fortio),
            ("fortio-2020", NighthawkFormat::Fortio2020),
            (
                "experimental_fortio_pedantic",
                NighthawkFormat::FortioPedantic,
            ),
            ("csv", NighthawkFormat::Csv),
            ("prometheus", NighthawkFormat::Prometheus),
        ];
        let format = known.into_iter().find(|(name, _)| *name == text);
        format.map(|(_, format)| Self(format)).ok_or_else(|| {
            let names = known.map(|(name, _)| name);
            format!("must be one of {}", names.join(", "))
        })
    }
}
