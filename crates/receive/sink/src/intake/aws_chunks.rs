//! The framing of bodies that are uploaded to S3 in chunks, each with its signature.
//!
//! ```text
//! 5;chunk-signature=0123...\r\n
//! Hello\r\n
//! 0;chunk-signature=4567...\r\n
//! x-amz-checksum-crc32:AAAAAA==\r\n
//! \r\n
//! ```
//!
//! Lengths are hexadecimal. Signatures and the fields at the end may be absent. Neither is
//! checked.

use memchr::memchr;

/// The data of all chunks of a whole body; `None` where it is not so framed.
pub(super) fn unframe(body: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let (line, after_line) = split_line(rest)?;
        let length = chunk_length(line)?;
        if length == 0 {
            return is_end(after_line).then_some(data);
        }
        let (chunk, after_chunk) = after_line.split_at_checked(length)?;
        data.extend_from_slice(chunk);
        rest = after_chunk.strip_prefix(b"\r\n")?;
    }
}

/// The first line, and the bytes after its end.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b'\n', bytes)?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    Some((line, &bytes[end + 1..]))
}

/// The length in the line before a chunk.
fn chunk_length(line: &[u8]) -> Option<usize> {
    let digits = line.split(|byte| *byte == b';').next()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns true for the empty line that ends a body, with fields before it or without. Some
/// clients write an empty line before the last field, too.
fn is_end(bytes: &[u8]) -> bool {
    let is_field = |line: &[u8]| {
        let line = line.trim_ascii();
        line.is_empty() || line.contains(&b':')
    };
    (bytes == b"\r\n" || bytes.ends_with(b"\r\n\r\n"))
        && bytes.split(|byte| *byte == b'\n').all(is_field)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunks_have_signatures_and_fields_at_the_end_or_not() {
        for end in [
            "0;chunk-signature=b\r\n\r\n",
            "0\r\n\r\n",
            "0\r\nx-amz-checksum-crc32:AA==\r\n\r\n",
            "0;chunk-signature=b\r\nx-amz-checksum-crc32:AA==\r\nx-amz-trailer-signature:c\r\n\r\n",
            "00\r\nx-amz-checksum-crc32:AA==\n\r\nx-amz-trailer-signature:c\r\n\r\n",
        ] {
            let body = format!("5;chunk-signature=a\r\nHello\r\nC\r\n\r\n0;a:b\r\nend\r\n{end}");
            let data = Some(b"Hello\r\n0;a:b\r\nend".to_vec());
            assert_eq!(unframe(body.as_bytes()), data, "{end:?}");
        }
    }

    #[test]
    fn framing_that_is_cut_or_wrong_is_refused() {
        let whole = b"5;chunk-signature=a\r\nHello\r\n0;chunk-signature=b\r\n\r\n";
        assert!(unframe(whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(unframe(&whole[..length]), None, "{length}");
        }
        for wrong in [
            "plain text",
            "g\r\n\r\n0\r\n\r\n",
            "+1\r\na\r\n0\r\n\r\n",
            ";chunk-signature=a\r\n\r\n",
            "1\na\r\n0\r\n\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "ffffffffffffffffff\r\na\r\n0\r\n\r\n",
            "ffffffffffffffff\r\na\r\n0\r\n\r\n",
            "0\r\nno field\r\n\r\n",
            "0\r\n\r\nmore",
        ] {
            assert_eq!(unframe(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn for_all_chunks_their_data_is_in_order(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                let line = format!("{:x};chunk-signature=0a\r\n", chunk.len());
                body.extend_from_slice(&[line.as_bytes(), chunk.as_slice(), b"\r\n"].concat());
            }
            body.extend_from_slice(b"0;chunk-signature=0b\r\n\r\n");
            prop_assert_eq!(unframe(&body), Some(chunks.concat()));
        }

        #[test]
        fn for_all_bytes_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            unframe(&bytes);
        }
    }
}
