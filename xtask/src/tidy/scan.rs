//! Splits Rust text into code, comments and literals, and knows which lines are tests.
//!
//! It is a scanner, not a parser: enough to distinguish a word in code from the same word
//! in a comment or a string.

/// Rust text, line by line.
#[derive(Debug)]
pub(super) struct Scanned {
    /// Code with comments and the contents of literals replaced by spaces.
    pub(super) code: Vec<String>,
    /// Comments, and spaces elsewhere.
    pub(super) comments: Vec<String>,
    /// Contents of literals, and spaces elsewhere.
    pub(super) literals: Vec<String>,
    /// True for a line in an item under `#[cfg(test)]`.
    pub(super) in_tests: Vec<bool>,
}

/// Scans the text of one file.
pub(super) fn scan(text: &str) -> Scanned {
    let mut scanner = Scanner {
        chars: text.chars().collect(),
        at: 0,
        code: String::with_capacity(text.len()),
        comments: String::new(),
        literals: String::new(),
    };
    scanner.run();
    let in_tests = test_lines(&scanner.code);
    Scanned {
        code: scanner.code.lines().map(str::to_owned).collect(),
        comments: scanner.comments.lines().map(str::to_owned).collect(),
        literals: scanner.literals.lines().map(str::to_owned).collect(),
        in_tests,
    }
}

/// Returns true for a line with `needle` as a whole identifier.
pub(super) fn contains_word(line: &str, needle: &str) -> bool {
    let starts_word = needle.chars().next().is_some_and(is_word);
    let ends_word = needle.chars().next_back().is_some_and(is_word);
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        let longer = (starts_word && before.is_some_and(is_word))
            || (ends_word && after.is_some_and(is_word));
        !longer
    })
}

/// The identifiers and keywords of a line of code.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|char| !is_word(char))
        .filter(|word| !word.is_empty())
}

pub(super) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    code: String,
    comments: String,
    literals: String,
}

/// The part that a character belongs to.
#[derive(Clone, Copy)]
enum Part {
    Code,
    Comment,
    Literal,
    /// A backslash in a literal, and the character after it.
    Escape,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(char) = self.peek(0) {
            match (char, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if self.starts_raw_string() => self.raw_string(),
                ('\'', _) if self.starts_char() => self.char_literal(),
                _ => self.take(Part::Code),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Moves one character to its part; the other part gets a space, so columns and lines agree.
    fn take(&mut self, part: Part) {
        let Some(char) = self.peek(0) else {
            return;
        };
        self.at += 1;
        let (code, comment, literal) = match part {
            _ if char == '\n' => ('\n', '\n', '\n'),
            Part::Code => (char, ' ', ' '),
            Part::Comment => (' ', char, ' '),
            Part::Literal => (' ', ' ', char),
            Part::Escape => (' ', ' ', ' '),
        };
        self.code.push(code);
        self.comments.push(comment);
        self.literals.push(literal);
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|char| char != '\n') {
            self.take(Part::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(char) = self.peek(0) {
            match (char, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.take(Part::Comment);
                    continue;
                }
            }
            self.take(Part::Comment);
            self.take(Part::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Part::Code);
        while let Some(char) = self.peek(0) {
            match char {
                '"' => return self.take(Part::Code),
                '\\' => {
                    self.take(Part::Escape);
                    self.take(Part::Escape);
                }
                _ => self.take(Part::Literal),
            }
        }
    }

    /// At an `r` that opens `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`, and not at a word's end or at `r#name`.
    fn starts_raw_string(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.chars[at]);
        let opens = match before(1) {
            Some('b' | 'c') => !before(2).is_some_and(is_word),
            Some(char) => !is_word(char),
            None => true,
        };
        let hashes = self.hashes_from(1);
        opens && self.peek(1 + hashes) == Some('"')
    }

    fn raw_string(&mut self) {
        let hashes = self.hashes_from(1);
        for _ in 0..hashes + 2 {
            self.take(Part::Code);
        }
        while let Some(char) = self.peek(0) {
            if char == '"' && self.hashes_from(1) >= hashes {
                for _ in 0..=hashes {
                    self.take(Part::Code);
                }
                return;
            }
            self.take(Part::Literal);
        }
    }

    fn hashes_from(&self, ahead: usize) -> usize {
        let rest = self.chars.get(self.at + ahead..).unwrap_or_default();
        rest.iter().take_while(|char| **char == '#').count()
    }

    /// At a quote that opens a character and not a lifetime.
    fn starts_char(&self) -> bool {
        self.peek(1) == Some('\\') || self.peek(2) == Some('\'')
    }

    fn char_literal(&mut self) {
        self.take(Part::Code);
        while let Some(char) = self.peek(0) {
            match char {
                '\'' => return self.take(Part::Code),
                '\\' => {
                    self.take(Part::Escape);
                    self.take(Part::Escape);
                }
                _ => self.take(Part::Literal),
            }
        }
    }
}

/// For each line of code, whether it lies in an item under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<bool> {
    let mut in_tests = vec![false; code.lines().count()];
    for mark in ["#[cfg(test)]", "#[cfg(any(test", "#[cfg(all(test"] {
        for (start, _) in code.match_indices(mark) {
            let end = start + mark.len() + item_length(&code[start + mark.len()..]);
            let first = code[..start].matches('\n').count();
            let last = code[..end].matches('\n').count();
            let lines = in_tests.iter_mut().take(last + 1).skip(first);
            lines.for_each(|line| *line = true);
        }
    }
    in_tests
}

/// Number of bytes of `code` that the following item takes: to its `;`, or to the brace
/// that closes it.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, char) in code.char_indices() {
        match char {
            ';' if depth == 0 => return at,
            '{' => depth += 1,
            '}' if depth <= 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{contains_word, scan, words};

    #[test]
    fn comments_and_literals_are_not_code() {
        let scanned = scan("let a = \"b \\\" c\"; // d\n/* e /* f */ g */ let h = 'i';\n");
        assert_eq!(
            scanned.code,
            ["let a = \"      \";     ", "                  let h = ' ';"]
        );
        assert_eq!(scanned.comments[0].trim(), "// d");
        assert_eq!(scanned.comments[1].trim(), "/* e /* f */ g */");
    }

    #[test]
    fn raw_strings_end_where_their_hashes_do() {
        let scanned = scan("call(r#\"a \" b\"#, br\"c\", r#name, for\"d\");");
        assert_eq!(
            scanned.code,
            ["call(r#\"     \"#, br\" \", r#name, for\" \");"]
        );
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        let scanned = scan("fn a<'b>(c: &'b str) { d('\\'', '\"', '/') } // \"");
        assert_eq!(
            scanned.code,
            ["fn a<'b>(c: &'b str) { d('  ', ' ', ' ') }     "]
        );
    }

    #[test]
    fn a_string_keeps_its_lines() {
        let scanned = scan("a(\"b\nc\");\nd();\n");
        assert_eq!(scanned.code, ["a(\" ", " \");", "d();"]);
    }

    #[test]
    fn tests_reach_to_the_end_of_their_item() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}\n";
        let expected = [false, true, true, true, true, false, true, true, false];
        assert_eq!(scan(text).in_tests, expected);
    }

    #[test]
    fn a_word_is_whole() {
        assert!(contains_word("x = println!(y)", "println!"));
        assert!(!contains_word("x = eprintln!(y)", "println!"));
        assert!(contains_word("std::thread::spawn(f)", "thread::spawn"));
        assert!(!contains_word("thread::spawner()", "thread::spawn"));
        assert_eq!(
            words("pub struct A<B>;").collect::<Vec<_>>(),
            ["pub", "struct", "A", "B"]
        );
    }
}
