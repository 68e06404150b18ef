//! The tokens of a text: names, marks, texts and words.

use super::TextError;

/// The remainder of a text.
pub(super) struct Tokens<'t> {
    text: &'t str,
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, rest: text }
    }

    pub(super) fn wrong(&self, problem: impl Into<String>) -> TextError {
        let read = &self.text[..self.text.len() - self.rest.len()];
        TextError {
            line: read.matches('\n').count() + 1,
            problem: problem.into(),
        }
    }

    /// Passes over white space and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
            match self.rest.strip_prefix('#') {
                Some(comment) => {
                    self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
                }
                None => return,
            }
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    /// Takes this mark, if it is next.
    pub(super) fn takes(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The brace that opens a message, if it is next, as the one that closes it.
    pub(super) fn opens(&mut self) -> Option<char> {
        let braces = [('{', '}'), ('<', '>')];
        let mut braces = braces.into_iter();
        braces
            .find(|(open, _)| self.takes(*open))
            .map(|pair| pair.1)
    }

    /// A field's name, or the address of a type between brackets.
    pub(super) fn name(&mut self) -> Result<&'t str, TextError> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match self.rest.starts_with('[') {
            true => self.rest.find(']').map_or(0, |end| end + 1),
            false => self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()),
        };
        if end == 0 {
            return Err(self.wrong("a field's name is missing"));
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(name)
    }

    /// A number or a name.
    pub(super) fn word(&mut self) -> Result<&'t str, TextError> {
        self.skip();
        let is_end = |c: char| c.is_whitespace() || ",;{}<>[]#\"'".contains(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.wrong("a value is missing"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    /// The bytes of a text in quotes; several beside each other are one. `None`
    /// where there is none.
    pub(super) fn quoted(&mut self) -> Result<Option<Vec<u8>>, TextError> {
        self.skip();
        if !self.rest.starts_with(['"', '\'']) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        while let Some(mark) = self.rest.chars().next().filter(|c| "\"'".contains(*c)) {
            self.rest = &self.rest[1..];
            self.piece(mark, &mut bytes)?;
            self.skip();
        }
        Ok(Some(bytes))
    }

    fn piece(&mut self, mark: char, bytes: &mut Vec<u8>) -> Result<(), TextError> {
        loop {
            let Some(c) = self.rest.chars().next().filter(|c| *c != '\n') else {
                return Err(self.wrong("a string is not closed"));
            };
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                c if c == mark => return Ok(()),
                '\\' => self.escaped(bytes)?,
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escaped(&mut self, bytes: &mut Vec<u8>) -> Result<(), TextError> {
        let Some(c) = self.rest.chars().next() else {
            return Err(self.wrong("a string is not closed"));
        };
        let (radix, longest, skipped) = match c {
            '0'..='7' => (8, 3, 0),
            'x' | 'X' => (16, 2, 1),
            'u' => (16, 4, 1),
            'U' => (16, 8, 1),
            _ => {
                let plain = [
                    ('n', b'\n'),
                    ('r', b'\r'),
                    ('t', b'\t'),
                    ('a', 7),
                    ('b', 8),
                    ('f', 12),
                    ('v', 11),
                    ('\\', b'\\'),
                    ('"', b'"'),
                    ('\'', b'\''),
                    ('?', b'?'),
                ];
                let escape = plain.iter().find(|(name, _)| *name == c);
                let escape = escape
                    .ok_or_else(|| self.wrong(format!("unknown escape `\\{c}` in a string")))?;
                bytes.push(escape.1);
                self.rest = &self.rest[1..];
                return Ok(());
            }
        };
        let digits = &self.rest[skipped..];
        let length = digits
            .chars()
            .take(longest)
            .take_while(|c| c.is_digit(radix));
        let length = length.count();
        let number = u32::from_str_radix(&digits[..length], radix);
        let number = number.map_err(|_| self.wrong("an escape in a string lacks its digits"))?;
        self.rest = &digits[length..];
        if c.eq_ignore_ascii_case(&'u') {
            let character = char::from_u32(number);
            let character =
                character.ok_or_else(|| self.wrong("an escape in a string is not a character"))?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        let byte = u8::try_from(number);
        bytes.push(byte.map_err(|_| self.wrong("an escape in a string is not a byte"))?);
        Ok(())
    }
}
