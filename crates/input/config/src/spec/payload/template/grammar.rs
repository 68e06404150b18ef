//! The language of templates: texts in which `{name argument …}` is a field.

use stillwell_plan::payload::TemplatePart;

use super::field;

/// Reads texts; knows which names they may use.
#[derive(Debug)]
pub(super) struct Grammar<'n> {
    pub(super) names: &'n [&'n str],
    pub(super) place: Names,
    /// Definitions that keep one value for an event, each a variable.
    pub(super) held: Vec<usize>,
}

/// Place of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Names {
    /// In a line of an event.
    Line,
    /// In a definition, which does not know of what event it is a part.
    Definition,
}

/// Mistake in a text.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Mistake {
    /// Its start, in bytes of the text.
    pub(super) start: usize,
    /// Its end.
    pub(super) end: usize,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// A word of a field, and its place.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Word {
    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake {
            start: self.start,
            end: self.end,
            message: message.into(),
            help: None,
        }
    }
}

impl<'n> Grammar<'n> {
    pub(super) const fn new(names: &'n [&'n str], place: Names) -> Self {
        Self {
            names,
            place,
            held: Vec::new(),
        }
    }

    /// The definitions that keep one value for an event, in the order of their
    /// variables.
    pub(super) fn held(self) -> Vec<usize> {
        self.held
    }

    /// Reads `text`. A brace begins a field where a small letter follows it;
    /// two opening ones are always one as it is.
    pub(super) fn parse(&mut self, text: &str) -> Result<TemplatePart, Mistake> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut at = 0;
        while let Some(offset) = text[at..].find('{') {
            let brace = at + offset;
            plain.push_str(&text[at..brace]);
            let after = &text[brace + 1..];
            if after.starts_with('{') {
                plain.push('{');
                at = brace + 2;
            } else if after.starts_with(|c: char| c.is_ascii_lowercase()) {
                let (words, end) = words(text, brace)?;
                if !plain.is_empty() {
                    parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
                }
                parts.push(field::read(self, &words)?);
                at = end;
            } else {
                plain.push('{');
                at = brace + 1;
            }
        }
        plain.push_str(&text[at..]);
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(plain));
        }
        Ok(TemplatePart::Sequence(parts))
    }
}

/// Returns the words of the field with its brace at `brace`, and the text after its end. There is
/// at least one word.
fn words(text: &str, brace: usize) -> Result<(Vec<Word>, usize), Mistake> {
    let mut words = Vec::new();
    let mut at = brace + 1;
    loop {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            return Err(open(text, brace, "this field is not closed"));
        };
        match first {
            '}' => return Ok((words, at + 1)),
            blank if blank.is_whitespace() => at += blank.len_utf8(),
            _ => {
                let word = word(text, at, brace)?;
                at = word.end;
                words.push(word);
            }
        }
    }
}

/// Returns the word at `start`: up to a blank or the brace; a quoted word is whole.
fn word(text: &str, start: usize, brace: usize) -> Result<Word, Mistake> {
    let mut word = String::new();
    let mut quote = None;
    for (offset, character) in text[start..].char_indices() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (Some(_), _) => word.push(character),
            (None, '"' | '\'') => quote = Some(character),
            (None, '}') => return Ok(ended(word, start, start + offset)),
            (None, blank) if blank.is_whitespace() => {
                return Ok(ended(word, start, start + offset));
            }
            (None, _) => word.push(character),
        }
    }
    let message = if quote.is_some() {
        "this field has a quote that is not closed"
    } else {
        "this field is not closed"
    };
    Err(open(text, brace, message))
}

const fn ended(text: String, start: usize, end: usize) -> Word {
    Word { text, start, end }
}

fn open(text: &str, brace: usize, message: &str) -> Mistake {
    Mistake {
        start: brace,
        end: text.len(),
        message: message.to_owned(),
        help: Some("write `{{` for a literal brace".to_owned()),
    }
}
