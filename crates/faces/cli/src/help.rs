//! Help: a short page with examples for each command, and all options with `--help-all`.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory as _};

use crate::arguments::Arguments;

/// Flag that prints every option.
const HELP_ALL: &str = "--help-all";

/// Commands by purpose, in the order of the overview.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["init", "explain"]),
    ("Load", &["load", "find-capacity", "serve"]),
    ("Compare", &["ab", "run", "bisect", "calibrate"]),
    ("Pipelines", &["observe", "bench", "test", "relay"]),
    (
        "Results",
        &[
            "report",
            "comment",
            "plot",
            "compare",
            "history",
            "ui",
            "runs",
            "sql",
            "import",
            "transform",
        ],
    ),
    (
        "Tools",
        &[
            "check",
            "lint",
            "schema",
            "service",
            "cluster",
            "completions",
            "man",
        ],
    ),
];

/// The short page of a command.
struct ShortPage {
    command: &'static str,
    examples: &'static str,
    /// Options on the page.
    options: &'static [&'static str],
    /// Text below the options, in place of the long one.
    notes: Option<&'static str>,
}

/// Shorter texts of some options.
const TEXTS: [(&str, &str); 12] = [
    ("no_confirm", "Do not confirm a regression on new runs"),
    ("method", "Method [default: GET, or POST with a body]"),
    ("header", "Header, as `name: value`; repeatable"),
    ("body", "Body: text, @FILE or payload:FORMAT:SIZE"),
    (
        "threshold",
        "Bound that must hold: p99<20ms, errors<1%; repeatable",
    ),
    ("output_format", "Output: human, json, csv or another"),
    (
        "output",
        "Also write FILE, in the format of its extension; repeatable",
    ),
    (
        "concurrency",
        "Load-generator threads, or auto for one on each CPU",
    ),
    ("max_probes", "Maximum number of probes"),
    ("max_time", "Time after which no probe begins"),
    (
        "goal",
        "Goal that decides the exit code: METRIC or METRIC:TOLERANCE",
    ),
    ("quick", "Finish within about two minutes"),
];

const PAGES: [ShortPage; 5] = [
    ShortPage {
        command: "load",
        examples: "\
Examples:
  stillwell load http://127.0.0.1:8080/            as fast as responses arrive
  stillwell load URL -r 1k/s -d 30s                1,000 requests per second
  stillwell load URL -X POST -b @body -H 'a: b'    with a body and a header
  stillwell load URL --threshold 'p99<20ms'        exit code 1 if it is slower",
        options: &[
            "urls",
            "rate",
            "duration",
            "requests",
            "warmup",
            "connections",
            "concurrency",
            "protocol",
            "method",
            "header",
            "body",
            "timeout",
            "insecure",
            "threshold",
            "strict",
            "output_format",
            "output",
            "quiet",
        ],
        notes: Some(
            "\
Rates: max (as fast as responses arrive), 1000/s (independent of responses),
  100/s..5k/s:30s (a ramp), 100/s:10s,1k/s:10s (steps)
Units: a rate without a unit is per second; a time needs one: 500ms, 10s, 2m
Exit codes: 0 done, 1 no successful response or a broken threshold, 2 usage,
  3 no connection, 4 the generator was too slow, 130 and 143 interrupted",
        ),
    },
    ShortPage {
        command: "ab",
        examples: "\
Examples:
  stillwell ab http://10.0.0.1:8080/ http://10.0.0.2:8080/
  stillwell ab URL_A URL_B -r 5k/s --goal latency_p99:10%
  stillwell ab URL_A URL_B -X POST -b @body -o report.html",
        options: &[
            "baseline",
            "comparison",
            "rate",
            "duration",
            "warmup",
            "max_pairs",
            "no_confirm",
            "goal",
            "connections",
            "concurrency",
            "protocol",
            "method",
            "header",
            "body",
            "requests_file",
            "timeout",
            "insecure",
            "results",
            "gate",
            "format",
            "output",
            "quiet",
        ],
        notes: Some(
            "\
Exit codes: 0 no regression of B, 1 a regression of B, 2 usage, 3 no connection,
  4 invalid, 130 and 143 interrupted",
        ),
    },
    ShortPage {
        command: "find-capacity",
        examples: "\
Examples:
  stillwell find-capacity URL --bound 'p99<20ms' --bound 'errors<1%'",
        options: &[
            "urls",
            "bound",
            "objective",
            "from",
            "to",
            "within",
            "probe",
            "max_probes",
            "max_time",
            "connections",
            "concurrency",
            "protocol",
            "method",
            "header",
            "body",
            "insecure",
            "results",
            "format",
            "output",
            "quiet",
        ],
        notes: Some(
            "\
Bounds: p99<20ms, mean<5ms, max<1s, errors<0.1%, loss<0.01%, throughput>99%
Exit codes: 0 confirmed, or bounds hold at the highest rate,
  1 bounds fail at the lowest rate, 2 usage, 3 no connection, 4 not confirmed,
  130 and 143 interrupted",
        ),
    },
    ShortPage {
        command: "run",
        examples: "\
Examples:
  stillwell run suite/                   all experiments of a folder
  stillwell run suite/ --baseline git:main --comparison git:branch
  stillwell run suite/ --resume          continue after an interruption",
        options: &[
            "paths",
            "baseline",
            "comparison",
            "build",
            "max_pairs",
            "fixed_pairs",
            "no_max",
            "measure",
            "quick",
            "goal",
            "results",
            "resume",
            "gate",
            "exit_zero",
            "format",
            "output",
            "quiet",
        ],
        notes: Some(
            "\
Exit codes: 0 no regression, 1 a regression or a failed check, 2 usage,
  3 could not run, 4 invalid, 130 and 143 interrupted",
        ),
    },
    ShortPage {
        command: "serve",
        examples: "\
Examples:
  stillwell serve                                 answers 200 on 127.0.0.1:10000
  stillwell serve --delay 5ms --error-rate 1%     slow, with errors
  stillwell serve --tls self-signed               over TLS",
        options: &[
            "config",
            "address",
            "workers",
            "status",
            "response_size",
            "delay",
            "error",
            "error_rate",
            "rate_limit",
            "tls",
            "protocol",
            "log_requests",
            "format",
        ],
        notes: Some(
            "\
DELAY and other expressions may use active_requests and more: see --help-all",
        ),
    },
];

/// Returns the command line, with short pages of help.
pub(crate) fn command() -> clap::Command {
    let mut command = full().override_help(overview());
    for name in names_of_subcommands(&full()) {
        let page = PAGES.iter().find(|page| page.command == name);
        command = command.mut_subcommand(name, |command| match page {
            Some(page) => shorten(command, page),
            None => compact(command),
        });
    }
    command
}

fn names_of_subcommands(command: &clap::Command) -> Vec<String> {
    let names = command.get_subcommands().map(clap::Command::get_name);
    names.map(str::to_owned).collect()
}

/// Prints one line for each option with `-h` and with `--help`; details are in `--help-all`.
fn compact(mut command: clap::Command) -> clap::Command {
    for name in names_of_subcommands(&command) {
        command = command.mut_subcommand(name, compact);
    }
    command.disable_help_flag(true).arg(help_flag())
}

/// Returns `-h`, which prints the compact form.
fn help_flag() -> Arg {
    Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::HelpShort)
        .help_heading(None::<&str>)
        .help("Print these options")
}

/// Returns the command line with all options on each page.
pub(crate) fn full() -> clap::Command {
    Arguments::command()
}

/// Adds the command that has the same letters to an error about an unknown command: `rnu` for `run`.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let typed = sorted(typed);
    let commands = full();
    let mut names = commands.get_subcommands().map(clap::Command::get_name);
    // These letters are a closer match than that of clap, such as `runs`.
    if let Some(name) = names.find(|name| sorted(name) == typed) {
        let hint = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, hint);
    }
    error
}

/// Returns the page that `--help-all` requests, if these words have it.
pub(crate) fn all_options(words: &[String]) -> Option<StyledStr> {
    let named = words.iter().skip(1).take_while(|word| *word != "--");
    let named: Vec<&String> = named.collect();
    if !named.iter().any(|word| *word == HELP_ALL) {
        return None;
    }
    let mut command = full();
    command.build();
    let mut at = &mut command;
    for word in named {
        if at.find_subcommand(word).is_some() {
            at = at
                .find_subcommand_mut(word)
                .expect("it was there in the line above");
        }
    }
    Some(at.render_long_help())
}

fn shorten(command: clap::Command, page: &ShortPage) -> clap::Command {
    let is_shown = |id: &str| page.options.contains(&id) || matches!(id, "help_all" | "color");
    let command = command
        .mut_args(|argument| {
            let id = argument.get_id().to_string();
            // All options of a short page have one heading.
            let argument = argument.hide(!is_shown(&id)).help_heading(None::<&str>);
            match TEXTS.iter().find(|(name, _)| *name == id) {
                Some((_, text)) => argument.help(*text),
                None => argument,
            }
        })
        .disable_help_flag(true)
        .arg(help_flag())
        .before_help(page.examples)
        .help_template(
            "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
        );
    match page.notes {
        Some(notes) => command.after_help(notes),
        None => command,
    }
}

/// Returns the overview of all commands.
fn overview() -> String {
    let command = full();
    let mut text = String::new();
    text.push_str(
        "Load-tests a program, measures its resource cost, and shows whether a change\n\
         made it faster or slower\n\n",
    );
    text.push_str("Usage: stillwell <COMMAND> [OPTIONS]\n");
    text.push_str(
        "\nExamples:
  stillwell load http://127.0.0.1:8080/      load-test a URL
  stillwell ab URL_A URL_B                   compare two running services
  stillwell run my-experiment                compare two versions of a program
",
    );
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let about = about.split(['.', ',', ':', ';']).next().unwrap_or_default();
            text.push_str(&format!("  {name:<14} {}\n", about.replace('\n', " ")));
        }
    }
    text.push_str(
        "\nOptions:
  -h, --help       The options of a command that most people need, with examples
      --help-all   All options of a command
      --color WHEN auto, always or never
  -V, --version    Version and commit
",
    );
    let codes = command.get_after_help().map(ToString::to_string);
    text.push_str(&format!("\n{}\n", codes.unwrap_or_default()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_place_in_the_overview() {
        let full = full();
        let commands = full.get_subcommands();
        let commands = commands.filter(|command| !command.is_hide_set());
        let mut expected: Vec<&str> = commands.map(clap::Command::get_name).collect();
        let groups = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut grouped: Vec<&str> = groups.collect();
        expected.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, expected);
        for line in overview().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn a_command_with_its_letters_in_another_order_is_suggested() {
        for (typed, hint) in [
            ("rnu", Some("run")),
            ("laod", Some("load")),
            ("zebra", None),
        ] {
            let error = command().try_get_matches_from(["stillwell", typed]);
            let shown = with_hint(error.unwrap_err()).to_string();
            let tip = hint.map(|hint| format!("similar subcommand exists: '{hint}'"));
            match tip {
                Some(tip) => assert!(shown.contains(&tip), "{shown}"),
                None => assert!(!shown.contains("similar"), "{shown}"),
            }
        }
    }

    #[test]
    fn short_pages_fit_in_sixty_lines_and_name_options_that_exist() {
        command().debug_assert();
        let mut short = command().term_width(80);
        short.build();
        for page in &PAGES {
            let full = full();
            let command = full.find_subcommand(page.command).unwrap();
            for id in page.options {
                let mut arguments = command.get_arguments();
                assert!(
                    arguments.any(|argument| argument.get_id() == id),
                    "{}: {id}",
                    page.command
                );
            }
            let command = short.find_subcommand_mut(page.command).unwrap();
            let text = command.clone().term_width(80).render_help().to_string();
            assert!(text.contains("Examples:"), "{text}");
            let lines = text.lines().count();
            assert!(lines <= 60, "{}: {lines} lines\n{text}", page.command);
        }
    }

    #[test]
    fn both_help_flags_print_the_same_page() {
        for name in names_of_subcommands(&full()) {
            let page = |flag: &str| {
                let shown = command().try_get_matches_from(["stillwell", &name, flag]);
                shown.unwrap_err().to_string()
            };
            assert_eq!(page("-h"), page("--help"), "{name}");
        }
    }

    #[test]
    fn all_options_are_printed_on_request() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let text = all_options(&words("stillwell load --help-all")).unwrap();
        assert!(text.to_string().contains("--tunnel-uri"), "{text}");
        assert_eq!(all_options(&words("stillwell load --help")), None);
        assert_eq!(all_options(&words("stillwell load -- --help-all")), None);
    }
}
