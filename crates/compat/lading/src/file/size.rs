//! Sizes as lading spells them.

use stillwell_units::{ByteSize, floor_to_u64, whole_number};

use stillwell_text::{Node, Reader, code};

/// Prefixes of whole numbers that are not decimal.
const RADIXES: [&str; 3] = ["0x", "0o", "0b"];

/// A size and whether it was written in bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// The size, rounded up to whole bytes.
    pub bytes: ByteSize,
    /// Size of the same text with its `b` read as bytes.
    pub if_bytes: Option<ByteSize>,
}

/// `text` as lading 0.33 reads sizes: a number, a prefix in any case (`k`, `M`,
/// `G`, `T`, `P`, with `i` for powers of 1024) and `B` for bytes or `b` for
/// bits; bytes if neither. A number alone may be hexadecimal, octal or binary.
#[must_use]
pub fn parse_size(text: &str) -> Option<Size> {
    let text = text.trim();
    if RADIXES.iter().any(|radix| text.starts_with(radix))
        && let Some(bytes) = whole_number(text)
    {
        return Some(Size {
            bytes: ByteSize::new(bytes),
            if_bytes: None,
        });
    }
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    let unit = text[end..].trim();
    let (prefix, is_bits) = match unit {
        _ if unit.ends_with('B') => (&unit[..unit.len() - 1], false),
        _ if unit.ends_with('b') => (&unit[..unit.len() - 1], true),
        _ if unit.ends_with("bit") => (&unit[..unit.len() - 3], true),
        _ => (unit, false),
    };
    let scaled = number * prefix_scale(prefix)?;
    let bytes = if is_bits { scaled / 8.0 } else { scaled };
    (scaled < 1.8e19).then(|| Size {
        bytes: ByteSize::new(floor_to_u64(bytes.ceil())),
        if_bytes: is_bits.then(|| ByteSize::new(floor_to_u64(scaled.ceil()))),
    })
}

fn prefix_scale(prefix: &str) -> Option<f64> {
    let mut letters = prefix.chars();
    let power = match letters.next().map(|letter| letter.to_ascii_lowercase()) {
        None => return Some(1.0),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    match letters.as_str() {
        "" => Some(1e3_f64.powi(power)),
        "i" | "I" => Some(1024_f64.powi(power)),
        _ => None,
    }
}

/// Reads a size above zero; sizes in bits are followed, with a warning.
pub(super) fn read_size(reader: &Reader, node: &Node) -> Option<ByteSize> {
    let (size, text) = read_above_zero(reader, node)?;
    warn_of_bits(reader, node, text, size);
    Some(size.bytes)
}

/// Reports the size that `text` is, if it was written in bits.
pub(crate) fn warn_of_bits(reader: &Reader, node: &Node, text: &str, size: Size) {
    if let Some(if_bytes) = size.if_bytes {
        let message = format!("`{text}` is read as bits: {}", size.bytes);
        reader.report(
            reader
                .warning(code::BITS, node.span, message)
                .label("a small `b` means bits")
                .help(format!(
                    "lading reads bits since 0.25.9; before, it was {if_bytes}. Write `{}` for bytes",
                    text.replace("bit", "B").replace('b', "B")
                )),
        );
    }
}

/// Reads a size above zero of a key that lading had only while `b` meant bytes.
pub(super) fn read_size_of_old(reader: &Reader, node: &Node) -> Option<ByteSize> {
    let (size, _) = read_above_zero(reader, node)?;
    Some(size.if_bytes.unwrap_or(size.bytes))
}

fn read_above_zero<'n>(reader: &Reader, node: &'n Node) -> Option<(Size, &'n str)> {
    let text = reader.text(node)?;
    let Some(size) = parse_size(text) else {
        let message = format!("`{text}` is not a size");
        reader.report(
            reader
                .error(code::BAD_VALUE, node.span, message)
                .label("write a number and a unit, such as `\"64 KiB\"` or `\"10 MB\"`"),
        );
        return None;
    };
    if size.bytes.bytes() == 0 {
        let error = reader.error(code::OUT_OF_RANGE, node.span, "a size of zero");
        reader.report(error.label("must be above zero"));
        return None;
    }
    Some((size, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_lading_reads_them() {
        for (text, bytes) in [
            ("500 Mb", 62_500_000),
            ("500 MB", 500_000_000),
            ("12kb", 1500),
            ("100MiB", 104_857_600),
            ("66.2 MiB", 69_415_732),
            ("1024", 1024),
            ("3 b", 1),
            ("1_000 KiB", 1_024_000),
            ("30g", 30_000_000_000),
            ("8 Kibit", 1024),
            ("0x800000", 8_388_608),
            ("0o17", 15),
            ("0b101", 5),
        ] {
            assert_eq!(parse_size(text).unwrap().bytes.bytes(), bytes, "{text}");
        }
        for text in [
            "",
            "MiB",
            "1 x",
            "1 MiX",
            "-1 B",
            "1 Mii",
            "9e9",
            "99999999 PB",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
