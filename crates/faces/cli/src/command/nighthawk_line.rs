//! Command lines of Nighthawk's tools.

use std::error::Error as _;
use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use stillwell_nighthawk::request::value_refusal;

use crate::exit::Exit;
use crate::paint::Paint;

/// Parses the command line of this process as one of Nighthawk's tools. Help, the version and
/// errors are printed.
///
/// # Errors
/// The exit of the process if it has nothing else to do: 0 after help, 1 after an error.
pub(crate) fn parse<T: Parser>() -> Result<T, Exit> {
    match T::try_parse_from(words(std::env::args_os())) {
        Ok(arguments) => Ok(arguments),
        Err(error) if error.use_stderr() => {
            Paint::print_message(&refusal(&error));
            Err(Exit::Failed)
        }
        // Help and version are no errors.
        Err(shown) => {
            let text = match shown.kind() {
                ErrorKind::DisplayHelp => format!("USAGE:\n\n{shown}"),
                _ => shown.to_string(),
            };
            Err(Paint::data(&text).map_or(Exit::Failed, |()| Exit::Held))
        }
    }
}

/// Returns the words of a command line as Nighthawk's parser splits them: the end of flags has
/// two names, and a flag and its value may be one word, such as `--duration 1`. More flags may
/// follow in the same word.
fn words(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut has_ended = false;
    for word in typed {
        if has_ended {
            words.push(word);
        } else if word == "--" || word == "--ignore_rest" {
            has_ended = true;
            words.push("--".into());
        } else {
            words.extend(split(&word));
        }
    }
    words
}

fn split(word: &OsString) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut rest = word.to_str();
    while let Some((flag, value)) = rest.and_then(flag_and_value) {
        words.push(flag.into());
        let value = value.trim_start_matches(' ');
        rest = Some(value).filter(|value| !value.is_empty());
        if flag_and_value(value).is_some() || is_flag(value) {
            continue;
        }
        // A value ends at a flag. One with spaces, such as JSON, is whole.
        if let Some((value, flags)) = value.split_once(' ')
            && flags.split(' ').next().is_some_and(is_flag)
        {
            words.push(value.into());
            rest = Some(flags);
        }
    }
    match rest {
        Some(rest) => words.push(rest.into()),
        None if words.is_empty() => words.push(word.clone()),
        None => {}
    }
    words
}

fn flag_and_value(text: &str) -> Option<(&str, &str)> {
    let (flag, value) = text.split_once(' ')?;
    is_flag(flag).then_some((flag, value))
}

fn is_flag(text: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let Some(name) = text.strip_prefix('-') else {
        return false;
    };
    let begins = name.starts_with(|letter: char| letter == '-' || letter.is_ascii_alphabetic());
    begins && name.chars().all(is_of_name)
}

/// Returns the error of a command line, in Nighthawk's words.
pub(crate) fn refusal(error: &clap::Error) -> String {
    let argument = error.get(ContextKind::InvalidArg);
    let argument = argument.map_or_else(String::new, ToString::to_string);
    if error.kind() == ErrorKind::ValueValidation
        && let Some(why) = error.source()
    {
        let flag = argument.split_whitespace().next().unwrap_or_default();
        return format!("Bad argument: {}", value_refusal(flag, &why.to_string()));
    }
    if error.kind() == ErrorKind::UnknownArgument {
        return format!(
            "PARSE ERROR: Argument: {argument}\n             Couldn't find match for argument"
        );
    }
    format!("PARSE ERROR: Argument: {argument}\n{error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_their_values_may_be_one_word() {
        for (typed, expected) in [
            (vec!["a", "--duration 1"], vec!["a", "--duration", "1"]),
            (vec!["-p http2"], vec!["-p", "http2"]),
            (vec!["--request-header=a: b"], vec!["--request-header=a: b"]),
            (
                vec!["--request-header", "a: b"],
                vec!["--request-header", "a: b"],
            ),
            (
                vec!["--ignore_rest", "--duration 1"],
                vec!["--", "--duration 1"],
            ),
            (vec!["-1 2"], vec!["-1 2"]),
            (vec!["--duration ", "1"], vec!["--duration", "1"]),
            (
                vec!["--concurrency 4 --rps 100 --h2 --label a"],
                vec!["--concurrency", "4", "--rps", "100", "--h2", "--label", "a"],
            ),
            (
                vec!["--open-loop --rps 5"],
                vec!["--open-loop", "--rps", "5"],
            ),
            (
                vec!["--stats-sinks {a: b, c: --d}"],
                vec!["--stats-sinks", "{a: b, c: --d}"],
            ),
        ] {
            let given = typed.iter().map(OsString::from);
            assert_eq!(words(given), expected, "{typed:?}");
        }
    }
}
