//! Words of a program.

use stillwell_text::Span;

use super::Mistake;

/// Maximum number of words of a program.
const TOKENS_MAX: usize = 100_000;

/// A word and its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Token {
    /// The word.
    pub(super) word: Word,
    /// Its place.
    pub(super) span: Span,
}

/// Kinds of words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Word {
    /// A name or keyword; names in modules keep their `::`.
    Name(String),
    /// A quoted text, without its quotes.
    Text(String),
    /// A number as it is typed, without `_`.
    Number(String),
    /// One other character.
    Sign(char),
}

impl Word {
    /// Returns the word for a message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(text) | Self::Number(text) => format!("`{text}`"),
            Self::Text(text) => format!("the string \"{text}\""),
            Self::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// Splits a program into words, without comments.
pub(super) fn split(text: &str) -> Result<Vec<Token>, Mistake> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, next)| next);
            continue;
        }
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let start = text.len() - rest.len();
        let (word, length) = word(first, rest, start)?;
        let end = start + length;
        tokens.push(Token {
            word,
            span: Span { start, end },
        });
        if tokens.len() > TOKENS_MAX {
            let message = format!("a program has at most {TOKENS_MAX} words");
            return Err(Mistake::syntax(Span { start, end }, message));
        }
        rest = &rest[length..];
    }
}

/// The word at the beginning of `rest`, and its length in bytes.
fn word(first: char, rest: &str, start: usize) -> Result<(Word, usize), Mistake> {
    let length_of = |is_part: &dyn Fn(char) -> bool| {
        rest.find(|letter: char| !is_part(letter))
            .unwrap_or(rest.len())
    };
    if first == '"' {
        return quoted(rest, start);
    }
    if first.is_ascii_digit() {
        let length = length_of(&|letter| letter.is_ascii_alphanumeric() || "_.".contains(letter));
        return Ok((Word::Number(rest[..length].replace('_', "")), length));
    }
    if first.is_alphabetic() || first == '_' {
        let length = length_of(&|letter| letter.is_alphanumeric() || "_:".contains(letter));
        let name = rest[..length].trim_end_matches(':');
        return Ok((Word::Name(name.to_owned()), name.len()));
    }
    Ok((Word::Sign(first), first.len_utf8()))
}

fn quoted(rest: &str, start: usize) -> Result<(Word, usize), Mistake> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        let span = Span {
            start: start + at,
            end: start + at + letter.len_utf8(),
        };
        match letter {
            '"' if text.is_empty() && rest[at + 1..].starts_with('"') => {
                return Err(Mistake::unsupported(span, "a string of several lines"));
            }
            '"' => return Ok((Word::Text(text), at + 1)),
            '\n' => {
                return Err(Mistake::syntax(
                    span,
                    "a string without its closing quote".to_owned(),
                ));
            }
            '#' if rest[at + 1..].starts_with('{') => {
                return Err(Mistake::unsupported(span, "interpolation in a string"));
            }
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, kept @ ('"' | '\\' | '/' | '#'))) => text.push(kept),
                _ => {
                    return Err(Mistake::syntax(
                        span,
                        "an unknown escape in a string".to_owned(),
                    ));
                }
            },
            other => text.push(other),
        }
    }
    let span = Span {
        start,
        end: start + rest.len(),
    };
    Err(Mistake::syntax(
        span,
        "a string without its closing quote".to_owned(),
    ))
}
