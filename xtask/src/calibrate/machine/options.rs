//! What can be typed behind `calibrate --machine`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::absolute;

/// What to do, and with what.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Options {
    pub(super) act: Act,
    /// `--ledger FILE`.
    pub(super) ledger: Option<PathBuf>,
    /// `--binary FILE`: this release binary instead of one built now.
    pub(super) binary: Option<PathBuf>,
    /// `--wrap "WORDS"`: a command to put before each experiment, such as `nice`
    /// or `flock FILE`, so that other work takes turns.
    pub(super) wrap: Vec<String>,
    /// `--minutes N`: no experiment starts after so long.
    pub(super) minutes: Option<u32>,
}

/// What to do with the ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Act {
    /// Begin one.
    Start,
    /// `--resume`: add to it, or begin one.
    Resume,
    /// `--table`: print it.
    Table,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            act: Act::Start,
            ledger: None,
            binary: None,
            wrap: Vec::new(),
            minutes: None,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .with_context(|| format!("{word} wants a value"))
            };
            match word {
                "--resume" => options.act = Act::Resume,
                "--table" => options.act = Act::Table,
                "--ledger" => options.ledger = Some(absolute(value()?)?),
                "--binary" => options.binary = Some(absolute(value()?)?),
                "--wrap" => {
                    options.wrap = value()?.split_whitespace().map(str::to_owned).collect();
                }
                "--minutes" => {
                    let text = value()?;
                    let minutes = text.parse();
                    options.minutes = Some(minutes.with_context(|| format!("--minutes {text}"))?);
                }
                other => bail!(
                    "`{other}` is not known here: --resume, --table, --ledger FILE, --binary FILE, \
                     --wrap \"WORDS\", --minutes N"
                ),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options() {
        let options = Options::parse(&["--resume", "--wrap", "nice -n 1", "--minutes", "60"]);
        let options = options.unwrap();
        assert_eq!(options.act, Act::Resume);
        assert_eq!(options.wrap, ["nice", "-n", "1"]);
        assert_eq!(options.minutes, Some(60));
        assert_eq!(Options::parse(&[]).unwrap().act, Act::Start);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (words, expected) in [
            (&["--again"][..], "`--again` is not known"),
            (&["--ledger"], "--ledger wants a value"),
            (&["--minutes", "soon"], "--minutes soon"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
