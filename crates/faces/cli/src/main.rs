//! The `stillwell` command: thin commands over the crates that do the work.

mod arguments;
mod command;
mod command_line;
mod exit;
mod formats;
mod help;
mod paint;
mod progress;
mod secrets;
mod signals;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use stillwell_environment::{PROCESS_TREE_WORD, be_process};
use stillwell_target::{prepare_privileges, raise_open_files};
use stillwell_units::Secrets;

use crate::arguments::{
    Arguments, CaptoolArguments, ColorWhen, Command, PayloadtoolArguments, parse_lading,
};
use crate::command::{test_harness, tremor};
use crate::command_line::read_words;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// A generator of processes started us as one of a tree; nothing else is needed of us.
fn be_process_of_a_tree() -> ExitCode {
    let parent = std::env::args_os().nth(2);
    match be_process(parent.as_deref(), std::io::stdin()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(error.exit_code()),
    }
}

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == PROCESS_TREE_WORD)
    {
        return be_process_of_a_tree();
    }
    raise_open_files();
    if let Some(code) = called_as_nighthawk() {
        return code;
    }
    if let Some(result) = called_as_lading() {
        return finish(result, &Paint::new(ColorWhen::Auto));
    }
    let arguments = match words_of_ancestor().and_then(read_arguments) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    secrets::set(arguments.keep_secrets);
    let paint = Paint::new(arguments.color);
    let result = match arguments.command {
        Command::Init(init) => command::init::run(&init, &paint, &prepare_privileges()),
        Command::Run(run) => command::run::run(&run, &paint, None),
        Command::Observe(observe) => command::observe::run(&observe, &paint),
        Command::Bench(bench) => command::bench::run(&bench, &paint),
        Command::Test(test) => command::test_bench::run(&test.command, &paint),
        Command::Check(check) => command::check::run(&check, &paint),
        Command::Import(import) => command::import::run(&import, &paint),
        Command::Compare(compare) => command::compare::run(&compare, &paint),
        Command::Report(report) => command::report::run(&report, &paint),
        Command::Comment(comment) => command::comment::run(&comment),
        Command::Plot(plot) => command::plot::run(&plot),
        Command::History(history) => command::history::run(&history, &paint),
        Command::Ui(ui) => command::ui::run(&ui),
        Command::Runs(runs) => command::runs::run(&runs, &paint),
        Command::Sql(sql) => command::sql::run(&sql),
        Command::Bisect(bisect) => {
            // Only a process with a single thread can enter new namespaces.
            let privileges = prepare_privileges();
            command::bisect::run(&bisect, &paint, &privileges)
        }
        Command::Calibrate(calibrate) => command::calibrate::run(&calibrate, &paint),
        Command::Disturb(disturb) => match command::calibrate::disturb::run(&disturb) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Lint(lint) => command::lint::run(&lint, &paint),
        Command::Explain(explain) => command::explain::run(&explain),
        Command::Schema { kind } => command::schema::run(kind),
        Command::Completions { shell } => command::pages::completions(shell),
        Command::Man { folder } => command::pages::man(&folder),
        Command::Load(load) => command::load::run(&load, &paint),
        Command::Ab(ab) => command::ab::run(&ab, &paint),
        Command::FindCapacity(find) => {
            let privileges = prepare_privileges();
            command::find_capacity::run(&find, &paint, &privileges)
        }
        Command::Serve(serve) => command::serve::run(&serve, &paint),
        Command::Service(service) => command::service::run(&service),
        Command::Cluster(cluster) => command::cluster::run(&cluster, &paint),
        Command::Transform(transform) => command::transform::run(&transform, &paint),
        Command::Relay(relay) => command::relay::run(&relay),
    };
    finish(result, &paint)
}

/// Returns the words of the command line. Those of Vector's test harness and of Tremor are
/// translated.
fn words_of_ancestor() -> Result<Vec<OsString>, ExitCode> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let words = typed.iter().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let translated = match called_by_name().as_deref() {
        Some(test_harness::NAME) if words.iter().any(|word| word == "-h" || word == "--help") => {
            let printed = print_page(test_harness::USAGE);
            return Err(finish(printed, &Paint::new(ColorWhen::Auto)));
        }
        Some(test_harness::NAME) => {
            let names = test_harness::result_names();
            let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
            test_harness::translate(&words, &names, cpus, Path::exists)
        }
        Some(tremor::NAME) => tremor::translate(&words).map(|words| (words, Vec::new())),
        _ => return Ok(typed),
    };
    match translated {
        Ok((words, remarks)) => {
            for remark in remarks {
                Paint::print_message(&remark);
            }
            secrets::set_command(&words);
            Ok(words.into_iter().map(OsString::from).collect())
        }
        Err(error) => {
            let error = Err(CommandError::new(Exit::Usage, error));
            Err(finish(error, &Paint::new(ColorWhen::Auto)))
        }
    }
}

/// Reads a command line. A page of all options is printed, and is all that there is to do.
fn read_arguments(typed: Vec<OsString>) -> Result<Arguments, ExitCode> {
    let words = typed.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    if let Some(page) = help::all_options(&words) {
        let printed = print_page(&page.to_string());
        return Err(finish(printed, &Paint::new(ColorWhen::Auto)));
    }
    Ok(read_words(typed).unwrap_or_else(|error| refuse(&help::with_hint(error))))
}

/// Runs one of Nighthawk's tools, if this program was called by that name.
fn called_as_nighthawk() -> Option<ExitCode> {
    let paint = Paint::new(ColorWhen::Auto);
    Some(match called_by_name()?.as_str() {
        command::guardian::NAME => command::guardian::run().into(),
        "nighthawk_test_server" => command::serve::run_as_nighthawk(&paint).into(),
        "nighthawk_client" => command::load::nighthawk::run_as_nighthawk(&paint).into(),
        "nighthawk_service" => command::service::run_as_nighthawk(&paint).into(),
        "nighthawk_adaptive_load_client" => {
            command::find_capacity::adaptive::run_as_nighthawk(&paint).into()
        }
        "nighthawk_output_transform" => command::transform::run_as_nighthawk(),
        _ => return None,
    })
}

/// Runs lading or one of its tools, if this program was called by that name.
fn called_as_lading() -> Option<Result<Exit, CommandError>> {
    let paint = Paint::new(ColorWhen::Auto);
    let result = match called_by_name()?.as_str() {
        "lading" => match parse_lading(std::env::args_os()) {
            Ok(command) => command::lading::run(&command, &paint),
            Err(error) => error.exit(),
        },
        "captool" => command::captool::run(&CaptoolArguments::parse()),
        "payloadtool" => command::payloadtool::run(&PayloadtoolArguments::parse(), &paint),
        _ => return None,
    };
    Some(match result {
        Ok(exit) => Ok(exit.of_lading()),
        Err(error) => Err(CommandError {
            exit: error.exit.of_lading(),
            ..error
        }),
    })
}

/// The name under which this program was called: that of an ancestor brings the
/// ancestor's flags.
fn called_by_name() -> Option<String> {
    let program = std::env::args_os().next()?;
    let name = Path::new(&program).file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Prints a page of help.
fn print_page(page: &str) -> Result<Exit, CommandError> {
    let printed = Paint::data(page).map(|()| Exit::Held);
    printed.map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Prints a usage error or a help page, without secrets that were typed, and exits.
fn refuse(error: &clap::Error) -> ! {
    let text = error.to_string();
    if error.use_stderr() && Secrets::Masked.text(&text) != text {
        Paint::print_message(text.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

fn finish(result: Result<Exit, CommandError>, paint: &Paint) -> ExitCode {
    command::places::remove_unused();
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            paint.error(&error);
            error.exit.into()
        }
    }
}
