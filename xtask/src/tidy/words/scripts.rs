//! The names that a line of a script defines, in bash and in Python.

use super::super::scan::is_word;

/// Words of bash that can be before an assignment on its line.
const SHELL_WORDS: [&str; 8] = [
    "declare", "do", "else", "export", "local", "readonly", "then", "{",
];

/// The lines of a script without Python's texts of several lines, each with its number from 1.
pub(super) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_in_text = false;
    let is_code = move |(_, line): &(usize, &str)| {
        let was_in_text = is_in_text;
        is_in_text ^= line.matches("\"\"\"").count() % 2 == 1;
        !was_in_text && !is_in_text
    };
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| (index + 1, line)).filter(is_code)
}

/// The names that a line binds: variables, parameters and functions.
pub(super) fn script_bindings(line: &str) -> Vec<String> {
    let code = without_literals(line);
    let mut names = shell_names(&code);
    names.extend(python_names(&code));
    for part in parts_between(&code, "for ", " in ") {
        names.extend(targets(part));
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// A line without the texts in quotes and without its comment.
fn without_literals(line: &str) -> String {
    let mut code = String::new();
    let mut quote = None;
    let mut before = ' ';
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match quote {
            Some(_) if char == '\\' => {
                chars.next();
            }
            Some(open) if char == open => quote = None,
            Some(_) => {}
            None if char == '#' && before.is_whitespace() => break,
            None if char == '"' || char == '\'' => quote = Some(char),
            None => code.push(char),
        }
        before = char;
    }
    code
}

/// The names of assignments, `read`, `local` and functions in bash.
fn shell_names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut tokens = code.split_whitespace().peekable();
    let declares = tokens.peek() == Some(&"local");
    for token in tokens {
        match token.split_once('=') {
            _ if SHELL_WORDS.contains(&token) => {}
            Some((name, _)) if is_name(name) => names.push(name),
            None if declares && is_name(token) => names.push(token),
            _ => break,
        }
    }
    if let Some((_, after)) = code.split_once("read -r ") {
        let end = after.find([';', '<', '|']).unwrap_or(after.len());
        let words = after[..end].split_whitespace();
        names.extend(words.filter(|word| is_name(word)));
    }
    let trimmed = code.trim_start();
    let name = leading_name(trimmed);
    if trimmed[name.len()..].starts_with("()") {
        names.push(name);
    }
    names
}

/// The names of assignments, functions, parameters, and of `as` in Python.
fn python_names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    if let Some((left, _)) = code.split_once(" = ") {
        names.extend(targets(left));
    }
    for (at, _) in code.match_indices(" := ") {
        let left = &code[..at];
        names.push(&left[left.trim_end_matches(is_word).len()..]);
    }
    let trimmed = code.trim_start();
    for keyword in ["class ", "def "] {
        if let Some(after) = trimmed.strip_prefix(keyword) {
            names.push(leading_name(after));
        }
    }
    let parameters = parts_between(trimmed, "def ", "):").into_iter();
    let parameters = parameters.filter_map(|part| part.split_once('('));
    let mut lists: Vec<&str> = parameters.map(|(_, parameters)| parameters).collect();
    lists.extend(parts_between(code, "lambda ", ":"));
    for parameter in lists.into_iter().flat_map(|list| list.split(',')) {
        names.push(leading_name(parameter.trim_start_matches(['*', ' '])));
    }
    for (at, keyword) in code.match_indices(" as ") {
        names.push(leading_name(&code[at + keyword.len()..]));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The names in `a, (self.b, *c)`, without the objects of fields; none in other expressions.
fn targets(code: &str) -> Vec<&str> {
    let is_target = |char: char| is_word(char) || ",.()* ".contains(char);
    let words: Vec<&str> = code
        .split(',')
        .map(|word| word.trim_matches(['(', ')', '*', ' ']))
        .collect();
    let is_spaced = words.iter().any(|word| word.contains(' '));
    if is_spaced || !code.chars().all(is_target) {
        return Vec::new();
    }
    let last = words.into_iter().filter_map(|word| word.rsplit('.').next());
    last.filter(|name| is_name(name)).collect()
}

/// The parts of a line between each `begin`, where a word begins, and the next `end`.
fn parts_between<'a>(code: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let starts_word = |at: usize| !code[..at].ends_with(is_word);
    let begins = code.match_indices(begin).filter(|(at, _)| starts_word(*at));
    let parts = begins.filter_map(|(at, _)| code[at + begin.len()..].split_once(end));
    parts.map(|(part, _)| part).collect()
}

fn leading_name(code: &str) -> &str {
    let end = code.find(|char| !is_word(char)).unwrap_or(code.len());
    &code[..end]
}

fn is_name(text: &str) -> bool {
    text.chars().all(is_word) && text.starts_with(|char: char| char.is_alphabetic() || char == '_')
}
