//! Data on standard output, talk on standard error; colour where it is wanted.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use stillwell_report::document::escape::is_steering;

use crate::arguments::ColorWhen;
use crate::exit::CommandError;
use crate::secrets;

/// Columns where the terminal does not say.
const COLUMNS: u16 = 100;

/// Colors of output.
#[derive(Debug)]
pub(crate) struct Paint {
    /// True if standard output is colored.
    pub(crate) out: bool,
    /// True if standard error is colored.
    pub(crate) err: bool,
    /// True where standard error is a terminal.
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
        columns_of(io::stdout())
    }

    /// Columns of standard error.
    pub(crate) fn message_columns() -> u16 {
        columns_of(io::stderr())
    }

    /// Prints data. A reader that has gone away is no error.
    pub(crate) fn data(text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Prints a message beside the data, without secrets.
    pub(crate) fn print_message(text: &str) {
        Self::print_masked(&secrets::handling().text(text));
    }

    /// Prints a message whose secrets are masked already. A closed standard error is ignored. Text from outside does
    /// not steer the terminal.
    pub(crate) fn print_masked(text: &str) {
        let text = visible(text);
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

    /// Prints an error and its remedy.
    pub(crate) fn error(&self, error: &CommandError) {
        let red = AnsiColor::Red.on_default().bold();
        Self::print_message(&format!("{} {error}", self.styled(red, "error:")));
        if let Some(hint) = &error.hint {
            Self::print_message(&format!("  {hint}"));
        }
    }
}

/// Returns the columns of a terminal, or those of a file.
fn columns_of(stream: impl AsFd) -> u16 {
    rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| size.ws_col)
        .filter(|columns| *columns > 0)
        .unwrap_or(COLUMNS)
}

/// Returns `text` with its control characters spelled out, other than line feeds, tabs and
/// sequences that set a colour.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| !is_steering(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len());
    let mut left = text;
    while let Some(character) = left.chars().next() {
        let length = match colour_length(left) {
            Some(length) => {
                visible.push_str(&left[..length]);
                length
            }
            None if is_kept(character) => {
                visible.push(character);
                character.len_utf8()
            }
            None => {
                visible.extend(character.escape_default());
                character.len_utf8()
            }
        };
        left = &left[length..];
    }
    Cow::Owned(visible)
}

/// Returns the length of the sequence that sets a colour at the start of `text`, if one is there.
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out_and_colours_stay() {
        let text = "\x1b[1;31merror:\x1b[0m a\tb\nc \x1b[2J \x1b]52;c;aGk=\x07 \r\u{9b}2J\u{202e}";
        let expected = "\x1b[1;31merror:\x1b[0m a\tb\nc \\u{1b}[2J \\u{1b}]52;c;aGk=\\u{7} \\r\\u{9b}2J\\u{202e}";
        assert_eq!(visible(text), expected);
    }

    #[test]
    fn only_colours_steer_the_terminal() {
        // Each pair of characters before the parts of a sequence.
        let parts = [
            "",
            "\u{1b}",
            "[",
            "[0m",
            "[3;1m",
            "[;",
            "]0;a\u{7}",
            "\u{9b}",
            "\r",
            "é",
            "\0",
        ];
        let texts = parts.iter().flat_map(|a| {
            let pairs = parts.iter().map(move |b| format!("{a}{b}"));
            pairs.flat_map(|pair| parts.iter().map(move |c| format!("{pair}{c}\u{1b}{c}")))
        });
        for text in texts {
            let mut left = visible(&text).into_owned();
            while let Some(place) = left.find('\u{1b}') {
                let length = colour_length(&left[place..]).expect("a colour");
                left.replace_range(place..place + length, "");
            }
            let is_plain = |c: char| !is_steering(c) || matches!(c, '\n' | '\t');
            assert!(left.chars().all(is_plain), "{text:?}: {left:?}");
        }
    }
}
