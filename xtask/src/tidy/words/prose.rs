//! Words of comments, texts and documents, line by line.

/// A piece of prose.
#[derive(Debug, Eq, PartialEq)]
enum Token {
    Word(String),
    /// The end of a sentence, or something that is not prose.
    Break,
}

/// Words and breaks, each with its line, which counts from 1.
#[derive(Debug, Default)]
pub(super) struct Prose {
    tokens: Vec<(usize, Token)>,
}

impl Prose {
    /// Reads comments; code between backticks is not prose.
    pub(super) fn of_comments<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        Self::of_markdown(lines.map(|line| line.trim().trim_start_matches(['/', '!', '*'])))
    }

    /// Reads Markdown; code is not prose.
    pub(super) fn of_markdown<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut prose = Self::default();
        let mut is_fenced = false;
        for (index, line) in lines.enumerate() {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            if is_fenced || is_fence || line.trim().is_empty() {
                prose.tokens.push((index + 1, Token::Break));
                continue;
            }
            for (number, piece) in line.split('`').enumerate() {
                if number % 2 == 0 {
                    prose.push_line(index + 1, &without_targets(piece));
                } else {
                    prose.tokens.push((index + 1, Token::Break));
                }
            }
        }
        prose
    }

    /// Reads comments that have a line of their own and begin with `#`, and Python's docstrings.
    pub(super) fn of_hash_comments<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        Self::of_markdown(lines.map(|line| {
            let line = line.trim();
            let docstring = line.strip_prefix("\"\"\"");
            line.strip_prefix('#').or(docstring).unwrap_or_default()
        }))
    }

    /// Reads the contents of literals; a name to be filled in is not prose.
    pub(super) fn of_literals<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut prose = Self::default();
        for (index, line) in lines.enumerate() {
            prose.push_line(index + 1, &without_placeholders(line));
        }
        prose
    }

    fn push_line(&mut self, line: usize, text: &str) {
        let mut word = String::new();
        for char in text.chars().chain([' ']) {
            if char.is_alphanumeric() || char == '\'' || char == '’' {
                word.extend(char.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                let word = std::mem::take(&mut word);
                let whole = word.trim_end_matches("'s").trim_end_matches("’s");
                self.tokens.push((line, Token::Word(whole.to_owned())));
            }
            if !char.is_whitespace() && !",-*_".contains(char) {
                self.tokens.push((line, Token::Break));
            }
        }
    }

    /// The lines in which `phrase` begins.
    pub(super) fn lines_with(&self, phrase: &str) -> Vec<usize> {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let windows = self.tokens.windows(phrase.len());
        let is_phrase = |window: &&[(usize, Token)]| {
            let mut pairs = window.iter().zip(&phrase);
            pairs.all(|((_, token), word)| matches!(token, Token::Word(text) if text == word))
        };
        let lines = windows.filter(is_phrase).map(|window| window[0].0);
        lines.collect()
    }
}

/// `text` with the targets of links, addresses and paths as breaks.
fn without_targets(text: &str) -> String {
    let mut kept = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let is_address = word.contains("://") || word.contains(".md");
        match word.find("](") {
            Some(at) => {
                kept.push_str(&word[..at]);
                kept.push_str(" . ");
            }
            None if is_address => kept.push_str(" . "),
            None => kept.push_str(word),
        }
    }
    kept
}

/// `text` with each `{name}` or `{name:format}` as a break.
fn without_placeholders(text: &str) -> String {
    let mut kept = String::new();
    let mut left = text;
    while let Some((before, after)) = left.split_once('{') {
        kept.push_str(before);
        let is_name = |char: char| char.is_alphanumeric() || "_:.#?<>^$*+".contains(char);
        let end = after.find(|char| !is_name(char)).unwrap_or(after.len());
        left = match after[end..].strip_prefix('}') {
            Some(rest) => {
                kept.push('.');
                rest
            }
            None => after,
        };
    }
    kept + left
}
