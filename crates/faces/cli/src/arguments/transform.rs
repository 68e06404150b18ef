//! What can be typed after `stillwell transform`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};
use stillwell_nighthawk::format::LoadFormat;

const SOURCES: &str = "\
What carries what:
  stillwell  everything: all formats
  nighthawk  counters, options and lists of percentiles: all but hlog and stillwell
  hlog       histograms alone: human, dotted, prometheus, hgrm, hlog
A source that lacks what a format needs is refused.

Exit codes:
  0  written
  2  usage, a source that cannot be read, or one that lacks what the format needs";

/// `stillwell transform`.
#[derive(Args, Debug)]
#[command(after_help = SOURCES)]
pub(crate) struct TransformArguments {
    /// The result of a load; standard input if it is missing or `-`
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What FILE is [default: found out by its content]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) from: Option<TransformSource>,
    /// In which form to tell it: human, nighthawk-human, json, yaml, dotted, csv,
    /// prometheus, fortio, experimental_fortio_pedantic, hgrm, hlog or stillwell
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_parser = LoadFormat::from_str)]
    pub(crate) output_format: LoadFormat,
    /// Which statistic hgrm tells [default: stillwell.response_time, or
    /// benchmark_http_client.request_to_response where it is missing]
    #[arg(long, value_name = "ID")]
    pub(crate) statistic: Option<String>,
}

/// What a result is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TransformSource {
    /// Our own JSON.
    Stillwell,
    /// Nighthawk's JSON.
    Nighthawk,
    /// Nighthawk's YAML.
    NighthawkYaml,
    /// A log of histograms.
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
    /// json, human, yaml, dotted, fortio, experimental_fortio_pedantic, csv or
    /// prometheus
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output_format: NighthawkTransformFormat,
    /// Everything behind `--` is ignored
    #[arg(last = true, hide = true)]
    ignored: Vec<String>,
}

/// The formats that the tool has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NighthawkTransformFormat(pub(crate) LoadFormat);

impl FromStr for NighthawkTransformFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [
            ("json", LoadFormat::Json),
            ("human", LoadFormat::NighthawkHuman),
            ("yaml", LoadFormat::Yaml),
            ("dotted", LoadFormat::Dotted),
            ("fortio", LoadFormat::Fortio),
            ("experimental_fortio_pedantic", LoadFormat::FortioPedantic),
            ("csv", LoadFormat::Csv),
            ("prometheus", LoadFormat::Prometheus),
        ];
        let found = known.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| Self(format)).ok_or_else(|| {
            let names = known.map(|(name, _)| name);
            format!("must be one of {}", names.join(", "))
        })
    }
}
