//! Sizes in bits, and numbers without a unit.

use std::sync::Arc;

use stillwell_units::{ByteSize, float_from_u64};

use crate::file::parse_size;
use stillwell_text::{Diagnostic, Node, Place, Source, Value, code};

use super::edit::Edit;

/// Keys of sizes besides those with `bytes` in their name.
const KEYS: [&str; 6] = [
    "maximum_block_size",
    "initial",
    "maximum",
    "rate_of_change",
    "constant",
    "rate",
];

/// Digits behind the point that are tried before a smaller unit is.
const DIGITS_MAX: usize = 3;

/// Checks the value of `key`, if it is a size.
pub(super) fn lint(
    source: &Arc<Source>,
    key: &str,
    node: &Node,
) -> Option<(Diagnostic, Option<Vec<Edit>>)> {
    let Value::Scalar { text, quoted } = &node.value else {
        return None;
    };
    let has_bytes = key.contains("bytes");
    if !has_bytes && !KEYS.contains(&key) {
        return None;
    }
    let place = Place::new(source, node.span);
    if let Some(bytes) = in_bytes(text) {
        let meant = parse_size(text)?.if_bytes?;
        let diagnostic = Diagnostic::warning(code::BITS, format!("`{text}` is in bits: {bytes}"))
            .at(place)
            .label("a small `b` means bits")
            .help(format!(
                "before lading 0.25.9 it was {}",
                written(meant, text.contains(['i', 'I']))
            ));
        let written = &source.text()[node.span.start..node.span.end];
        let edit = Edit::new(node.span, quoted_as(written, &bytes));
        return Some((diagnostic, Some(vec![edit])));
    }
    let is_bare = !quoted && text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty();
    let is_size = has_bytes || key == "maximum_block_size";
    (is_bare && is_size).then(|| {
        let message = format!("`{text}` has no unit, and lading requires one");
        let diagnostic = Diagnostic::warning(code::OLD_SPELLING, message)
            .at(place)
            .label("bytes");
        let edit = Edit::new(node.span, format!("\"{text} B\""));
        (diagnostic, Some(vec![edit]))
    })
}

/// The largest of several sizes, in bytes. They are of a time in which `b` meant bytes.
pub(super) fn largest(items: &[Node]) -> Option<String> {
    let size = |item: &Node| match &item.value {
        Value::Scalar { text, .. } => {
            let size = parse_size(text)?;
            Some((size.if_bytes.unwrap_or(size.bytes), text.clone()))
        }
        _ => None,
    };
    let (bytes, text) = items.iter().filter_map(size).max()?;
    if in_bytes(&text).is_some() {
        return Some(written(bytes, text.contains(['i', 'I'])));
    }
    let is_bare = text.chars().all(|c| c.is_ascii_digit());
    Some(if is_bare {
        format!("{} B", bytes.bytes())
    } else {
        text
    })
}

/// Converts a size in bits to bytes; `None` for other sizes.
fn in_bytes(text: &str) -> Option<String> {
    let size = parse_size(text)?;
    size.if_bytes?;
    Some(written(size.bytes, text.contains(['i', 'I'])))
}

/// Formats `bytes` in the largest unit that is exact with few digits.
fn written(bytes: ByteSize, is_binary: bool) -> String {
    let count = bytes.bytes();
    let base: u64 = if is_binary { 1024 } else { 1000 };
    let letters = if is_binary {
        ["KiB", "MiB", "GiB", "TiB"]
    } else {
        ["kB", "MB", "GB", "TB"]
    };
    for (letters, power) in letters.into_iter().zip([1_u32, 2, 3, 4]).rev() {
        let scale = base.pow(power);
        if count < scale {
            continue;
        }
        let value = float_from_u64(count) / float_from_u64(scale);
        for digits in 0..=DIGITS_MAX {
            let text = format!("{value:.digits$} {letters}");
            if parse_size(&text).is_some_and(|size| size.bytes == bytes) {
                return text;
            }
        }
    }
    format!("{count} B")
}

/// `text` in the quotes that `written` has.
fn quoted_as(written: &str, text: &str) -> String {
    match written.chars().next() {
        Some(quote @ ('"' | '\'')) => format!("{quote}{text}{quote}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_are_written_in_bytes() {
        for (text, bytes) in [
            ("500 Mb", "62.5 MB"),
            ("256 Mb", "32 MB"),
            ("100Mb", "12.5 MB"),
            ("8 Mib", "1 MiB"),
            ("12kb", "1.5 kB"),
            ("3 b", "1 B"),
            ("1 kb", "125 B"),
            ("1.234567 Mb", "154.321 kB"),
        ] {
            assert_eq!(in_bytes(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(in_bytes("500 MB"), None);
    }

    proptest! {
        /// For all sizes in bits: what is written has as many bytes, and no bits.
        #[test]
        fn sizes_stay_the_same(count in 1_u64..100_000, unit in "(k|K|M|G)?i?b") {
            prop_assume!(!unit.starts_with('i'));
            let text = format!("{count} {unit}");
            let bytes = in_bytes(&text).unwrap();
            let again = parse_size(&bytes).unwrap();
            prop_assert_eq!(again.bytes, parse_size(&text).unwrap().bytes, "{}", bytes);
            prop_assert_eq!(again.if_bytes, None);
        }
    }
}
