//! JSON values put into texts, and joined.

/// Makes of the JSON value `value` its form inside a JSON text: a text loses its quotes, anything
/// else is escaped.
pub(super) fn unwrap(value: &mut Vec<u8>) {
    if is_text(value) {
        value.pop();
        value.remove(0);
    } else if value.iter().any(|byte| escape(*byte).is_some()) {
        *value = escaped(value);
    }
}

/// Returns true if a JSON value is a text.
pub(super) const fn is_text(value: &[u8]) -> bool {
    matches!(value, [b'"', .., b'"'])
}

/// Returns true if `value` needs no escape inside a JSON text.
pub(super) fn is_plain(value: &[u8]) -> bool {
    value.iter().all(|byte| escape(*byte).is_none())
}

/// Returns `value` in its form inside a JSON text.
pub(super) fn escaped(value: &[u8]) -> Vec<u8> {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    let mut text = Vec::with_capacity(value.len() * 2);
    for byte in value {
        match escape(*byte) {
            None => text.push(*byte),
            Some(b'u') => {
                text.extend_from_slice(b"\\u00");
                text.push(HEXADECIMAL[usize::from(byte >> 4)]);
                text.push(HEXADECIMAL[usize::from(byte & 15)]);
            }
            Some(letter) => text.extend_from_slice(&[b'\\', letter]),
        }
    }
    text
}

/// Returns the character after the backslash in the escape of `byte`, if it has one; `u` is
/// followed by four digits.
const fn escape(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0..0x20 => Some(b'u'),
        _ => None,
    }
}

/// Joins the JSON values `buffer[start..middle]` and `buffer[middle..end]`, and
/// gives where what they make ends: at most one byte behind `end`, less than
/// both together. Values of one kind, be it texts, lists or objects, become one;
/// else the second takes the place of the first.
pub(super) fn join(buffer: &mut [u8], start: usize, middle: usize, end: usize) -> usize {
    if start == middle {
        return end;
    }
    let opening = buffer[start];
    let is_joined =
        end - middle >= 2 && buffer[middle] == opening && matches!(opening, b'"' | b'[' | b'{');
    if !is_joined || middle - start == 2 {
        // Nothing is in the first, or it is of another kind.
        buffer.copy_within(middle..end, start);
        return start + (end - middle);
    }
    if end - middle == 2 {
        return middle;
    }
    if opening == b'"' {
        buffer.copy_within(middle + 1..end, middle - 1);
        return end - 2;
    }
    buffer[middle - 1] = b',';
    buffer.copy_within(middle + 1..end, middle);
    end - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_become_one() {
        for (first, second, both) in [
            (r#""a""#, r#""b""#, r#""ab""#),
            (r#""""#, r#""b""#, r#""b""#),
            (r#""a""#, r#""""#, r#""a""#),
            ("[1]", "[2,3]", "[1,2,3]"),
            ("[]", "[2]", "[2]"),
            ("[1]", "[]", "[1]"),
            (r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#),
            ("{}", "{}", "{}"),
            ("[1]", "2", "2"),
            ("17", "18", "18"),
            (r#""a""#, "[1]", "[1]"),
        ] {
            let mut buffer = format!("xx{first}{second}").into_bytes();
            let (middle, end) = (2 + first.len(), buffer.len());
            let end = join(&mut buffer, 2, middle, end);
            assert_eq!(&buffer[2..end], both.as_bytes());
        }
    }

    #[test]
    fn text_inside_a_text_is_read_back() {
        for value in [r#"{"a":"b\n"}"#, r#"[1,"\u0001"]"#, "17", "null"] {
            let mut inside = value.as_bytes().to_vec();
            unwrap(&mut inside);
            let text = format!("\"{}\"", String::from_utf8(inside).unwrap());
            let read: String = serde_json::from_str(&text).unwrap();
            assert_eq!(read, value);
        }
        let mut text = br#""a\"b""#.to_vec();
        unwrap(&mut text);
        assert_eq!(text, br#"a\"b"#);
        assert_eq!(escaped(b"\x01\t"), br"\u0001\t");
    }
}
