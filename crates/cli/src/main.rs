//! The `stillwell` command: thin commands over the crates that do the work.

mod arguments;
mod command;
mod exit;
mod paint;
mod progress;
mod signals;

use std::process::ExitCode;

use clap::Parser;
use stillwell_subject::prepare_privileges;

use crate::arguments::{Arguments, Command};
use crate::paint::Paint;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let paint = Paint::new(arguments.color);
    let result = match arguments.command {
        Command::Run(run) => {
            // Namespaces of one's own are a matter for processes with one thread.
            let privileges = prepare_privileges();
            command::run::run(&run, &paint, &privileges)
        }
        Command::Rig(rig) => {
            let privileges = prepare_privileges();
            command::rig::run(&rig, &paint, &privileges)
        }
        Command::Check(check) => command::check::run(&check, &paint),
        Command::Compare(compare) => command::compare::run(&compare, &paint),
        Command::Report(report) => command::report::run(&report, &paint),
        Command::Schema => command::schema::run(),
        Command::Relay(relay) => command::relay::run(&relay),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            paint.error(&error);
            error.exit.into()
        }
    }
}
