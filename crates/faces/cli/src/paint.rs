//! Data on standard output, talk on standard error; colour where it is wanted.

use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

use crate::arguments::ColorWhen;
use crate::exit::CommandError;

/// Columns where the terminal does not say.
const COLUMNS: u16 = 100;

/// Colors of output.
#[derive(Debug)]
pub(crate) struct Paint {
    /// True if standard output is colored.
    pub(crate) out: bool,
    /// True if standard error is colored.
    pub(crate) err: bool,
    /// Whether standard error is a terminal.
    pub(crate) live: bool,
}

impl Paint {
    pub(crate) fn new(when: ColorWhen) -> Self {
        let takes = |choice: ColorChoice| match when {
            ColorWhen::Auto => !matches!(choice, ColorChoice::Never),
            ColorWhen::Always => true,
            ColorWhen::Never => false,
        };
        Self {
            out: takes(anstream::AutoStream::choice(&io::stdout())),
            err: takes(anstream::AutoStream::choice(&io::stderr())),
            live: io::stderr().is_terminal(),
        }
    }

    /// Columns of standard output.
    pub(crate) fn columns() -> u16 {
        rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
            .unwrap_or(COLUMNS)
    }

    /// Prints data. A reader that has gone away is no error.
    pub(crate) fn data(text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Says something beside the data. Where nobody can hear it, nobody does.
    pub(crate) fn say(text: &str) {
        let mut err = io::stderr().lock();
        if writeln!(err, "{text}").is_err() {
            // Standard error is closed: there is nowhere left to say so.
        }
    }

    /// `text` in `style`, where standard error takes colour.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.err {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Tells an error and what to do about it.
    pub(crate) fn error(&self, error: &CommandError) {
        let red = AnsiColor::Red.on_default().bold();
        Self::say(&format!("{} {error}", self.styled(red, "error:")));
        if let Some(hint) = &error.hint {
            Self::say(&format!("  {hint}"));
        }
    }
}
