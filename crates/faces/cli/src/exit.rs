//! Exit codes, and errors that carry one.

use std::fmt;
use std::process::ExitCode;

/// Number of the signal.
const SIGINT: i32 = 2;

/// Exit codes and their meanings.
pub(crate) const EXIT_CODES: &[(&str, &str)] = &[
    (
        "0",
        "No regression, and every check passed. An inconclusive experiment gives 0, too, unless `--gate strict` \
         was given.",
    ),
    (
        "1",
        "A regression of a primary goal, a failed check, or a broken bound of a load.",
    ),
    (
        "2",
        "Wrong usage or configuration: nothing was run. The message names the argument, or file, \
         line and column.",
    ),
    (
        "3",
        "The command could not run: a port is taken, a build failed, the target was never ready, or the \
         URL accepts no connection. Remove the cause, then repeat the command.",
    ),
    (
        "4",
        "The command ran, but the result is not reliable enough: the target died, too many runs were \
         disturbed, or the generator was too slow. Also inconclusive, with `--gate strict`.",
    ),
    ("129", "Ended by SIGHUP. What was finished is kept."),
    (
        "130",
        "Ended by SIGINT, such as Ctrl-C. What was finished is kept; `--resume` continues.",
    ),
    ("131", "Ended by SIGQUIT. What was finished is kept."),
    (
        "143",
        "Ended by SIGTERM. What was finished is kept; `--resume` continues.",
    ),
];

/// Exit codes. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// Every gate held.
    Held,
    /// A regression, or a failed check.
    Failed,
    /// Usage or configuration.
    Usage,
    /// Could not run.
    CouldNotRun,
    /// A run or suite is invalid.
    Invalid,
    /// Ended by this signal.
    Interrupted(i32),
}

impl Exit {
    /// The exit with this number; any unknown one is invalid.
    pub(crate) const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Held,
            1 => Self::Failed,
            2 => Self::Usage,
            3 => Self::CouldNotRun,
            _ => Self::Invalid,
        }
    }

    /// The exit of lading and its tools: 0 if they worked, 1 if not, 2 for a wrong command
    /// line. SIGINT ends a run normally.
    pub(crate) const fn of_lading(self) -> Self {
        match self {
            Self::Interrupted(SIGINT) => Self::Held,
            Self::CouldNotRun | Self::Invalid => Self::Failed,
            _ => self,
        }
    }

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Held => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::CouldNotRun => 3,
            Self::Invalid => 4,
            Self::Interrupted(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Returns the exit code: 0 for every verdict if `exit_zero`. Wrong usage, a command that could not run, and a signal are
/// no verdicts and keep their codes.
pub(crate) const fn exit_of_verdicts(exit: Exit, exit_zero: bool) -> Exit {
    match exit {
        Exit::Held | Exit::Failed | Exit::Invalid if exit_zero => Exit::Held,
        exit => exit,
    }
}

/// An error of a command.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The error and its causes.
    pub(crate) error: anyhow::Error,
    /// Advice for the user.
    pub(crate) hint: Option<String>,
    /// Details that were printed before, such as the places of errors in a file.
    pub(crate) details: Option<String>,
}

impl CommandError {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            hint: None,
            details: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_help() {
        let exits = [
            Exit::Held,
            Exit::Failed,
            Exit::Usage,
            Exit::CouldNotRun,
            Exit::Invalid,
        ];
        let explained = |code: u8| {
            let mut codes = EXIT_CODES.iter();
            codes.any(|(known, _)| *known == code.to_string())
        };
        for signal in [1, 2, 3, 15] {
            assert!(explained(Exit::Interrupted(signal).code()));
        }
        for (code, exit) in (0..).zip(exits) {
            assert!(explained(code));
            assert_eq!(exit.code(), code);
            assert_eq!(Exit::from_code(code), exit);
        }
        assert_eq!(Exit::Interrupted(2).code(), 130);
        assert_eq!(Exit::Interrupted(15).code(), 143);
    }

    #[test]
    fn exit_zero_applies_to_verdicts_alone() {
        for exit in [Exit::Held, Exit::Failed, Exit::Invalid] {
            assert_eq!(exit_of_verdicts(exit, true), Exit::Held, "{exit:?}");
            assert_eq!(exit_of_verdicts(exit, false), exit);
        }
        for exit in [Exit::Usage, Exit::CouldNotRun, Exit::Interrupted(15)] {
            assert_eq!(exit_of_verdicts(exit, true), exit);
            assert_eq!(exit_of_verdicts(exit, false), exit);
        }
    }

    #[test]
    fn codes_of_lading_are_zero_one_and_two() {
        for (exit, code) in [
            (Exit::Held, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::CouldNotRun, 1),
            (Exit::Invalid, 1),
            (Exit::Interrupted(2), 0),
            (Exit::Interrupted(15), 143),
        ] {
            assert_eq!(exit.of_lading().code(), code, "{exit:?}");
        }
    }
}
