//! The words of a formula.

use super::{ExpressionError, Operator};

/// A word and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) word: Word,
    /// In bytes.
    pub(super) at: usize,
    /// In bytes; 0 for the end.
    pub(super) length: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Number(f64),
    Name(String),
    Text(String),
    Operator(Operator),
    Not,
    Open,
    Close,
    Comma,
    Question,
    Colon,
    End,
}

/// Longer ones first, so `<=` is not taken for `<`.
const SIGNS: &[(&str, Word)] = &[
    ("**", Word::Operator(Operator::Power)),
    ("&&", Word::Operator(Operator::And)),
    ("||", Word::Operator(Operator::Or)),
    ("==", Word::Operator(Operator::Equal)),
    ("!=", Word::Operator(Operator::Unequal)),
    ("<=", Word::Operator(Operator::LessOrEqual)),
    (">=", Word::Operator(Operator::MoreOrEqual)),
    ("<", Word::Operator(Operator::Less)),
    (">", Word::Operator(Operator::More)),
    ("+", Word::Operator(Operator::Plus)),
    ("-", Word::Operator(Operator::Minus)),
    ("*", Word::Operator(Operator::Times)),
    ("/", Word::Operator(Operator::Divided)),
    ("%", Word::Operator(Operator::Remainder)),
    ("!", Word::Not),
    ("(", Word::Open),
    (")", Word::Close),
    (",", Word::Comma),
    ("?", Word::Question),
    (":", Word::Colon),
];

/// The words of `text`, with the end as the last one.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let (word, length) = token(text, at, next)?;
        tokens.push(Token { word, at, length });
        at += length;
    }
    tokens.push(Token {
        word: Word::End,
        at,
        length: 0,
    });
    Ok(tokens)
}

/// The word at `at`, which begins with `next`, and its length.
fn token(text: &str, at: usize, next: char) -> Result<(Word, usize), ExpressionError> {
    let rest = &text[at..];
    let wrong = |length: usize, message: String| ExpressionError {
        message,
        text: text.to_owned(),
        at,
        length,
    };
    let while_in = |is_in: fn(char) -> bool| rest.find(|c| !is_in(c)).unwrap_or(rest.len());
    if next.is_ascii_digit() || next == '.' {
        let length = number_length(rest);
        let digits = &rest[..length];
        let number = digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        let number = number.ok_or_else(|| wrong(length, format!("`{digits}` is not a number")))?;
        return Ok((Word::Number(number), length));
    }
    if next.is_ascii_alphabetic() || next == '_' {
        let length = while_in(|c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Word::Name(rest[..length].to_owned()), length));
    }
    if next == '"' || next == '\'' {
        let Some(end) = rest[1..].find(next) else {
            let message = format!("a string has no closing {next}");
            return Err(wrong(rest.len(), message));
        };
        return Ok((Word::Text(rest[1..=end].to_owned()), end + 2));
    }
    let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
    let (sign, word) = sign.ok_or_else(|| {
        let message = format!("unexpected `{next}`");
        wrong(next.len_utf8(), message)
    })?;
    Ok((word.clone(), sign.len()))
}

/// Digits, a point, and an exponent.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits_from = |from: usize| {
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        from + bytes[from..].iter().take_while(is_part).count()
    };
    let mantissa = digits_from(0);
    let sign = match bytes.get(mantissa) {
        Some(b'e' | b'E') => mantissa + 1,
        _ => return mantissa,
    };
    let digits = match bytes.get(sign) {
        Some(b'+' | b'-') => sign + 1,
        _ => sign,
    };
    match bytes.get(digits) {
        Some(byte) if byte.is_ascii_digit() => digits_from(digits),
        _ => mantissa,
    }
}
