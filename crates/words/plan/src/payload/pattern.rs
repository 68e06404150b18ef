//! Lists of texts, written as patterns.

/// Most texts that patterns give together; further ones are left out.
pub const PATTERN_TEXTS_MAX: usize = 15_000;

/// Reason why a text is not a pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// It is neither one letter, a hyphen and another, nor two numbers.
    #[error("`{{{{{range}}}}}` is not a range such as `{{{{a-f}}}}` or `{{{{0-99}}}}`")]
    Range {
        /// The text between the braces.
        range: String,
    },
    /// The first end lies above the second.
    #[error("the start of the range `{{{{{range}}}}}` is above its end")]
    Backwards {
        /// The text between the braces.
        range: String,
    },
    /// Nothing is there, or something that would end a field of a message.
    #[error("`{text}` is not allowed in a message")]
    Unusable {
        /// The text.
        text: String,
    },
}

/// A part of a pattern.
enum PatternPart<'p> {
    Text(&'p str),
    Letters(char, char),
    /// First, last, and digits to fill up to.
    Numbers(u32, u32, usize),
}

/// The texts that `patterns` expand to, at most [`PATTERN_TEXTS_MAX`]: the
/// first of each pattern, then the second of each, and so on. `{{a-f}}` expands
/// to each letter, `{{0-99}}` to each number, filled up with zeros.
///
/// # Errors
/// When the text between double braces is not a range, or a text is empty or
/// holds a control character, `|`, `#` or `@`.
pub fn expand_all(patterns: &[String]) -> Result<Vec<String>, PatternError> {
    let mut lists = Vec::new();
    for pattern in patterns {
        let is_bad = |c: char| c.is_control() || matches!(c, '|' | '#' | '@');
        if pattern.is_empty() || pattern.contains(is_bad) {
            return Err(PatternError::Unusable {
                text: pattern.clone(),
            });
        }
        lists.push(expand(&parse(pattern)?));
    }
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|index| lists.iter().filter_map(move |list| list.get(index)));
    let mut seen = std::collections::HashSet::new();
    let distinct = turns.filter(|text| seen.insert(text.as_str()));
    Ok(distinct.take(PATTERN_TEXTS_MAX).cloned().collect())
}

fn parse(pattern: &str) -> Result<Vec<PatternPart<'_>>, PatternError> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once("{{")
        && let Some((range, after)) = after.split_once("}}")
    {
        parts.push(PatternPart::Text(before));
        parts.push(parse_range(range)?);
        rest = after;
    }
    parts.push(PatternPart::Text(rest));
    Ok(parts)
}

fn parse_range(range: &str) -> Result<PatternPart<'_>, PatternError> {
    let text = || range.to_owned();
    let (first, last) = range
        .split_once('-')
        .map(|(first, last)| (first.trim(), last.trim()))
        .ok_or_else(|| PatternError::Range { range: text() })?;
    if let (Ok(low), Ok(high)) = (first.parse::<u32>(), last.parse::<u32>()) {
        return match low <= high {
            true => Ok(PatternPart::Numbers(low, high, first.len().max(last.len()))),
            false => Err(PatternError::Backwards { range: text() }),
        };
    }
    let letter = |text: &str| {
        let mut letters = text.chars();
        let letter = letters.next().filter(char::is_ascii_alphabetic)?;
        letters.next().is_none().then_some(letter)
    };
    match (letter(first), letter(last)) {
        (Some(low), Some(high)) if low <= high => Ok(PatternPart::Letters(low, high)),
        (Some(_), Some(_)) => Err(PatternError::Backwards { range: text() }),
        _ => Err(PatternError::Range { range: text() }),
    }
}

/// All texts of one pattern, the last range running fastest.
fn expand(parts: &[PatternPart<'_>]) -> Vec<String> {
    let mut texts = vec![String::new()];
    for part in parts {
        texts = match part {
            PatternPart::Text(text) => {
                for before in &mut texts {
                    before.push_str(text);
                }
                texts
            }
            PatternPart::Letters(low, high) => {
                let letters = (*low..=*high).map(|letter| letter.to_string());
                product(&texts, letters)
            }
            PatternPart::Numbers(low, high, digits) => {
                let digits = *digits;
                product(
                    &texts,
                    (*low..=*high).map(|number| format!("{number:0digits$}")),
                )
            }
        };
    }
    texts
}

fn product(before: &[String], after: impl Iterator<Item = String> + Clone) -> Vec<String> {
    let pairs = before
        .iter()
        .flat_map(|before| after.clone().map(move |after| format!("{before}{after}")));
    pairs.take(PATTERN_TEXTS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(patterns: &[&str]) -> Result<Vec<String>, PatternError> {
        expand_all(
            &patterns
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn patterns_match_their_texts() {
        assert_eq!(texts(&["a{{b-d}}e"]).unwrap(), ["abe", "ace", "ade"]);
        assert_eq!(
            texts(&["{{8-10}}", "x", "{{x-y}}"]).unwrap(),
            ["08", "x", "09", "y", "10"]
        );
        assert_eq!(
            texts(&["{{0-1}}.{{a-b}}"]).unwrap(),
            ["0.a", "0.b", "1.a", "1.b"]
        );
        assert_eq!(texts(&["{{0-999999}}"]).unwrap().len(), PATTERN_TEXTS_MAX);
        assert_eq!(texts(&["open {{ brace"]).unwrap(), ["open {{ brace"]);
        assert!(texts(&[]).unwrap().is_empty());
    }

    #[test]
    fn text_that_is_no_pattern_is_refused_with_its_reason() {
        for (pattern, reason) in [
            ("{{z-a}}", "is above its end"),
            ("{{9-1}}", "is above its end"),
            ("{{a-5}}", "not a range"),
            ("{{abc}}", "not a range"),
            ("a|b", "not allowed"),
            ("", "not allowed"),
        ] {
            let error = texts(&[pattern]).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
