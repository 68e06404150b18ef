//! Arguments of `stillwell init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stillwell_config::scaffold::{ProgramKind, ScaffoldOutput};
use stillwell_config::{CommandArgument, VariantArgument};
use stillwell_units::Nanos;

const EXAMPLES: &str = "\
Examples:
  stillwell init --command './server --port 8080'
  stillwell init logs --kind tcp --command 'rsyslogd -n -f log.conf' --output tcp:127.0.0.1:9200
  stillwell init --url http://10.0.0.1/ --url http://10.0.0.2/
  stillwell init --ci github --build 'make server' --build-output server";

const NOTES: &str = "\
The program is started once, for a few seconds: its port and a readiness check are
written to the file. On a terminal, init prompts for missing options.

Exit codes: 0 written, 2 usage or a file that exists, 3 the program could not be
  started, ended, or opened no port, 130 and 143 interrupted";

/// `stillwell init`.
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = NOTES)]
pub(crate) struct InitArguments {
    /// Folder of the experiment [default: the name of the program]. With --ci: the
    /// experiments to run [default: .]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Program to measure, and its arguments. {state} is a new folder for each run
    #[arg(long, value_name = "COMMAND", conflicts_with = "urls")]
    pub(crate) command: Option<CommandArgument>,
    /// URL of a running service; give it twice: baseline and comparison
    #[arg(long = "url", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Kind of the program: http, tcp, udp, files, otlp or kafka [default: detected
    /// from its ports]
    #[arg(long, conflicts_with = "urls")]
    pub(crate) kind: Option<ProgramKind>,
    /// Baseline: git:REV, bin:PATH, cmd:WORDS, args:WORDS, env:K=V[,K=V], files:DIR or
    /// same
    #[arg(long, value_name = "VARIANT", conflicts_with = "urls")]
    pub(crate) baseline: Option<VariantArgument>,
    /// Comparison, in the same syntax as --baseline
    #[arg(long, value_name = "VARIANT", conflicts_with = "urls")]
    pub(crate) comparison: Option<VariantArgument>,
    /// Shell command that builds a revision of a git:REV variant
    #[arg(long, value_name = "COMMAND", conflicts_with = "urls")]
    pub(crate) build: Option<String>,
    /// Executable that the build makes, relative to the worktree
    #[arg(long, value_name = "PATH", conflicts_with = "urls")]
    pub(crate) build_output: Option<String>,
    /// Name in reports [default: the name of the folder]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Address to which a pipeline sends its output, where a sink will listen:
    /// tcp:ADDRESS:PORT, udp:…, http:… or otlp:… with an IP address, such as
    /// tcp:127.0.0.1:9200, or file:PATH
    #[arg(long, value_name = "KIND:ADDRESS", conflicts_with = "urls")]
    pub(crate) output: Option<ScaffoldOutput>,
    /// File that a program of kind `files` reads
    #[arg(
        long,
        value_name = "PATH",
        default_value = "{state}/in.log",
        conflicts_with = "urls"
    )]
    pub(crate) file: String,
    /// Broker of a program of kind `kafka`, as HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "urls")]
    pub(crate) broker: Option<String>,
    /// Topic of a program of kind `kafka`
    #[arg(long, conflicts_with = "urls")]
    pub(crate) topic: Option<String>,
    /// Format of events, such as json or syslog5424
    #[arg(long, value_name = "FORMAT", conflicts_with = "urls")]
    pub(crate) payload: Option<String>,
    /// Rate of the load, such as 1k/s or 10 MiB/s [default: 60% of the
    /// capacity that a probe finds; a low rate for udp, files, kafka and URLs]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Longest wait for the program to open its port
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        conflicts_with = "urls"
    )]
    pub(crate) wait: Nanos,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Write a workflow that compares pull requests with their base, in place of an
    /// experiment; needs --build and --build-output
    #[arg(
        long,
        value_name = "HOST",
        value_enum,
        conflicts_with_all = [
            "command", "urls", "kind", "baseline", "comparison", "name", "output", "file",
            "broker", "topic", "payload", "rate", "wait"
        ]
    )]
    pub(crate) ci: Option<CiHost>,
}

/// Host of a repository whose pull requests are measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CiHost {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// Parses each of `accepted` and `refused` after the words of `mode`.
    fn check(mode: &str, accepted: &[&str], refused: &[&str]) {
        let parse = |words: &str| {
            let command = InitArguments::augment_args(Command::new("x").no_binary_name(true));
            let line = format!("{mode} {words}");
            let parsed = command.try_get_matches_from(line.split_whitespace());
            parsed.map(drop).map_err(|error| error.to_string())
        };
        for words in accepted {
            assert_eq!(parse(words), Ok(()), "{mode}: {words}");
        }
        for words in refused {
            let error = parse(words).unwrap_err();
            assert!(
                error.contains("cannot be used with"),
                "{mode}: {words}: {error}"
            );
        }
    }

    #[test]
    fn options_without_effect_on_urls_or_a_workflow_are_refused() {
        let of_programs = [
            "--command ./x",
            "--kind http",
            "--baseline same",
            "--comparison same",
            "--output tcp:127.0.0.1:9200",
            "--file x.log",
            "--broker 127.0.0.1:9092",
            "--topic logs",
            "--payload json",
            "--wait 1s",
        ];
        let of_builds = ["--build make", "--build-output x"];
        let of_files = ["--name shop", "--rate 5/s"];
        let urls = "--url http://a/ --url http://b/";
        for (mode, accepted, refused) in [
            (urls, of_files, of_builds),
            ("--ci github", of_builds, of_files),
        ] {
            check(mode, &["", "shop", "--force"], &of_programs);
            check(mode, &accepted, &refused);
        }
        check("--ci github", &[], &[urls]);
    }
}
