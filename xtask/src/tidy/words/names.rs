//! The names that a line of code has and defines.

use super::super::scan::is_word;

/// The lower-case words of an identifier in `snake_case`, `CamelCase` or `UPPER_CASE`.
pub(super) fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for char in identifier.chars() {
        let begins = char.is_uppercase() && !before.is_uppercase();
        if begins || !char.is_alphabetic() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| char.is_alphabetic()) {
            part.extend(char.to_lowercase());
        }
        before = char;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The name of a type that a line defines, and true where it is public to any degree.
/// An associated type has no name of its own.
pub(super) fn defined_type(code: &str) -> Option<(&str, bool)> {
    let tokens = tokens(code);
    let mut tokens = tokens.as_slice();
    let mut is_public = false;
    if let ["pub", rest @ ..] = tokens {
        is_public = true;
        tokens = rest;
        if let ["(", ..] = tokens {
            let end = tokens.iter().position(|token| *token == ")")?;
            tokens = tokens.get(end + 1..)?;
        }
    }
    if let ["unsafe" | "auto", rest @ ..] = tokens {
        tokens = rest;
    }
    let is_indented = code.starts_with(' ');
    match tokens {
        ["struct" | "enum" | "trait" | "union", name, ..] => Some((name, is_public)),
        ["type", name, ..] if is_public || !is_indented => Some((name, is_public)),
        _ => None,
    }
}

/// Keywords before a name that they define.
const KEYWORDS: [&str; 6] = ["const", "fn", "mod", "mut", "ref", "static"];

/// The names that a line binds: variables, parameters, fields, functions and modules.
pub(super) fn bindings(code: &str) -> Vec<&str> {
    let tokens = tokens(code);
    let mut is_bound = vec![false; tokens.len()];
    for (index, token) in tokens.iter().enumerate() {
        let end = match *token {
            "let" => end_of(&tokens, index, &["=", ";"]),
            "for" => end_of(&tokens, index, &["in"]),
            "|" if opens_closure(&tokens, index) => end_of(&tokens, index, &["|"]),
            keyword if KEYWORDS.contains(&keyword) => index + 2,
            ":" if !is_std_signature(&tokens, index) => {
                if let Some(bound) = index.checked_sub(1).and_then(|at| is_bound.get_mut(at)) {
                    *bound = true;
                }
                index
            }
            _ => index,
        };
        if let Some(bound) = is_bound.get_mut(index..end.min(tokens.len())) {
            bound.fill(true);
        }
    }
    if let Some(arrow) = tokens.iter().position(|token| *token == "=>") {
        let end = tokens.iter().position(|token| *token == "if");
        // `other => …` is the usual name for what no arm matched.
        let is_catch_all = tokens.first() == Some(&"other");
        is_bound[..end.unwrap_or(arrow).min(arrow)].fill(!is_catch_all);
    }
    let bound = tokens.iter().zip(is_bound).enumerate();
    let bound = bound.filter(|(index, (token, is_bound))| {
        let follows = tokens.get(index + 1);
        let is_path =
            follows == Some(&"::") || follows == Some(&"(") && !is_function(&tokens, *index);
        *is_bound && token.starts_with(is_word) && !is_keyword(token) && !is_path
    });
    bound.map(|(_, (token, _))| *token).collect()
}

/// The first place after `from` that has one of `ends`; `from` where no place has.
fn end_of(tokens: &[&str], from: usize, ends: &[&str]) -> usize {
    let after = tokens.iter().skip(from + 1);
    let distance = after.take_while(|token| !ends.contains(token)).count();
    let end = from + 1 + distance;
    if end < tokens.len() { end } else { from }
}

fn opens_closure(tokens: &[&str], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|at| tokens.get(at));
    before.is_none_or(|token| ["(", ",", "=", "move", "{", "=>", ":", "return"].contains(token))
}

/// Returns true for `other: &Self`, which traits of the standard library prescribe.
fn is_std_signature(tokens: &[&str], colon: usize) -> bool {
    tokens.get(colon + 1..colon + 3) == Some(&["&", "Self"])
}

fn is_keyword(token: &str) -> bool {
    KEYWORDS.contains(&token) || ["for", "let"].contains(&token)
}

fn is_function(tokens: &[&str], index: usize) -> bool {
    index.checked_sub(1).and_then(|at| tokens.get(at)) == Some(&"fn")
}

/// Words and signs of a line of code.
fn tokens(code: &str) -> Vec<&str> {
    const PAIRS: [&str; 5] = ["::", "||", "=>", "->", "=="];
    let mut tokens = Vec::new();
    let mut left = code.trim_start();
    while let Some(first) = left.chars().next() {
        let length = if is_word(first) {
            left.find(|char| !is_word(char)).unwrap_or(left.len())
        } else if PAIRS.iter().any(|pair| left.starts_with(pair)) {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = left.split_at(length);
        tokens.push(token);
        left = after.trim_start();
    }
    tokens
}
