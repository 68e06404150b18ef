//! Secrets in free text.

use std::borrow::Cow;

use super::MASK;
use super::name::{self, Context};

/// Mark of a private key in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";
/// Beginnings of its first and last line.
const FIRST_LINE: &str = "-----BEGIN ";
const LAST_LINE: &str = "-----END ";
/// Words before credentials in the value of `Authorization`.
const SCHEMES: [&str; 4] = ["Bearer", "bearer", "Basic", "basic"];

/// Returns `text` with each secret in it replaced.
pub(super) fn masked(text: &str) -> String {
    let text = without_keys(text);
    let mut output = String::with_capacity(text.len());
    let mut left = text.as_ref();
    while let Some(place) = left.find(['=', ':']) {
        let (before, from) = left.split_at(place);
        output.push_str(before);
        left = if let Some(address) = from.strip_prefix("://") {
            output.push_str("://");
            without_user(address, &mut output)
        } else {
            without_value(from, &mut output)
        };
    }
    output.push_str(left);
    without_credentials(output)
}

/// Returns `text` with [`MASK`] in place of each private key: its lines from the first to the last, or to the end of the text if it has no
/// last one. An excerpt may begin within a key.
fn without_keys(text: &str) -> Cow<'_, str> {
    if !text.contains(PRIVATE_KEY) {
        return Cow::Borrowed(text);
    }
    let mut lines: Vec<&str> = Vec::new();
    let mut is_within = false;
    for line in text.split_inclusive('\n') {
        let has_mark = line.contains(PRIVATE_KEY);
        // The last one on a line decides: a key may begin where another one ends.
        let begins = has_mark
            && (line.rfind(FIRST_LINE) > line.rfind(LAST_LINE) || !line.contains(LAST_LINE));
        if is_within {
            is_within = !has_mark || begins;
            continue;
        }
        if !has_mark {
            lines.push(line);
            continue;
        }
        if line.contains(LAST_LINE) && !line.contains(FIRST_LINE) {
            // The last line of a key has any length.
            lines.pop();
            while lines.last().is_some_and(|line| is_of_key(line)) {
                lines.pop();
            }
        }
        lines.push(MASK);
        lines.extend(line.ends_with('\n').then_some("\n"));
        is_within = begins;
    }
    if let [.., MASK, "\n"] = lines[..] {
        lines.pop();
    }
    Cow::Owned(lines.concat())
}

/// Returns true if `line` ends with a long word in Base64.
fn is_of_key(line: &str) -> bool {
    let word = line.split_whitespace().next_back().unwrap_or_default();
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    word.len() >= 16 && word.chars().all(is_base64)
}

/// Returns `text` without the words that follow `Bearer` and `Basic`. A word of small letters is none of them.
fn without_credentials(text: String) -> String {
    if !SCHEMES.iter().any(|scheme| text.contains(scheme)) {
        return text;
    }
    let is_credential = |word: &str| word.contains(|c: char| !c.is_ascii_lowercase());
    let mut output = String::with_capacity(text.len());
    let mut is_next = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let ends = |c: char| "\"'`".contains(c);
        let bare = &word[..word.find(ends).unwrap_or(word.len())];
        if is_next && bare.len() >= 4 && is_credential(bare) {
            output.push_str(MASK);
            output.push_str(&part[bare.len()..]);
        } else {
            output.push_str(part);
        }
        is_next = SCHEMES.iter().any(|scheme| word.ends_with(scheme));
    }
    output
}

/// Continues after `://`: writes [`MASK`] for the user and password, if there are any.
fn without_user<'a>(address: &'a str, output: &mut String) -> &'a str {
    let ends = |c: char| c.is_whitespace() || "/?#\"'`<>".contains(c);
    let authority = &address[..address.find(ends).unwrap_or(address.len())];
    let Some(place) = authority.rfind('@') else {
        return address;
    };
    if place > 0 {
        output.push_str(MASK);
    }
    &address[place..]
}

/// Continues at a `=` or `:` of `from`: writes it, and [`MASK`] for the value of a secret.
fn without_value<'a>(from: &'a str, output: &mut String) -> &'a str {
    let (sign, after) = from.split_at(1);
    let (name, quote) = name_before(output);
    let before = output.len() - name.len() - quote.map_or(0, char::len_utf8);
    let context = match (sign, quote) {
        (_, Some(_)) => Context::Chosen,
        // A parameter of a URL.
        ("=", None) if output[..before].ends_with(['?', '&']) => Context::Chosen,
        ("=", None) => Context::Assignment,
        _ => Context::Sentence,
    };
    // A message about a file: `/etc/passwd: …`; an address: `user-auth:8080/login`.
    let is_place = context == Context::Sentence
        && (output[..before].ends_with('/') || is_host(name) && begins_with_port(after));
    let is_secret = !is_place && name::is_secret(name, context);
    output.push_str(sign);
    if !is_secret {
        return after;
    }
    let value = match sign {
        "=" => after,
        _ => after.trim_start_matches([' ', '\t']),
    };
    output.push_str(&after[..after.len() - value.len()]);
    let opening = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = opening.map_or(value, |_| &value[1..]);
    output.extend(opening);
    let length = length_of_value(inner, opening, sign == ":", quote.is_some());
    if length > 0 {
        output.push_str(MASK);
    }
    &inner[length..]
}

/// Returns true if `name` is written like a host of several words: `user-auth`, but not `DB_PASSWORD`, `password`, `--auth` or
/// `x-auth-token`.
fn is_host(name: &str) -> bool {
    let last = name.rsplit(['-', '.']).next().unwrap_or(name);
    name.contains(['-', '.'])
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.contains(|c: char| c == '_' || c.is_ascii_uppercase())
        // Names of hosts end with `auth` too.
        && (last == "auth" || !name::is_secret(last, Context::Chosen))
}

/// Returns true if `text` begins with the port of an address, which ends or has a path, query, fragment or word behind it.
fn begins_with_port(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let rest = text.trim_start_matches(is_digit);
    (1..=5).contains(&(text.len() - rest.len()))
        && (rest.is_empty() || rest.starts_with(['/', '?', '#', ' ']))
}

/// Returns the name at the end of `text`, and the quote behind it.
fn name_before(text: &str) -> (&str, Option<char>) {
    let quote = text.chars().next_back().filter(|c| matches!(c, '"' | '\''));
    let text = quote.map_or(text, |_| &text[..text.len() - 1]);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_of_name(*c))
        .last();
    (start.map_or("", |(place, _)| &text[place..]), quote)
}

/// Length of the value that `text` begins with: to the quote that closes it, or to the end of the line (of a
/// header) or word.
fn length_of_value(text: &str, opening: Option<char>, is_header: bool, is_json: bool) -> usize {
    if let Some(quote) = opening {
        let mut is_escaped = false;
        let end = text.char_indices().find(|(_, c)| {
            let closes = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            closes
        });
        return end.map_or(text.len(), |(place, _)| place);
    }
    let ends = |c: char| match (is_header, is_json) {
        (true, false) => matches!(c, '\n' | '\r' | '"' | '\'' | '`'),
        (true, true) => c.is_whitespace() || ",}]".contains(c),
        (false, _) => c.is_whitespace() || "&#\"'`".contains(c),
    };
    text.find(ends).unwrap_or(text.len())
}
