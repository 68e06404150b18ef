//! Arguments of every command. Help texts are beside the arguments that they describe.

/// Implements `From<$argument>` for an enum with the same variants, as in
/// `impl_from!(ReuseName => Reuse { Mru, Lru });`.
macro_rules! impl_from {
    ($argument:ident => $value:ty { $($variant:ident),+ }) => {
        impl From<$argument> for $value {
            fn from(argument: $argument) -> Self {
                match argument {
                    $($argument::$variant => Self::$variant),+
                }
            }
        }
    };
}

mod ab;
mod bench;
mod bisect;
mod calibrate;
mod cluster;
mod comment;
mod compare;
mod count;
mod explain;
mod find_capacity;
mod history;
mod import;
mod init;
mod lading;
mod lint;
mod load;
mod runs;
mod serve;
mod service;
mod transform;
mod ui;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use stillwell_config::{CommandArgument, VariantArgument};
use stillwell_plan::Validity;
use stillwell_relay::{Endpoint, Format, OneIn, Rewrite, Stall, SyncWhen, WorkAmount};
use stillwell_units::{ByteRate, ByteSize, Nanos, Seed};

use self::count::within;

pub(crate) use self::ab::AbArguments;
pub(crate) use self::bench::{
    BenchArguments, BenchFormat, TestArguments, TestBenchArguments, TestCommand,
};
pub(crate) use self::bisect::BisectArguments;
pub(crate) use self::calibrate::{CalibrateArguments, DisturbArguments};
pub(crate) use self::cluster::{
    ClusterArguments, ClusterCommand, ClusterJobArguments, ClusterStatusArguments, EngineName,
    GenerateArguments, JobArguments, LoadFleetArguments, RenderCommand, RunFleetArguments,
    StatusForm, SuiteFleetArguments,
};
pub(crate) use self::comment::{CommentArguments, CommentHost, CommentLayout};
pub(crate) use self::compare::CompareArguments;
pub(crate) use self::explain::ExplainArguments;
pub(crate) use self::find_capacity::{
    CapacityFormat, CapacityRate, FindCapacityArguments, NighthawkAdaptiveArguments, Objective,
    load_arguments,
};
pub(crate) use self::history::{HistoryArguments, HistoryMethod, HistoryOutput};
pub(crate) use self::import::ImportArguments;
pub(crate) use self::init::{CiHost, InitArguments};
pub(crate) use self::lading::tools::{CaptoolArguments, CaptoolCommand, PayloadtoolArguments};
pub(crate) use self::lading::{
    LadingCommand, LadingConfigArguments, LadingRunArguments, LadingTargetArguments,
    LadingTelemetryArguments, parse_lading,
};
pub(crate) use self::lint::LintArguments;
pub(crate) use self::load::{
    Concurrency, LoadArguments, LoadGrpcArguments, LoadRequestArguments, LoadShapeArguments,
    LoadStatsArguments, LoadTlsArguments, LoadTraceArguments, LoadTunnelArguments,
    NighthawkClientArguments,
};
pub(crate) use self::runs::{RunsArguments, RunsCommand, SqlArguments};
pub(crate) use self::serve::{
    NighthawkTestServerArguments, ServeArguments, ServeCertificate, ServeFormat, ServeVersions,
};
pub(crate) use self::service::{
    AccessArguments, NighthawkServiceArguments, ServiceArguments, ServiceRole,
    address as service_address,
};
pub(crate) use self::transform::{
    NighthawkTransformArguments, TransformArguments, TransformSource,
};
pub(crate) use self::ui::UiArguments;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

const EXIT_CODES: &str = "\
Exit codes:
  0        no regression
  1        a regression, or a failed check
  2        usage or configuration
  3        could not run: port taken, build failed, target never ready
  4        a run or suite is invalid, such as a target that died;
           or inconclusive with --gate strict
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT)";

const OBSERVE_CODES: &str = "\
Exit codes:
  0        the run is valid, and every check passed
  1        a failed check
  2        usage or configuration
  3        could not run: port taken, target never ready
  4        the run is invalid, such as a target that died
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT)";

/// Version, and the commit of release builds.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("STILLWELL_BUILD"));

/// Load-tests a program, measures its resource cost, and shows whether a change made
/// it faster or slower.
#[derive(Debug, Parser)]
#[command(name = "stillwell", version = VERSION, styles = STYLES, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colors in output.
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, display_order = 1000)]
    pub(crate) color: ColorWhen,
    /// Do not mask values that look like secrets
    ///
    /// Otherwise output and results show `***` in place of values of headers, environment variables and
    /// URLs whose name is that of a secret, such as `authorization`, `token` or `password`.
    #[arg(long, global = true, display_order = 1000)]
    pub(crate) keep_secrets: bool,
    /// Print all options of a command
    // Read before all other arguments.
    #[arg(long, global = true, display_order = 1001)]
    pub(crate) help_all: bool,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write an experiment for a program: starts it once to find its port, and writes a file
    /// that can be run
    Init(Box<InitArguments>),
    /// Run experiments that compare variants of a program, and report the change
    Run(Box<RunArguments>),
    /// Run a program once under generated load, and measure it
    #[command(visible_alias = "rig")]
    Observe(ObserveArguments),
    /// Replay a recording through a pipeline, and count every event that arrives
    Bench(Box<BenchArguments>),
    /// Run a folder tree of benches as tests, like `tremor test`
    Test(TestArguments),
    /// Check configuration files and list what they would run
    Check(CheckArguments),
    /// Compare saved results: runs, captures, results of other tools, or columns of
    /// numbers
    Compare(CompareArguments),
    /// Read published tables that compare programs, or CSV files of dstat, and report
    /// contradictions in them
    Import(ImportArguments),
    /// Print the report of saved results again, in any format
    Report(ReportArguments),
    /// Post the report of saved results as a comment on a pull request
    Comment(CommentArguments),
    /// Write one chart of saved results as an SVG file
    Plot(PlotArguments),
    /// Show how goals changed over saved results, and where their level shifted
    History(HistoryArguments),
    /// Show results in a browser, compare them, and start loads and experiments
    Ui(UiArguments),
    /// Manage saved results: list, show, remove and copy them
    Runs(RunsArguments),
    /// Query saved series with SQL: print or run a duckdb command
    Sql(SqlArguments),
    /// Find the commit that caused a regression
    Bisect(Box<BisectArguments>),
    /// Find the smallest change that this machine can detect, and the false alarm rate
    Calibrate(Box<CalibrateArguments>),
    /// Run a command and slow it down by a known share: `calibrate` starts targets
    /// with it
    #[command(hide = true)]
    Disturb(DisturbArguments),
    /// Find outdated spellings in lading configurations, and rewrite them
    Lint(LintArguments),
    /// Explain a code or a word of a message, a report or JSON
    Explain(ExplainArguments),
    /// Print the JSON Schema of configuration files and of results
    Schema {
        /// Kind of file
        #[arg(default_value = "experiment")]
        kind: SchemaKind,
    },
    /// Send HTTP or gRPC requests, and report throughput and latency
    Load(Box<LoadArguments>),
    /// Compare two running services: send the same requests to two URLs in turn, and report
    /// the change
    Ab(Box<AbArguments>),
    /// Find the highest rate at which latency and error bounds hold
    FindCapacity(Box<FindCapacityArguments>),
    /// Run a configurable HTTP test server, with delays and faults
    Serve(Box<ServeArguments>),
    /// Run loads for remote clients over gRPC, like Nighthawk's service
    Service(Box<ServiceArguments>),
    /// Manage a load or a suite on several machines: show its state, print its logs, cancel it
    Cluster(ClusterArguments),
    /// Convert a load result to another format
    Transform(TransformArguments),
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        shell: clap_complete::Shell,
    },
    /// Write man pages of all commands to a folder
    Man {
        /// Folder, created if it does not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Run a built-in test target: it relays events, and can use more CPU or memory by a known
    /// amount
    Relay(RelayArguments),
}

/// When to use colors in output.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `stillwell run`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArguments {
    /// Experiment folders, experiment.yaml files, or folders with any number of
    /// experiments below them (also cases/NAME folders of Datadog's SMP)
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// In experiments with several targets: the targets to run, separated by commas,
    /// or `all` for every installed one
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// In experiments with several targets: runs of each target [default: the
    /// experiment's value, or 6]
    #[arg(long, value_name = "N", value_parser = within::<u32>(0..))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Results folder [default: .stillwell/results/TIME-NAME]. s3://BUCKET/PREFIX
    /// uploads the table of results; AWS_ENDPOINT_URL and the access keys are read from
    /// the environment
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Continue an interrupted suite: the one in --results DIR, or the newest in
    /// .stillwell/results
    #[arg(long)]
    pub(crate) resume: bool,
    /// Strictness of the limits above which a run is unreliable [default: the file's
    /// value, or normal]
    #[arg(long, value_enum)]
    pub(crate) validity: Option<ValidityArgument>,
    /// Verdicts that give exit code 1 or 4
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 for every verdict
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Cache folder for builds of git:REV variants
    /// [default: $XDG_CACHE_HOME/stillwell or ~/.cache/stillwell]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stats: LoadStatsArguments,
    #[command(flatten)]
    pub(crate) fleet: SuiteFleetArguments,
}

/// Selection of experiments, and changes to their files.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectArguments {
    /// Baseline: git:REV, bin:PATH, cmd:WORDS, args:WORDS, env:K=V[,K=V], files:DIR or
    /// same
    #[arg(long, value_name = "VARIANT")]
    pub(crate) baseline: Option<VariantArgument>,
    /// Comparison, in the same syntax as --baseline
    #[arg(long, value_name = "VARIANT")]
    pub(crate) comparison: Option<VariantArgument>,
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
}

/// Changes to experiment files that do not depend on the variants.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChangeArguments {
    /// Git repository of git:REV variants [default: the experiment's, or the current
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Shell command that builds a revision in its own worktree [default: the
    /// experiment's]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Executable that the build makes, relative to the worktree [default: the
    /// experiment's]
    #[arg(long, value_name = "PATH")]
    pub(crate) build_output: Option<PathBuf>,
    /// Target program and its arguments, in place of the experiment's; the executable
    /// of a git:REV variant gets the same arguments
    #[arg(long, value_name = "COMMAND")]
    pub(crate) target_command: Option<CommandArgument>,
    /// Run only experiments or matrices with this name; `*` matches any text;
    /// repeatable
    #[arg(long, alias = "soak", value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) course: CourseArguments,
    /// Seed of all random choices: a whole number [default: the file's value, or 0]
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Primary goal, as METRIC or METRIC:TOLERANCE: ingress_throughput,
    /// egress_throughput, cpu_per_event, instructions_per_event, cpu, memory, memory_peak,
    /// memory_slope, latency_p50, latency_p90, latency_p99, latency_p999,
    /// service_time_p50, service_time_p90, service_time_p99, service_time_p999,
    /// first_byte_p50, first_byte_p90, first_byte_p99, first_byte_p999, status_429,
    /// latency_p99['GET /path'], error_share, request_throughput, loss, duplicated, event_latency_p50,
    /// event_latency_p90, event_latency_p99, event_latency_p999, or series:NAME:mean|peak|per_event|rate:lower|higher
    #[arg(long, value_name = "GOAL")]
    pub(crate) goal: Option<String>,
    /// Rate of the only generator, such as `10 MiB/s`, `5k/s` or `0/s..5k/s:30s`. `max` is for any number of generators.
    /// `probe` or `probe:60%` is a share of the capacity, for experiments with variants
    #[arg(long)]
    pub(crate) rate: Option<String>,
}

/// Number, length and design of runs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CourseArguments {
    /// Maximum number of pairs of runs: checks the verdict after 4, 6, 8 … N pairs, and
    /// stops when it is certain [default: the experiment's value, or 20]
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["fixed_pairs", "no_max"],
        value_parser = within::<u32>(0..)
    )]
    pub(crate) max_pairs: Option<u32>,
    /// Exact number of pairs of runs, with one check at the end
    #[arg(
        long,
        value_name = "N",
        visible_alias = "pairs",
        conflicts_with = "no_max",
        value_parser = within::<u32>(0..)
    )]
    pub(crate) fixed_pairs: Option<u32>,
    /// Run pairs until the verdict is certain, up to 200
    #[arg(long)]
    pub(crate) no_max: bool,
    /// Replace discarded pairs until the runs of an experiment have taken this long
    /// [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Nanos>,
    /// Number of builds of each git: variant, each with a different STILLWELL_BUILD_SEED in the
    /// environment of the build command; half of them are used for confirmation, if there is one
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = within::<u32>(1..=100))]
    pub(crate) builds: Option<u32>,
    /// Finish within about two minutes: at most 6 pairs of runs with 500 ms of
    /// warm-up and 2 s of measurement, discarded pairs replaced for 2 minutes. A change that
    /// is too small for so few pairs stays inconclusive
    #[arg(long)]
    pub(crate) quick: bool,
    /// Design of a pair: its two runs one after the other (paired), at the same time on separate
    /// CPUs (duet), or both running with the load switched between them (sliced) [default: the
    /// experiment's value, or paired]
    #[arg(long, value_enum)]
    pub(crate) design: Option<Design>,
    /// Report a regression without confirming it on new runs
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// Measure from the first event, without a warm-up
    #[arg(long, conflicts_with = "warmup")]
    pub(crate) include_startup: bool,
    /// Length of the warm-up, which is not measured [default: the file's value, or 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Length of the measurement [default: the file's value, or 20s]
    #[arg(long, value_name = "TIME", visible_alias = "duration")]
    pub(crate) measure: Option<Nanos>,
}

/// Strictness of the limits above which a run is unreliable.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ValidityArgument {
    /// Half the limits of steal, delay and lateness.
    Strict,
    /// Default limits.
    Normal,
    /// Exceeded limits are reported as notes.
    Off,
}

impl_from!(ValidityArgument => Validity { Strict, Normal, Off });

/// Use of the machine by the variants of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Design {
    /// One after the other, in random order.
    Paired,
    /// Both at once, on different CPUs.
    Duet,
    /// Both run; the load alternates between them at random intervals.
    Sliced,
}

impl_from!(Design => stillwell_config::DesignOverride { Paired, Duet, Sliced });

/// Destinations of reports.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArguments {
    /// Format on standard output
    #[arg(long, value_parser = report_formats(), default_value_t = stillwell_report::Format::Terminal)]
    pub(crate) format: stillwell_report::Format,
    /// Also write the report to FILE, in the format of its extension (.html, .md, .json,
    /// .txt); repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Also write the charts as SVG files to DIR, and show them in Markdown reports
    #[arg(long, value_name = "DIR")]
    pub(crate) assets: Option<PathBuf>,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Accepts every format of reports.
fn report_formats() -> impl TypedValueParser<Value = stillwell_report::Format> {
    let values = stillwell_report::Format::ALL;
    let values = values.map(|format| PossibleValue::new(format.name()).help(format.about()));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

/// Verdicts that fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Gate {
    /// Regressions and failed checks give exit code 1, invalid experiments 4.
    Normal,
    /// Inconclusive experiments also give exit code 4.
    Strict,
}

impl_from!(Gate => stillwell_verdict::GatePolicy { Normal, Strict });

/// `stillwell observe`.
#[derive(Args, Debug)]
#[command(after_help = OBSERVE_CODES)]
pub(crate) struct ObserveArguments {
    /// A single-run or experiment file, such as my-experiment/experiment.yaml; a
    /// lading.yaml; or a cases/NAME folder of Datadog's SMP
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Start this program; its arguments follow `--`
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) target_path: Option<PathBuf>,
    /// Measure this running process
    #[arg(long, value_name = "PID", conflicts_with_all = ["no_target", "target", "target_path"])]
    pub(crate) target_pid: Option<u32>,
    /// Measure this running container, by name or id; DOCKER_HOST is the address of
    /// the engine [default: /var/run/docker.sock]
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["no_target", "target", "target_path", "target_pid"]
    )]
    pub(crate) target_container: Option<String>,
    /// Run a container of this image; its arguments follow `--`
    #[arg(
        long,
        value_name = "IMAGE",
        conflicts_with_all = ["no_target", "target_path", "target_pid", "target_container"]
    )]
    pub(crate) target_image: Option<String>,
    /// Start no target: send to a program that is already running
    #[arg(long, conflicts_with_all = ["target", "target_path"])]
    pub(crate) no_target: bool,
    /// Environment variable of the target, beside those of FILE; repeatable
    #[arg(long, value_name = "K=V")]
    pub(crate) environment: Vec<String>,
    /// Pass the environment of this command on to the target
    #[arg(long)]
    pub(crate) inherit_environment: bool,
    /// Length of the warm-up, which is not measured [default: the file's value, or 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Length of the measurement [default: the file's value, or 20s]
    #[arg(long, value_name = "TIME", visible_alias = "duration")]
    pub(crate) measure: Option<Nanos>,
    /// Strictness of the limits above which the run is unreliable [default: the file's
    /// value, or normal]
    #[arg(long, value_enum)]
    pub(crate) validity: Option<ValidityArgument>,
    /// Seed of all random choices: a whole number [default: the file's value, or 0]
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Folder of the capture [default: .stillwell/runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Print the summary as JSON: short for `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) stats: LoadStatsArguments,
    /// Target program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) target: Vec<String>,
    #[command(flatten)]
    pub(crate) fleet: RunFleetArguments,
}

/// `stillwell check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Files or folders, as for `run` or `observe`
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Print the full plan as JSON
    #[arg(long)]
    pub(crate) plan: bool,
}

/// `stillwell report`.
#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// A results folder of `run`, `ab` or `find-capacity`, a capture of `observe` or
    /// `load`, a saved load (JSON, CSV, HTML), or JSON of `find-capacity`
    #[arg(value_name = "PATH")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Verdicts that give exit code 1 or 4
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 for every verdict
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// `stillwell plot`.
#[derive(Args, Debug)]
pub(crate) struct PlotArguments {
    /// A results folder of `run`, or a capture of `observe` or `load`
    #[arg(value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Name of a chart; without it, the names and titles of all charts are printed
    #[arg(value_name = "CHART")]
    pub(crate) chart: Option<String>,
    /// Write the chart to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "chart")]
    pub(crate) output: Option<PathBuf>,
}

/// `stillwell relay`.
#[derive(Args, Debug)]
pub(crate) struct RelayArguments {
    /// Input of events: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH,
    /// unixgram:///PATH or http://HOST:PORT/PATH
    #[arg(long = "in", value_name = "ENDPOINT")]
    pub(crate) input: Endpoint,
    /// Output of events: tcp, udp or http as above, or discard:
    #[arg(long = "out", value_name = "ENDPOINT", default_value = "discard:")]
    pub(crate) output: Endpoint,
    /// Framing of events: lines, json, or requests. Each request is sent on as one POST
    /// with the same body and stamp header
    #[arg(long, default_value = "lines")]
    pub(crate) events: Format,
    /// Parse every event; count those that do not parse, and send them on
    #[arg(long)]
    pub(crate) parse: bool,
    /// Set FIELD to VALUE in every event; repeatable
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) rewrite: Vec<Rewrite>,
    /// Maximum number of events in memory
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = within::<usize>(0..))]
    pub(crate) buffer_events: usize,
    /// Keep events in files in DIR until they are delivered; after a restart, the relay
    /// sends the remaining events
    #[arg(long, value_name = "DIR")]
    pub(crate) buffer_dir: Option<PathBuf>,
    /// Maximum size of these files
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "100 MB",
        requires = "buffer_dir"
    )]
    pub(crate) buffer_bytes: ByteSize,
    /// When to sync files to the disk: `never`, after a number of events such as `100`,
    /// or after a time such as `10ms`
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "never",
        requires = "buffer_dir"
    )]
    pub(crate) fsync: SyncWhen,
    /// Address of a Prometheus metrics endpoint
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Extra CPU work for each event: a time such as `300ns`, or an exact amount such as
    /// `120rounds`
    #[arg(long, value_name = "AMOUNT", default_value = "0rounds")]
    pub(crate) work_per_event: WorkAmount,
    /// Extra memory to keep for each of the last 100,000 events
    #[arg(long, value_name = "SIZE", default_value = "0 B")]
    pub(crate) hoard_per_event: ByteSize,
    /// Never free the memory of --hoard-per-event
    #[arg(long)]
    pub(crate) leak: bool,
    /// Pause periodically, such as `50ms@10s`: 50 ms every 10 s
    #[arg(long, value_name = "LENGTH@EVERY")]
    pub(crate) stall: Option<Stall>,
    /// Maximum input rate, such as `10 MiB/s`
    #[arg(long, value_name = "RATE")]
    pub(crate) limit: Option<ByteRate>,
    /// Drop one event in N, such as `1/10000`, and count them
    #[arg(long, value_name = "1/N")]
    pub(crate) drop: Option<OneIn>,
    /// Damage one event in N: flip a bit of its sixteenth byte from the end
    #[arg(long, value_name = "1/N")]
    pub(crate) flip: Option<OneIn>,
    /// Swap one event in N with the next one
    #[arg(long, value_name = "1/N")]
    pub(crate) swap: Option<OneIn>,
    /// Duplicate one event in N
    #[arg(long, value_name = "1/N")]
    pub(crate) double: Option<OneIn>,
    /// Answer one HTTP request in N with status 503
    #[arg(long, value_name = "1/N")]
    pub(crate) refuse: Option<OneIn>,
}

/// Returns the share of `3%` or `0.03`.
fn parse_share(text: &str) -> Option<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    number.parse::<f64>().ok().map(|share| share / scale)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Parses `stillwell run suite` with these words.
    fn course(words: &str) -> Result<CourseArguments, String> {
        let line = ["stillwell", "run", "suite"].into_iter();
        let line = line.chain(words.split_whitespace());
        match Arguments::try_parse_from(line).map(|arguments| arguments.command) {
            Ok(Command::Run(run)) => Ok(run.select.changes.course),
            Ok(command) => panic!("{command:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for words in [
            "--max-pairs 8 --fixed-pairs 8",
            "--max-pairs 8 --pairs 8",
            "--max-pairs 8 --no-max",
            "--fixed-pairs 8 --no-max",
            "--include-startup --warmup 1s",
        ] {
            let error = course(words).unwrap_err();
            assert!(error.contains("cannot be used with"), "{error}");
        }
    }

    #[test]
    fn counts_of_a_load_have_factors() {
        let load = |words: &str| {
            let line = ["stillwell", "load", "http://a/"].into_iter();
            let line = line.chain(words.split_whitespace());
            match Arguments::try_parse_from(line).map(|arguments| arguments.command) {
                Ok(Command::Load(load)) => Ok((load.requests, load.over.connections)),
                Ok(command) => panic!("{command:?}"),
                Err(error) => Err(error.to_string()),
            }
        };
        assert_eq!(load("-n 1.5k -c 0x10").unwrap(), (Some(1500), 16));
        assert_eq!(load("-n 20").unwrap(), (Some(20), 50));
        for wrong in ["-n 0", "-c 5G", "-c many"] {
            let error = load(wrong).unwrap_err();
            assert!(error.contains("write a whole number from 1"), "{error}");
        }
    }

    #[test]
    fn pairs_is_another_word_for_fixed_pairs() {
        assert_eq!(course("--pairs 8").unwrap().fixed_pairs, Some(8));
        assert_eq!(course("--fixed-pairs 8").unwrap().fixed_pairs, Some(8));
        assert_eq!(
            course("--design sliced").unwrap().design,
            Some(Design::Sliced)
        );
        let error = course("--design trio").unwrap_err();
        assert!(error.contains("paired, duet, sliced"), "{error}");
    }
}

/// Kinds of configuration files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Experiments and runs
    Experiment,
    /// Benches
    Bench,
    /// Scenarios of `stillwell load --scenario`
    Scenario,
    /// Result of `stillwell load --format json`
    Load,
    /// Decision of `stillwell comment --decision`
    Decision,
}
