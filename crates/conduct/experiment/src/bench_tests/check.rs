//! True if what must be true of a bench is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stillwell_config::{BenchAsserts, FigureAssert, TextAssert};

use super::BenchTest;

/// Something that was to be true.
#[derive(Debug)]
pub struct Assertion {
    /// In words.
    pub what: String,
    /// The reason why it is not, if it is not.
    pub failure: Option<String>,
}

impl Assertion {
    pub(super) fn failed(what: &str, failure: String) -> Self {
        Self {
            what: what.to_owned(),
            failure: Some(failure),
        }
    }

    pub(super) fn equal(what: &str, expected: i32, actual: i32) -> Self {
        Self {
            what: format!("{what} is {expected}"),
            failure: (expected != actual).then(|| format!("it is {actual}")),
        }
    }

    fn new(what: String, holds: bool, failure: &str) -> Self {
        Self {
            what,
            failure: (!holds).then(|| failure.to_owned()),
        }
    }
}

/// Everything besides the exit code.
pub(super) fn asserts(
    asserts: &BenchAsserts,
    stage: &BenchTest<'_>,
    figures: Option<&Value>,
) -> Vec<Assertion> {
    let texts = asserts.texts.iter();
    let texts = texts.flat_map(|assert| text(assert, stage));
    let numbers = asserts.figures.iter();
    let numbers = numbers.map(|assert| figure(assert, figures));
    texts.chain(numbers).collect()
}

fn text(assert: &TextAssert, stage: &BenchTest<'_>) -> Vec<Assertion> {
    let source = &assert.source;
    let content = match fs::read(place(source, stage)) {
        Ok(content) => content,
        Err(error) => {
            return vec![Assertion::failed(
                &format!("{source} can be read"),
                error.to_string(),
            )];
        }
    };
    let shown = String::from_utf8_lossy(&content);
    let mut all = Vec::new();
    for part in &assert.contains {
        let what = format!("{source} contains `{part}`");
        all.push(Assertion::new(
            what,
            shown.contains(part.as_str()),
            "it does not",
        ));
    }
    for part in &assert.lacks {
        let what = format!("{source} does not contain `{part}`");
        all.push(Assertion::new(
            what,
            !shown.contains(part.as_str()),
            "it does",
        ));
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end()
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    if let Some(file) = &assert.equals_file {
        all.push(compared(source, file, |expected| {
            lines(&content) == lines(expected)
        }));
    }
    if let Some(file) = &assert.equals_file_binary {
        all.push(compared(source, file, |expected| content == expected));
    }
    all
}

fn compared(source: &str, file: &Path, is_same: impl Fn(&[u8]) -> bool) -> Assertion {
    let what = format!("{source} equals {}", file.display());
    let expected: io::Result<Vec<u8>> = fs::read(file);
    match expected {
        Ok(expected) => Assertion::new(what, is_same(&expected), "it differs"),
        Err(error) => Assertion::failed(&what, error.to_string()),
    }
}

/// Outputs and logs are evidence; everything else lies beside the bench.
fn place(source: &str, stage: &BenchTest<'_>) -> PathBuf {
    let evidence = |name: &str| stage.evidence.join(name);
    match source {
        "stdout" => evidence("fg.out.log"),
        "stderr" => evidence("fg.err.log"),
        name => {
            let kept = evidence(name);
            if kept.exists() {
                kept
            } else {
                stage.bench.folder.join(name)
            }
        }
    }
}

fn figure(assert: &FigureAssert, figures: Option<&Value>) -> Assertion {
    let name = &assert.name;
    let bound = |word: &str, bound: Option<f64>| bound.map(|bound| format!("{word} {bound}"));
    let bounds: Vec<String> = match (assert.min, assert.max) {
        (Some(min), Some(max)) if min.total_cmp(&max).is_eq() => vec![format!("{min}")],
        (min, max) => bound("at least", min)
            .into_iter()
            .chain(bound("at most", max))
            .collect(),
    };
    let what = format!("{name} is {}", bounds.join(" and "));
    let Some(value) = figures.and_then(|figures| number(figures, name)) else {
        return Assertion::failed(&what, "the report has no number of this name".to_owned());
    };
    let is_within =
        assert.min.is_none_or(|min| value >= min) && assert.max.is_none_or(|max| value <= max);
    Assertion {
        what,
        failure: (!is_within).then(|| format!("it is {value}")),
    }
}

/// The number at `name`, whose parts are separated by dots. For two equal bounds, the bound itself.
fn number(figures: &Value, name: &str) -> Option<f64> {
    let at = name
        .split('.')
        .try_fold(figures, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            expected => expected.get(part),
        })?;
    match (at.get("least"), at.get("most")) {
        (Some(least), Some(most)) if least == most => least.as_f64(),
        _ => at.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_found_by_their_names() {
        let figures = json!({
            "count": 3,
            "throughput": {"events_per_second": 99.5},
            "ledger": {"generators": [{"lost": {"least": 2, "most": 2}}]},
        });
        let holds = |name: &str, min, max| {
            let assert = FigureAssert {
                name: name.to_owned(),
                min,
                max,
            };
            figure(&assert, Some(&figures)).failure
        };
        assert_eq!(holds("count", Some(3.0), Some(3.0)), None);
        assert_eq!(
            holds("throughput.events_per_second", Some(99.0), None),
            None
        );
        assert_eq!(holds("ledger.generators.0.lost", None, Some(2.0)), None);
        assert_eq!(
            holds("ledger.generators.0.lost", None, Some(1.0)),
            Some("it is 2".to_owned())
        );
        assert_eq!(
            holds("nobody", None, Some(1.0)),
            Some("the report has no number of this name".to_owned())
        );
    }
}
