//! What can be typed. Help texts live beside what they describe.

mod bench;
mod bisect;
mod calibrate;
mod compare;
mod find_capacity;
mod history;
mod import;
mod lading;
mod lint;
mod load;
mod serve;
mod service;
mod transform;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use stillwell_config::{CommandArgument, SchemaOf, VariantArgument};
use stillwell_relay::{Endpoint, Format, OneIn, Rewrite, Stall, SyncWhen, WorkAmount};
use stillwell_units::{ByteRate, ByteSize, Nanos, Seed};

pub(crate) use self::bench::{
    BenchArguments, BenchFormat, TestArguments, TestBenchArguments, TestCommand,
};
pub(crate) use self::bisect::BisectArguments;
pub(crate) use self::calibrate::{CalibrateArguments, HinderArguments};
pub(crate) use self::compare::{CompareArguments, Method};
pub(crate) use self::find_capacity::{
    CapacityFormat, CapacityRate, FindCapacityArguments, NighthawkAdaptiveArguments, Objective,
    load_arguments,
};
pub(crate) use self::history::{HistoryArguments, HistoryMethod, HistoryOutput};
pub(crate) use self::import::ImportArguments;
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
pub(crate) use self::serve::{
    NighthawkTestServerArguments, ServeArguments, ServeCertificate, ServeFormat, ServeVersions,
};
pub(crate) use self::service::{
    NighthawkServiceArguments, ServiceArguments, ServiceRole, address as service_address,
};
pub(crate) use self::transform::{
    NighthawkTransformArguments, TransformArguments, TransformSource,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

const EXIT_CODES: &str = "\
Exit codes:
  0        every gate held
  1        a regression, or a failed check
  2        usage or configuration
  3        could not run: port taken, build failed, subject never ready
  4        a run or lab is invalid: subject died, a part failed, disk full later;
           inconclusive under --gate strict
  130 143  interrupted by SIGINT or SIGTERM";

/// Puts load through a program, watches what it costs, and says honestly
/// whether a change made it better or worse.
#[derive(Debug, Parser)]
#[command(name = "stillwell", version, styles = STYLES, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to colour what is printed.
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, display_order = 1000)]
    pub(crate) color: ColorWhen,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare variants of a program: runs the experiments under each PATH
    Run(RunArguments),
    /// Make one observed run under generated load
    Rig(RigArguments),
    /// Send a recording through a program and back, and account for every event
    Bench(Box<BenchArguments>),
    /// Run a tree of tests, as `tremor test` does
    Test(TestArguments),
    /// Check configuration files and list what they would run; runs nothing
    Check(CheckArguments),
    /// Compare what was measured before or elsewhere: saved runs, captures and
    /// results of other tools, columns of numbers
    Compare(CompareArguments),
    /// Read tables of programs side by side that others measured, or CSV of dstat,
    /// and say what contradicts them
    Import(ImportArguments),
    /// Print the reports of results again, in any format
    Report(ReportArguments),
    /// Show how goals moved over saved results, and where their level changed
    History(HistoryArguments),
    /// Find the commit that made an experiment worse
    Bisect(Box<BisectArguments>),
    /// Measure how often verdicts are right on this machine with your own
    /// subject, and how small a change can be seen
    Calibrate(Box<CalibrateArguments>),
    /// Run a command and make it worse by a known share: what `calibrate` starts
    /// subjects with
    #[command(hide = true)]
    Hinder(HinderArguments),
    /// Find old spellings in files of lading's, and rewrite them to today's
    Lint(LintArguments),
    /// Print the JSON Schema of configuration files
    Schema {
        /// What kind of file
        #[arg(default_value = "experiment")]
        kind: SchemaKind,
    },
    /// Send requests, and tell how fast and with which latency they are answered
    Load(Box<LoadArguments>),
    /// Find the highest rate at which bounds hold, or the knee of the response
    FindCapacity(Box<FindCapacityArguments>),
    /// Something to hit: a test server that answers, delays and misbehaves as told
    Serve(Box<ServeArguments>),
    /// Make loads for others over gRPC, as Nighthawk's service does
    Service(Box<ServiceArguments>),
    /// Tell the result of a load in another format
    Transform(TransformArguments),
    /// Relay events: the embedded subject, with switches that make it slower or
    /// hungrier by a known amount
    Relay(RelayArguments),
}

/// When to colour what is printed.
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
    /// experiments below them (Stillwell's own or SMP's cases/NAME layout)
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Of experiments with several subjects, only these: names with commas
    /// between them, or `all` that are installed
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) subjects: Vec<String>,
    /// Runs of each of several subjects [default: the experiment's, else 6]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Where results go [default: .stillwell/results/TIME-NAME]; of several subjects
    /// the table may go to a store: s3://BUCKET/PREFIX, with AWS_ENDPOINT_URL and keys
    /// from the environment
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Go on where an interrupted run stopped: with --results DIR there, else
    /// in the newest results of the same lab
    #[arg(long)]
    pub(crate) resume: bool,
    /// Whether inconclusive experiments fail
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 whatever the verdicts say
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Where builds of git:REV variants are kept
    /// [default: $XDG_CACHE_HOME/stillwell or ~/.cache/stillwell]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

/// Which experiments, and what is different from their files.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectArguments {
    /// What the baseline is: git:REV, bin:PATH, cmd:WORDS, args:WORDS,
    /// env:K=V[,K=V], files:DIR or same
    #[arg(long, value_name = "VARIANT")]
    pub(crate) baseline: Option<VariantArgument>,
    /// What is compared with it, in the same words
    #[arg(long, value_name = "VARIANT")]
    pub(crate) comparison: Option<VariantArgument>,
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
}

/// What is changed in the files of a lab, whatever its variants are.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChangeArguments {
    /// Repository of revisions [default: the experiment's, or here]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Shell command that builds a revision in its own worktree [default: the
    /// experiment's]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// The executable that the build leaves, relative to the worktree [default:
    /// the experiment's]
    #[arg(long, value_name = "PATH")]
    pub(crate) build_output: Option<PathBuf>,
    /// The program that is measured and its arguments, in place of what the
    /// experiments name; a revision's executable takes these arguments
    #[arg(long, value_name = "COMMAND")]
    pub(crate) target_command: Option<CommandArgument>,
    /// Only experiments with this name, or whole matrices; `*` stands for any
    /// text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) course: CourseArguments,
    /// Seed of everything random: a whole number
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// The primary goal, as METRIC or METRIC:TOLERANCE: ingress_throughput,
    /// egress_throughput, cpu_per_event, cpu, memory, memory_peak,
    /// memory_slope, latency_p50, latency_p90, latency_p99, latency_p999, loss,
    /// doubled, event_latency_p50, event_latency_p90, event_latency_p99,
    /// event_latency_p999, or series:NAME:mean|peak|per_event|rate:lower|higher
    #[arg(long, value_name = "GOAL")]
    pub(crate) goal: Option<String>,
    /// Rate of every generator: `10 MiB/s`, `5k/s` or `max`
    #[arg(long)]
    pub(crate) rate: Option<String>,
}

/// When an experiment has seen enough, and how its runs go.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CourseArguments {
    /// Pairs of runs at most: looks after 4, 6, 8 … N of them, and stops as soon
    /// as the verdict is certain
    #[arg(long, value_name = "N", conflicts_with_all = ["fixed_pairs", "no_max"])]
    pub(crate) max_pairs: Option<u32>,
    /// Exactly so many pairs of runs, and one look at the end
    #[arg(
        long,
        value_name = "N",
        visible_alias = "pairs",
        conflicts_with = "no_max"
    )]
    pub(crate) fixed_pairs: Option<u32>,
    /// Go on until the verdict is certain: looks after every pair, and ends after
    /// 200 of them all the same
    #[arg(long)]
    pub(crate) no_max: bool,
    /// How the variants of a pair share the machine
    #[arg(long, value_enum)]
    pub(crate) design: Option<Design>,
    /// Let a change gate without confirming it on fresh pairs
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// Measure from the first event on, without a warm-up
    #[arg(long, conflicts_with = "warmup")]
    pub(crate) include_startup: bool,
    /// Length of load before it is measured
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Length of load that is measured
    #[arg(long, value_name = "TIME", visible_alias = "duration")]
    pub(crate) measure: Option<Nanos>,
}

/// How the variants of a pair share the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Design {
    /// One after the other, in random order.
    Paired,
    /// Both at once, each on its own CPUs.
    Duet,
    /// Both alive, the load switched between them in random turns.
    Sliced,
}

/// Where reports go.
#[derive(Args, Debug)]
pub(crate) struct OutputArguments {
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Terminal)]
    pub(crate) format: OutputFormat,
    /// Also write a report to FILE, in the format of its ending (.md, .json,
    /// .txt); repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Terminal,
    /// For pull requests.
    Markdown,
    /// For programs.
    Json,
}

/// Whether inconclusive experiments fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Gate {
    /// Only regressions, failed checks and invalid experiments fail.
    Normal,
    /// Inconclusive ones fail, too.
    Strict,
}

/// `stillwell rig`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RigArguments {
    /// A rig or experiment file of Stillwell, a lading.yaml, or the folder of a case
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Start this program; its arguments stand behind `--`
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) target_path: Option<PathBuf>,
    /// Watch this process instead of starting one
    #[arg(long, value_name = "PID", conflicts_with_all = ["no_target", "target", "target_path"])]
    pub(crate) target_pid: Option<u32>,
    /// Watch this container, by its name or id; DOCKER_HOST says where its
    /// engine is, if not at /var/run/docker.sock
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["no_target", "target", "target_path", "target_pid"]
    )]
    pub(crate) target_container: Option<String>,
    /// Have the engine run a container of this image, with the words behind
    /// `--` as its arguments
    #[arg(
        long,
        value_name = "IMAGE",
        conflicts_with_all = ["no_target", "target_path", "target_pid", "target_container"]
    )]
    pub(crate) target_image: Option<String>,
    /// Start nothing: send to whatever listens
    #[arg(long, conflicts_with_all = ["target", "target_path"])]
    pub(crate) no_target: bool,
    /// Environment variable of the program; repeatable
    #[arg(long, value_name = "K=V")]
    pub(crate) environment: Vec<String>,
    /// Pass our environment on to the program
    #[arg(long)]
    pub(crate) inherit_environment: bool,
    /// Length of load before it is measured
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Length of load that is measured
    #[arg(long, value_name = "TIME", visible_alias = "duration")]
    pub(crate) measure: Option<Nanos>,
    /// Seed of everything random: a whole number
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Where the capture goes [default: .stillwell/rigs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program that is measured, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) target: Vec<String>,
}

/// `stillwell check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Files or folders, as `run` or `rig` take them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Print the plan in full, as JSON
    #[arg(long)]
    pub(crate) plan: bool,
}

/// `stillwell report`.
#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// A results folder of `run`, or a capture of `rig`
    #[arg(value_name = "DIR")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Whether inconclusive experiments fail
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 whatever the verdicts say
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// `stillwell relay`.
#[derive(Args, Debug)]
pub(crate) struct RelayArguments {
    /// Where events come in: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH,
    /// unixgram:///PATH or http://HOST:PORT/PATH
    #[arg(long = "in", value_name = "ENDPOINT")]
    pub(crate) input: Endpoint,
    /// Where events go: tcp, udp or http as above, or discard:
    #[arg(long = "out", value_name = "ENDPOINT", default_value = "discard:")]
    pub(crate) output: Endpoint,
    /// What an event is: lines, json, or requests, each of which goes on as one POST of
    /// the same body, with the stamp in its header if there is one
    #[arg(long, default_value = "lines")]
    pub(crate) events: Format,
    /// Parse every event; those that do not parse are counted and passed on
    #[arg(long)]
    pub(crate) parse: bool,
    /// Set FIELD to VALUE in every event; repeatable
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) rewrite: Vec<Rewrite>,
    /// Events held in memory at most
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) buffer_events: usize,
    /// Keep events in files in DIR until they are handed over; a relay that is
    /// started again there sends what the one before it left
    #[arg(long, value_name = "DIR")]
    pub(crate) buffer_dir: Option<PathBuf>,
    /// What these files take at most
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "100 MB",
        requires = "buffer_dir"
    )]
    pub(crate) buffer_bytes: ByteSize,
    /// When files are written out to the disk: `never`, after so many events such as
    /// `100`, or after a time such as `10ms`
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "never",
        requires = "buffer_dir"
    )]
    pub(crate) fsync: SyncWhen,
    /// Serve Prometheus metrics here
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Burn so much CPU for each event: a time such as `300ns`, or an exact
    /// amount of work such as `120rounds`
    #[arg(long, value_name = "AMOUNT", default_value = "0rounds")]
    pub(crate) work_per_event: WorkAmount,
    /// Keep so much memory for each event, of the last 100,000 events
    #[arg(long, value_name = "SIZE", default_value = "0 B")]
    pub(crate) hoard_per_event: ByteSize,
    /// Never give back what is hoarded
    #[arg(long)]
    pub(crate) leak: bool,
    /// Stop for a time, again and again: `50ms@10s`
    #[arg(long, value_name = "LENGTH@EVERY")]
    pub(crate) stall: Option<Stall>,
    /// Take no more than this in: `10 MiB/s`
    #[arg(long, value_name = "RATE")]
    pub(crate) limit: Option<ByteRate>,
    /// Drop one event in N on purpose, and say how many: `1/10000`
    #[arg(long, value_name = "1/N")]
    pub(crate) drop: Option<OneIn>,
    /// Change a bit of the sixteenth byte from the end of one event in N
    #[arg(long, value_name = "1/N")]
    pub(crate) flip: Option<OneIn>,
    /// Have one event in N change places with the next
    #[arg(long, value_name = "1/N")]
    pub(crate) swap: Option<OneIn>,
    /// Send one event in N twice
    #[arg(long, value_name = "1/N")]
    pub(crate) double: Option<OneIn>,
    /// Answer one request in N with 503, over HTTP and as Splunk's collector
    #[arg(long, value_name = "1/N")]
    pub(crate) refuse: Option<OneIn>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// What `stillwell run lab` with these words means for the course of a lab.
    fn course(words: &str) -> Result<CourseArguments, String> {
        let line = ["stillwell", "run", "lab"].into_iter();
        let line = line.chain(words.split_whitespace());
        match Arguments::try_parse_from(line).map(|arguments| arguments.command) {
            Ok(Command::Run(run)) => Ok(run.select.changes.course),
            Ok(other) => panic!("{other:?}"),
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

/// Whose keys are asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Experiments and rigs
    Experiment,
    /// Benches
    Bench,
}

impl From<SchemaKind> for SchemaOf {
    fn from(kind: SchemaKind) -> Self {
        match kind {
            SchemaKind::Experiment => Self::Experiment,
            SchemaKind::Bench => Self::Bench,
        }
    }
}
