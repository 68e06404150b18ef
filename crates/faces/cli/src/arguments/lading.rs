//! Arguments of `lading`: this program called by that name.

pub(crate) mod tools;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use stillwell_lading::TelemetryFormatKind;
use stillwell_units::ByteSize;

use super::OBSERVE_CODES;
use super::count::within;

/// Default configuration of lading.
const CONFIG_PATH: &str = "/etc/lading/lading.yaml";

/// Words that are commands; anything else begins the flat form.
const COMMANDS: [&str; 3] = ["config-check", "help", "run"];
const FLAT_HELP: &str = "\
Commands:
  run           the same as without a command
  config-check  check a configuration without running it";

/// `lading` with one of its commands.
#[derive(Debug, Parser)]
#[command(name = "lading", version, after_help = OBSERVE_CODES)]
struct WithCommand {
    #[command(flatten)]
    _logs: LogArguments,
    #[command(subcommand)]
    command: LadingCommand,
}

/// `lading` without a command.
#[derive(Debug, Parser)]
#[command(name = "lading", version, before_help = FLAT_HELP, after_help = OBSERVE_CODES)]
struct Flat {
    #[command(flatten)]
    _logs: LogArguments,
    #[command(flatten)]
    run: LadingRunArguments,
}

#[derive(Args, Debug)]
struct LogArguments {
    /// No effect: messages are text
    #[arg(long = "json-logs")]
    _json: bool,
}

/// Parses the command line of lading; the first of `words` is the program.
///
/// # Errors
/// The parser's error, or the text of --help.
pub(crate) fn parse_lading(
    words: impl Iterator<Item = std::ffi::OsString>,
) -> Result<LadingCommand, clap::Error> {
    let words: Vec<_> = words.collect();
    let mut words_of_lading = words.iter().skip(1).filter(|word| *word != "--json-logs");
    let is_command = |word: &std::ffi::OsString| COMMANDS.iter().any(|command| word == command);
    if words_of_lading.next().is_some_and(is_command) {
        return WithCommand::try_parse_from(words).map(|parsed| parsed.command);
    }
    Flat::try_parse_from(words).map(|parsed| LadingCommand::Run(Box::new(parsed.run)))
}

/// Commands of lading.
#[derive(Debug, Subcommand)]
pub(crate) enum LadingCommand {
    /// Run a program once under generated load, and measure it
    Run(Box<LadingRunArguments>),
    /// Check a configuration without running it
    ConfigCheck(LadingConfigArguments),
}

/// Path of the configuration.
#[derive(Args, Debug)]
pub(crate) struct LadingConfigArguments {
    /// A file, or a folder of *.yaml files; the environment variable LADING_CONFIG
    /// contains a configuration that overrides it
    #[arg(long, value_name = "PATH", default_value = CONFIG_PATH)]
    pub(crate) config_path: PathBuf,
}

/// Arguments of a run.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("target").required(true).args([
    "target_path", "target_pid", "target_container", "no_target",
])))]
#[command(group(ArgGroup::new("telemetry").args([
    "capture_path", "prometheus_addr", "prometheus_path",
])))]
pub(crate) struct LadingRunArguments {
    #[command(flatten)]
    pub(crate) config: LadingConfigArguments,
    /// Labels of every series
    #[arg(long, value_name = "K=V,K2=V", value_parser = pairs)]
    pub(crate) global_labels: Option<Pairs>,
    #[command(flatten)]
    pub(crate) target: LadingTargetArguments,
    #[command(flatten)]
    pub(crate) telemetry: LadingTelemetryArguments,
    /// Maximum seconds for shutdown
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) max_shutdown_delay: u16,
    /// Length of the measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) experiment_duration_seconds: u32,
    /// Run until a signal
    #[arg(long, conflicts_with = "experiment_duration_seconds")]
    pub(crate) experiment_duration_infinite: bool,
    /// Length of the warm-up in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) warmup_duration_seconds: u32,
    /// Start no inspector
    #[arg(long)]
    pub(crate) disable_inspector: bool,
}

/// Arguments that conflict with arguments about the started program.
const NO_PROGRAM: [&str; 3] = ["target_pid", "target_container", "no_target"];

/// Target.
#[derive(Args, Debug)]
pub(crate) struct LadingTargetArguments {
    /// Start this program
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) target_path: Option<PathBuf>,
    /// Measure this running process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) target_pid: Option<u32>,
    /// Measure this container as soon as it runs; DOCKER_HOST is the address of the
    /// engine [default: /var/run/docker.sock]
    #[arg(long, value_name = "NAME")]
    pub(crate) target_container: Option<String>,
    /// Measure no target
    #[arg(long)]
    pub(crate) no_target: bool,
    /// Let the target inherit the environment
    #[arg(long, conflicts_with_all = NO_PROGRAM)]
    pub(crate) target_inherit_environment: bool,
    /// Environment variables of the target
    #[arg(long, value_name = "K=V,K2=V", value_parser = pairs, conflicts_with_all = NO_PROGRAM)]
    pub(crate) target_environment_variables: Option<Pairs>,
    /// File for the target's standard output; `quiet` discards it
    #[arg(long, value_name = "FILE", default_value = "quiet")]
    pub(crate) target_stdout_path: PathBuf,
    /// File for the target's standard error; `quiet` discards it
    #[arg(long, value_name = "FILE", default_value = "quiet")]
    pub(crate) target_stderr_path: PathBuf,
    /// Maximum resident memory of the target; more fails the run
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) target_rss_bytes_limit: Option<ByteSize>,
    /// Arguments of the target
    #[arg(value_name = "ARGUMENT", conflicts_with_all = NO_PROGRAM)]
    pub(crate) target_arguments: Vec<String>,
}

/// Destination of metrics.
#[derive(Args, Debug)]
pub(crate) struct LadingTelemetryArguments {
    /// File of the capture
    #[arg(long, value_name = "FILE")]
    pub(crate) capture_path: Option<PathBuf>,
    /// Format of the capture: jsonl, parquet or multi
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = format)]
    pub(crate) capture_format: TelemetryFormatKind,
    /// Seconds between flushes of a Parquet capture; lines are written every second
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = within::<u64>(1..=1 << 30))]
    pub(crate) capture_flush_seconds: u64,
    /// Compression level of zstd in a Parquet capture
    #[arg(long, value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=22))]
    pub(crate) capture_compression_level: i32,
    /// Seconds after which a series without new values ends
    #[arg(long, value_name = "SECONDS", alias = "capture-expiriation-seconds", value_parser = within::<u64>(0..))]
    pub(crate) capture_expiration_seconds: Option<u64>,
    /// Address of a Prometheus metrics endpoint
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) prometheus_addr: Option<String>,
    /// Unix socket of a Prometheus metrics endpoint
    #[arg(long, value_name = "FILE")]
    pub(crate) prometheus_path: Option<PathBuf>,
}

/// Pairs in the order of the command line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

/// `K=V,K2=V`. A value may hold commas: what follows one is a pair of its own
/// where it begins with a key.
fn pairs(text: &str) -> Result<Pairs, String> {
    let is_key = |key: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        !key.is_empty() && key.chars().all(is_plain)
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) if is_key(key) => {
                pairs.push((key.to_owned(), value.to_owned()));
            }
            (_, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (_, None) if piece.is_empty() => {}
            (_, None) => return Err(format!("`{piece}` is not a list of pairs: write K=V,K2=V")),
        }
    }
    // A comma at the end ends nothing.
    if let Some((_, value)) = pairs.last_mut() {
        value.truncate(value.trim_end_matches(',').len());
    }
    Ok(Pairs(pairs))
}

fn format(text: &str) -> Result<TelemetryFormatKind, String> {
    let names = TelemetryFormatKind::NAMES;
    let kind = names.into_iter().find(|(name, _)| *name == text);
    kind.map(|(_, kind)| kind)
        .ok_or_else(|| "write jsonl, parquet or multi".to_owned())
}

fn size(text: &str) -> Result<ByteSize, String> {
    stillwell_lading::parse_size(text)
        .map(|size| size.bytes)
        .filter(|bytes| bytes.bytes() > 0)
        .ok_or_else(|| format!("`{text}` is not a size such as `512 MiB`"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &str) -> Result<LadingCommand, clap::Error> {
        parse_lading(words.split_whitespace().map(Into::into))
    }

    fn run(words: &str) -> LadingRunArguments {
        match parse(words) {
            Ok(LadingCommand::Run(run)) => *run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        WithCommand::command().debug_assert();
        Flat::command().debug_assert();
    }

    #[test]
    fn flat_and_with_a_command_mean_the_same() {
        let words = "--config-path a.yaml --target-path /bin/x --capture-path c -- -a b";
        let flat = run(&format!("lading {words}"));
        let with_command = run(&format!("lading --json-logs run {words}"));
        assert_eq!(format!("{flat:?}"), format!("{with_command:?}"));
        assert_eq!(flat.target.target_arguments, ["-a", "b"]);
        assert_eq!(flat.experiment_duration_seconds, 120);
        assert_eq!(flat.warmup_duration_seconds, 30);
        assert!(matches!(
            parse("lading config-check"),
            Ok(LadingCommand::ConfigCheck(_))
        ));
    }

    #[test]
    fn the_historic_misspelling_is_accepted() {
        for flag in [
            "--capture-expiriation-seconds",
            "--capture-expiration-seconds",
        ] {
            let run = run(&format!("lading --no-target --capture-path c {flag} 7"));
            assert_eq!(run.telemetry.capture_expiration_seconds, Some(7));
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for words in [
            "lading",
            "lading run",
            "lading --no-target --target-pid 7",
            "lading --target-pid 0",
            "lading --no-target --capture-path a --prometheus-addr 127.0.0.1:1",
            "lading --no-target --target-inherit-environment",
            "lading --no-target --experiment-duration-infinite --experiment-duration-seconds 7",
            "lading --no-target --capture-format csv",
            "lading --no-target --capture-compression-level 23",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn pairs_keep_their_commas() {
        let read = |text: &str| pairs(text).map(|pairs| pairs.0);
        let of = |list: &[(&str, &str)]| {
            let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
            Ok(list.iter().map(owned).collect::<Vec<_>>())
        };
        assert_eq!(read("a=b,c=d"), of(&[("a", "b"), ("c", "d")]));
        assert_eq!(
            read("tags=x,y,example-tag=z,"),
            of(&[("tags", "x,y"), ("example-tag", "z")])
        );
        assert_eq!(read("u=http://h/?q=1"), of(&[("u", "http://h/?q=1")]));
        assert_eq!(read(""), of(&[]));
        assert!(read("nothing").is_err());
    }
}
