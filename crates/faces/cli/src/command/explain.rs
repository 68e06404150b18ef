//! `stillwell explain`.

use stillwell_config::{DIAGNOSTIC_CODES, nearest};
use stillwell_metric::{COUNTING_OBSTACLES, Outcome};
use stillwell_verdict::explain::{
    GATES, LOAD_WARNINGS, RUN_NOTES, RUN_WARNINGS, STOP_REASONS, VERDICTS,
};

use crate::arguments::ExplainArguments;
use crate::exit::{CommandError, EXIT_CODES, Exit};
use crate::paint::Paint;

/// Width of lines.
const COLUMNS: usize = 90;

/// A code, and its meaning.
#[derive(Clone, Debug, Eq, PartialEq)]
struct ExplainedCode {
    code: &'static str,
    /// Place where the code is printed.
    group: &'static str,
    text: &'static str,
}

/// Returns every code, from the crates that own them.
fn all() -> Vec<ExplainedCode> {
    let groups = [
        (
            "code of a message about a configuration file",
            DIAGNOSTIC_CODES,
        ),
        ("verdict", VERDICTS),
        ("gate of an experiment", GATES),
        ("reason why a run does not count", RUN_WARNINGS),
        ("note of a run that counts", RUN_NOTES),
        ("reason why no instructions are counted", COUNTING_OBSTACLES),
        ("warning of a load", LOAD_WARNINGS),
        ("reason why no more pairs are run", STOP_REASONS),
        ("exit code", EXIT_CODES),
    ];
    let groups = groups.into_iter().flat_map(|(group, codes)| {
        let codes = codes.iter();
        codes.map(move |&(code, text)| ExplainedCode { code, group, text })
    });
    let outcomes = Outcome::ALL.into_iter().map(|outcome| ExplainedCode {
        code: outcome.name(),
        group: "outcome of a send",
        text: outcome.explanation(),
    });
    groups.chain(outcomes).collect()
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
    let typed = code.trim().replace([' ', '-'], "_");
    let same = all
        .iter()
        .filter(|entry| entry.code.eq_ignore_ascii_case(&typed));
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
    let error = anyhow::anyhow!("`{code}` is not a code of Stillwell");
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
    fn upper_case_and_dashes_do_not_matter() {
        for code in ["w101", "W101", "Sends-Bunched", "130"] {
            assert!(explanation(&all(), code).is_ok(), "{code}");
        }
        let both = explanation(&all(), "generator_late").unwrap();
        assert!(both.contains("a run does not count") && both.contains("of a load"));
    }
}
