//! One escaping function for each form: what others wrote becomes neither a command nor a structure.

use std::iter;

/// Returns true for a character that would steer a terminal, end a line, or show other characters in another order
/// than they have.
#[must_use]
pub fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Marks, embeddings, overrides and isolates of text that runs from right to left.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Ends of lines and paragraphs.
            | '\u{2028}' | '\u{2029}'
        )
}

/// Returns `text` without what would steer a terminal or end a line.
#[must_use]
pub fn terminal(text: &str) -> String {
    let clean = |c: char| if is_steering(c) { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// Returns `text` in its lines, each without what would steer a terminal.
#[must_use]
pub fn lines(text: &str) -> String {
    let clean = |c: char| if is_steering(c) && c != '\n' { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// Returns `json` with every steering character of its strings as an escape: the same value, safe to print.
#[must_use]
pub fn json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if is_steering(character) && character != '\n' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Returns `text` as text of Markdown: it ends no cell or line and starts no tag, link, mention or block.
///
/// `next` is the character behind the text, and `is_start` whether the text begins a line.
#[must_use]
pub fn markdown(text: &str, next: Option<char>, is_start: bool) -> String {
    let text = terminal(text);
    let text = if is_start { text.trim_start() } else { &text };
    let mut escaped = String::with_capacity(text.len());
    let follows = text.chars().skip(1).map(Some).chain(iter::once(next));
    let marker = if is_start { list_marker(text) } else { None };
    for (place, (character, next)) in text.chars().zip(follows).enumerate() {
        match character {
            '<' => escaped.push_str("&lt;"),
            // A quotation.
            '>' if is_start && place == 0 => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention would call people to the page.
            '@' => escaped.push_str("&#64;"),
            '|' | '\\' | '`' | '*' | '_' | '~' => escaped.extend(['\\', character]),
            // Brackets are only links with one of these behind them.
            ']' if matches!(next, Some('(' | '[' | ':')) => escaped.push_str("\\]"),
            // A box to tick.
            '[' if is_start && place == 0 => escaped.push_str("\\["),
            marked if marker == Some(place) => escaped.extend(['\\', marked]),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the place of the character that makes a heading, a list or a rule of the line, if one does.
fn list_marker(text: &str) -> Option<usize> {
    let mut characters = text.chars();
    match characters.next()? {
        '#' | '=' => Some(0),
        '-' | '+' => (!characters.next().is_some_and(|c| c.is_ascii_digit())).then_some(0),
        digit if digit.is_ascii_digit() => {
            let place = text.find(|c: char| !c.is_ascii_digit())?;
            let mut rest = text[place..].chars();
            let is_delimiter = matches!(rest.next(), Some('.' | ')'));
            let ends = rest.next().is_none_or(char::is_whitespace);
            (is_delimiter && ends).then_some(place)
        }
        _ => None,
    }
}

/// Returns `text` as code of Markdown, quoted with more backticks than it has itself.
///
/// In the cell of a table, where quotes cannot hold a backslash and `|` together, a tag
/// does the same.
#[must_use]
pub fn markdown_code(text: &str, is_cell: bool) -> String {
    let text = terminal(text);
    if is_cell && text.contains('|') {
        return format!("<code>{}</code>", markdown(&text, None, false));
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let quote = "`".repeat(longest + 1);
    let pad = if longest > 0 || text.trim().is_empty() {
        " "
    } else {
        ""
    };
    format!("{quote}{pad}{text}{pad}{quote}")
}

/// Returns `text` as text or attribute of HTML.
#[must_use]
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in terminal(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // A mention would call people to the page.
            '@' => escaped.push_str("&#64;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the target of a link within angle brackets.
#[must_use]
pub fn target(link: &str) -> String {
    let is_kept = |c: &char| !matches!(c, '<' | '>') && !is_steering(*c);
    link.chars().filter(is_kept).collect()
}
