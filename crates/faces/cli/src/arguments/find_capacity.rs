//! Arguments of `stillwell find-capacity`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};
use stillwell_config::parse_rate;
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::{RateShape, RateUnit};
use stillwell_units::{Nanos, Seed};

use super::LoadFleetArguments;
use super::count::within;
use super::load::{
    LoadArguments, LoadConnectingArguments, LoadGrpcArguments, LoadOverArguments,
    LoadRequestArguments, LoadShapeArguments, LoadStatsArguments, LoadTlsArguments,
    LoadTraceArguments, LoadTunnelArguments,
};
use super::{ValidityArgument, parse_share};

const NOTES: &str = "\
Bounds:
  p99<20ms p50<1ms p99.9<1s   latency from the intended time; for a URL, requests
                              without a response count as infinitely late
  mean<5ms max<1s             latency of answered requests
  errors<0.1%                 requests that failed or were not answered
  loss<0.01%                  requests without a response; for a run, lost events
  throughput>99%              sent / requested rate; for a run, received / sent if
                              that is lower
Added unless a bound is about the same figure: for a URL errors<1%; for a run
throughput>99%, with loss<1% if events are stamped and there is a sink, else with
errors<1% if the generator gets responses.

With --objective knee, --connections is the maximum; for a run, the connections of
its generator, which sends at full speed.

A probe is repeated if the generator was the limit, or if it missed its rate although
all bounds held. The result is confirmed by probes just below and above it.

Example:
  stillwell find-capacity http://127.0.0.1:8080/ --bound 'p99<20ms'

Exit codes:
  0        the capacity was found and confirmed, or bounds hold at the highest rate
  1        bounds fail at the lowest rate
  2        usage
  3        could not run: unknown host, or connection refused
  4        unreliable: not confirmed, or the generator was the limit
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT); the
           result so far is printed";

/// `stillwell find-capacity`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct FindCapacityArguments {
    /// URL or WEIGHT*URL as for `load`, repeatable; or a single-run or experiment file, whose
    /// generator's rate is varied
    #[arg(value_name = "URL|FILE", required_unless_present_any = ["requests_file", "har"])]
    pub(crate) urls: Vec<String>,
    /// Bound that must hold, such as p99<20ms; repeatable
    #[arg(long, value_name = "BOUND")]
    pub(crate) bound: Vec<CapacityBound>,
    /// Objective of the search: the highest rate at which bounds hold, or the number of
    /// connections with the best ratio of throughput to latency
    #[arg(long, value_enum, default_value_t = Objective::Bounds)]
    pub(crate) objective: Objective,
    /// Lowest rate, which is probed first [default: 100/s; for a run, a tenth of the
    /// rate in its file]
    #[arg(long, value_name = "RATE")]
    pub(crate) from: Option<CapacityRate>,
    /// Highest rate [default: 1M/s; for a run, a hundred times the rate in its file]
    #[arg(long, value_name = "RATE")]
    pub(crate) to: Option<CapacityRate>,
    /// Precision of the result, as a share of it
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = share)]
    pub(crate) within: f64,
    /// Length of each probe; longer if a quantile needs more requests
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) probe: Nanos,
    /// Warm-up at the same rate before each probe [default: a quarter of the probe]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Pause between probes
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) cooldown: Nanos,
    /// Probes at each confirmed rate; with --objective knee, at each number of connections
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within::<u32>(1..=100))]
    pub(crate) repeats: u32,
    /// Maximum number of probes with --objective bounds; with --objective knee, --connections
    /// and --repeats set the number
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = within::<u32>(5..=10_000))]
    pub(crate) max_probes: u32,
    /// Time after which no probe begins; the result so far is printed [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Nanos>,
    /// Generator whose rate is varied, if a run has several
    #[arg(long, value_name = "NAME")]
    pub(crate) generator: Option<String>,
    #[command(flatten)]
    pub(crate) over: LoadOverArguments,
    #[command(flatten)]
    pub(crate) shape: LoadShapeArguments,
    #[command(flatten)]
    pub(crate) request: LoadRequestArguments,
    #[command(flatten)]
    pub(crate) grpc: LoadGrpcArguments,
    #[command(flatten)]
    pub(crate) connecting: LoadConnectingArguments,
    #[command(flatten)]
    pub(crate) tls: LoadTlsArguments,
    #[command(flatten)]
    pub(crate) tunnel: LoadTunnelArguments,
    /// Strictness of the limits above which a probe is inconclusive [default: the file's
    /// value, or normal]
    #[arg(long, value_enum)]
    pub(crate) validity: Option<ValidityArgument>,
    /// Seed of all random choices: a whole number
    #[arg(long, default_value = "1")]
    pub(crate) seed: Seed,
    /// Folder of the response curve, in capacity.json and capacity.csv
    /// [default: .stillwell/capacity/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Format on standard output
    #[arg(long, value_enum, default_value_t = CapacityFormat::Terminal)]
    pub(crate) format: CapacityFormat,
    /// Also write the report to FILE, in the format of its extension (.csv, .html, .json,
    /// .md, .txt); repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `nighthawk_adaptive_load_client`: this program called by that name.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_adaptive_load_client", version)]
pub(crate) struct NighthawkAdaptiveArguments {
    /// Not supported: this process makes the load
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) nighthawk_service_address: Option<String>,
    /// No effect
    #[arg(long, hide = true)]
    use_tls: bool,
    /// The session: an AdaptiveLoadSessionSpec as text proto, or as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) spec_file: PathBuf,
    /// Output file of the AdaptiveLoadSessionOutput, as text proto, or as JSON if the
    /// name ends in .json
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: PathBuf,
}

/// Returns the arguments of `stillwell load` for probes, at one request a second; each
/// probe sets its own rate.
pub(crate) fn load_arguments(arguments: &FindCapacityArguments) -> LoadArguments {
    LoadArguments {
        threshold: Vec::new(),
        validity: arguments.validity.unwrap_or(ValidityArgument::Normal),
        strict: false,
        keep_going: false,
        latency: false,
        scenario: None,
        urls: arguments.urls.clone(),
        rate: RateShape::Constant { per_second: 1.0 },
        duration: Some(arguments.probe),
        requests: None,
        warmup: Nanos::ZERO,
        over: arguments.over.clone(),
        closed_loop: false,
        shape: arguments.shape.clone(),
        request: arguments.request.clone(),
        grpc: arguments.grpc.clone(),
        connecting: arguments.connecting.clone(),
        tls: arguments.tls.clone(),
        tunnel: arguments.tunnel.clone(),
        stats: LoadStatsArguments::default(),
        trace: LoadTraceArguments::default(),
        fleet: LoadFleetArguments::default(),
        termination_predicate: Vec::new(),
        failure_predicate: Vec::new(),
        output_format: LoadFormat::HUMAN,
        output: Vec::new(),
        capture: None,
        label: Vec::new(),
        seed: Some(arguments.seed),
        quiet: true,
    }
}

/// Objectives of the search.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Objective {
    /// The highest rate at which bounds hold.
    Bounds,
    /// The load with the best ratio of throughput to latency, by the universal
    /// scalability law.
    Knee,
}

/// Formats of the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CapacityFormat {
    /// For people.
    Terminal,
    /// For programs.
    Json,
    /// The response curve for spreadsheets.
    Csv,
    /// For a browser: one file with charts.
    Html,
}

/// `5k/s` or `10 MiB/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CapacityRate {
    /// The counted unit; requests are events.
    pub(crate) unit: RateUnit,
    /// Units each second, above zero.
    pub(crate) per_second: f64,
}

impl FromStr for CapacityRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = parse_rate(text).ok();
        rate.and_then(|rate| {
            let per_second = rate.shape.constant()?;
            Some(Self {
                unit: rate.unit,
                per_second,
            })
        })
        .ok_or_else(|| {
            format!("`{text}` is not a rate: write 100/s or 5k/s, or for a run 10 MiB/s")
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    parse_share(text)
        .filter(|share| (0.001..=0.5).contains(share))
        .ok_or_else(|| "write a share from 0.1% to 50%, such as 3%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_requests_or_bytes() {
        let rate: CapacityRate = "5k/s".parse().unwrap();
        assert_eq!((rate.unit, rate.per_second), (RateUnit::Events, 5000.0));
        let rate: CapacityRate = "2 KiB/s".parse().unwrap();
        assert_eq!((rate.unit, rate.per_second), (RateUnit::Bytes, 2048.0));
        for text in ["", "5000", "fast", "max"] {
            let error = text.parse::<CapacityRate>().unwrap_err();
            assert!(error.contains("100/s"), "{error}");
        }
    }

    #[test]
    fn shares_are_small() {
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(share("0.05"), Ok(0.05));
        for text in ["0", "90%", "three", "-1%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
