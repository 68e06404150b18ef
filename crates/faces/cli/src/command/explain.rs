//! `stillwell explain`.

use stillwell_config::{DIAGNOSTIC_CODES, nearest};
use stillwell_metric::catalogue::ALL as METRICS;
use stillwell_metric::{COUNTING_OBSTACLES, Kind, Metric, Outcome, Unit};
use stillwell_verdict::explain::{
    GATES, LOAD_WARNINGS, RUN_NOTES, RUN_WARNINGS, STOP_REASONS, VERDICTS,
};

use crate::arguments::ExplainArguments;
use crate::exit::{CommandError, EXIT_CODES, Exit};
use crate::paint::Paint;

/// Width of lines.
const COLUMNS: usize = 90;

/// The words of reports and pages, in a table of Markdown.
const GLOSSARY: &str = include_str!("../../../../../GLOSSARY.md");

/// A code or word, and its meaning.
#[derive(Clone, Debug, Eq, PartialEq)]
struct ExplainedCode {
    code: &'static str,
    /// Place where the code is printed.
    group: &'static str,
    text: String,
}

/// Returns every code from the crates that own them, then series, then words.
fn all() -> Vec<ExplainedCode> {
    let groups = [
        (
            "code of a message about a configuration file",
            DIAGNOSTIC_CODES,
        ),
        ("verdict", VERDICTS),
        ("gate of an experiment", GATES),
        ("reason why goals of a run do not count", RUN_WARNINGS),
        ("note of a run that counts", RUN_NOTES),
        ("reason why no instructions are counted", COUNTING_OBSTACLES),
        ("warning of a load", LOAD_WARNINGS),
        ("reason why no more pairs are run", STOP_REASONS),
        ("exit code", EXIT_CODES),
    ];
    let groups = groups.into_iter().flat_map(|(group, codes)| {
        let codes = codes.iter();
        codes.map(move |&(code, text)| ExplainedCode {
            code,
            group,
            text: text.to_owned(),
        })
    });
    let outcomes = Outcome::ALL.into_iter().map(|outcome| ExplainedCode {
        code: outcome.name(),
        group: "outcome of a send",
        text: outcome.explanation().to_owned(),
    });
    let series = METRICS.iter().map(|metric| ExplainedCode {
        code: metric.name,
        group: "series of a capture",
        text: series_text(metric),
    });
    let all = groups.chain(outcomes).chain(series);
    all.chain(glossary(GLOSSARY)).collect()
}

/// Returns the meaning of a series, with its kind and unit.
fn series_text(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "A counter",
        Kind::Gauge => "A value of the moment",
        Kind::Histogram => "A histogram",
    };
    let unit = match metric.unit {
        Unit::Count | Unit::Unknown => String::new(),
        unit => format!(" in {}", unit.symbol()),
    };
    format!("{} {kind}{unit}.", metric.meaning)
}

/// Returns the rows of a table of Markdown whose first column has words in bold.
fn glossary(table: &'static str) -> impl Iterator<Item = ExplainedCode> {
    table.lines().filter_map(|line| {
        let (words, text) = line.strip_prefix("| **")?.split_once(" | ")?;
        let word = words.split("**").next()?;
        Some(ExplainedCode {
            code: word.trim_matches('`'),
            group: "word",
            text: plain(text.trim_end().trim_end_matches('|').trim_end()),
        })
    })
}

/// Returns a text of Markdown without marks and without the targets of links.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.replace(['[', '`'], "").replace("**", "")
}

/// Returns `code` in the form in which codes are compared.
fn normalized(code: &str) -> String {
    let code = code.trim().trim_matches('`');
    code.replace([' ', '-'], "_").to_lowercase()
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, CommandError> {
    let all = all();
    let text = match &arguments.code {
        None => list(&all),
        Some(code) => explanation(&all, code)?,
    };
    Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// Returns the meanings of `code`; several parts may use the same word.
fn explanation(all: &[ExplainedCode], code: &str) -> Result<String, CommandError> {
    let typed = normalized(code);
    let same = all.iter().filter(|entry| normalized(entry.code) == typed);
    let texts: Vec<String> = same
        .map(|entry| {
            let text = entry.text.split_whitespace();
            let text = wrapped(text, "  ");
            format!("{} ({})\n{text}", entry.code, entry.group)
        })
        .collect();
    if !texts.is_empty() {
        return Ok(texts.join("\n"));
    }
    let error = anyhow::anyhow!("`{code}` is not a code, series or term that Stillwell uses");
    let error = CommandError::new(Exit::Usage, error);
    Err(match nearest(&typed, all.iter().map(|entry| entry.code)) {
        Some(near) => error.hint(format!(
            "did you mean `{near}`? `--list` prints all of them"
        )),
        None => error.hint("`stillwell explain --list` prints all of them"),
    })
}

/// Returns all codes by group, each with its first sentence.
fn list(all: &[ExplainedCode]) -> String {
    let mut text = String::new();
    let mut group = "";
    for entry in all {
        if entry.group != group {
            group = entry.group;
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{group}\n"));
        }
        let whole = entry.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = whole.split_inclusive(". ").next().unwrap_or_default();
        text.push_str(&format!("  {:<22} {}\n", entry.code, first.trim()));
    }
    text
}

/// Returns lines of at most [`COLUMNS`], each behind `indent`.
fn wrapped<'w>(words: impl Iterator<Item = &'w str>, indent: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words {
        let length = word.chars().count();
        if column > 0 && column + 1 + length <= COLUMNS {
            text.push(' ');
            column += 1;
        } else {
            if column > 0 {
                text.push('\n');
            }
            text.push_str(indent);
            column = indent.len();
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_explanation_that_ends_as_a_sentence() {
        let all = all();
        assert!(all.len() > 100, "{}", all.len());
        for entry in &all {
            let shown = explanation(&all, entry.code).unwrap();
            assert!(shown.trim().ends_with('.'), "{shown}");
            for line in shown.lines() {
                assert!(line.chars().count() <= COLUMNS, "{line}");
            }
        }
        let shown = list(&all);
        assert!(all.iter().all(|entry| shown.contains(entry.code)));
    }

    #[test]
    fn a_code_that_is_nearly_right_is_suggested() {
        let hint = |code: &str| explanation(&all(), code).unwrap_err().hint.unwrap();
        assert!(hint("target_delay").contains("`target_delayed`"));
        assert!(hint("regresed").contains("`regressed`"));
        assert!(hint("W1O1").contains("`W1"));
        assert!(hint("xyzzy plugh").contains("--list"));
    }

    #[test]
    fn words_and_series_of_reports_are_explained() {
        let all = all();
        let shown = |code: &str| explanation(&all, code).unwrap();
        assert!(shown("target_run_delay").contains("A counter in ns."));
        assert!(shown("detectable change").contains("(word)"));
        for word in [
            "seed",
            "sliced",
            "duet",
            "exploratory",
            "false alarm",
            "CPU shortage",
        ] {
            assert!(!shown(word).contains(['*', '`', '[']), "{word}");
        }
        assert_eq!(plain("a [link](to/it.md) of **`code`**"), "a link of code");
    }

    #[test]
    fn upper_case_and_dashes_do_not_matter() {
        for code in ["w101", "W101", "Sends-Bunched", "130"] {
            assert!(explanation(&all(), code).is_ok(), "{code}");
        }
        let both = explanation(&all(), "generator_late").unwrap();
        assert!(both.contains("of a run do not count") && both.contains("of a load"));
    }
}
