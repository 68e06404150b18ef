//! Header compression (RFC 9204) without a table that changes.

use super::super::h2::FieldList;
use super::super::h2::hpack::{HpackError, huffman, integer};

mod static_table;

use static_table::STATIC;

/// Prefix of every section: it refers to no earlier field.
const PREFIX: [u8; 2] = [0, 0];

/// Size of a field beyond its name and value (RFC 9114, 4.2.2).
const FIELD_BYTES: usize = 32;

/// Reasons for which a section of fields cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum QpackError {
    /// It ends within a field.
    #[error("the header block ends within a field")]
    Truncated,
    /// An integer above 2²⁸ or in more bytes than it takes.
    #[error("an integer in the header block is too large")]
    IntegerTooLarge,
    /// An index that no entry has.
    #[error("the header block refers to entry {index}, which does not exist")]
    Index {
        /// The index.
        index: usize,
    },
    /// A string that is no Huffman code, or is not filled as it must be.
    #[error("a string in the header block has an invalid Huffman code")]
    Huffman,
    /// It refers to a table that was not offered.
    #[error("the header block refers to a dynamic table, and none was offered")]
    Dynamic,
}

impl From<HpackError> for QpackError {
    fn from(error: HpackError) -> Self {
        match error {
            HpackError::Huffman => Self::Huffman,
            HpackError::IntegerTooLarge => Self::IntegerTooLarge,
            HpackError::Index { index } => Self::Index { index },
            _ => Self::Truncated,
        }
    }
}

/// Appends a section of `fields`, names in lower case.
pub fn encode<'f>(fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>, out: &mut Vec<u8>) {
    out.extend_from_slice(&PREFIX);
    for (name, value) in fields {
        encode_field(name, value, out);
    }
}

/// Appends one field to a section.
pub(super) fn encode_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let is_name = |entry: &&(usize, (&str, &str))| entry.1.0.as_bytes() == name;
    let of_name = || STATIC.iter().copied().enumerate();
    let whole = of_name().find(|entry| is_name(&entry) && entry.1.1.as_bytes() == value);
    if let Some((index, _)) = whole {
        return integer::write(index, 6, 0xc0, out);
    }
    if let Some((index, _)) = of_name().find(|entry| is_name(&entry)) {
        integer::write(index, 4, 0x50, out);
    } else {
        write_string(name, 3, 0x20, out);
    }
    write_string(value, 7, 0, out);
}

/// A string whose length has `prefix_bits`, behind one that says how it is coded.
fn write_string(text: &[u8], prefix_bits: u8, pattern: u8, out: &mut Vec<u8>) {
    let coded = huffman::encoded_bytes(text);
    if coded < text.len() {
        integer::write(coded, prefix_bits, pattern | 1 << prefix_bits, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), prefix_bits, pattern, out);
        out.extend_from_slice(text);
    }
}

/// Reads a whole section into `list`, which is cleared first, and which keeps
/// fields of up to `list_bytes_max`.
///
/// # Errors
/// [`QpackError`], after which the connection is to be given up.
pub fn decode(
    section: &[u8],
    list_bytes_max: usize,
    list: &mut FieldList,
) -> Result<(), QpackError> {
    list.clear();
    let mut input = section;
    let inserted = integer::read(&mut input, 8)?;
    let is_below = input.first().is_some_and(|byte| byte & 0x80 != 0);
    integer::read(&mut input, 7)?;
    if inserted != 0 || is_below {
        return Err(QpackError::Dynamic);
    }
    while let Some(first) = input.first().copied() {
        match first {
            0xc0.. => {
                let index = integer::read(&mut input, 6)?;
                let (name, value) = entry(index)?;
                if list.charge(name.len() + value.len() + FIELD_BYTES, list_bytes_max) {
                    list.push(name.as_bytes(), value.as_bytes());
                }
            }
            0x50..0x60 | 0x70..0x80 => {
                let (name, _) = entry(integer::read(&mut input, 4)?)?;
                let name = name.as_bytes();
                literal(&mut input, list_bytes_max, list, |_, out| {
                    out.extend_from_slice(name);
                    Ok(())
                })?;
            }
            0x20..0x40 => literal(&mut input, list_bytes_max, list, |input, out| {
                read_string(input, 3, out)
            })?,
            // Entries of a table that changes: from its end, or behind its base.
            0x80..0xc0 | 0x40..0x80 | ..0x20 => return Err(QpackError::Dynamic),
        }
    }
    Ok(())
}

fn entry(index: usize) -> Result<(&'static str, &'static str), QpackError> {
    let entry = STATIC.get(index).copied();
    entry.ok_or(QpackError::Index { index })
}

fn literal(
    input: &mut &[u8],
    list_bytes_max: usize,
    list: &mut FieldList,
    name: impl FnOnce(&mut &[u8], &mut Vec<u8>) -> Result<(), QpackError>,
) -> Result<(), QpackError> {
    let bytes = list.open();
    let start = bytes.len();
    name(input, bytes)?;
    let value_start = bytes.len();
    read_string(input, 7, bytes)?;
    let size = bytes.len() - start + FIELD_BYTES;
    if list.charge(size, list_bytes_max) {
        list.close(value_start);
    } else {
        list.abandon(start);
    }
    Ok(())
}

fn read_string(input: &mut &[u8], prefix_bits: u8, out: &mut Vec<u8>) -> Result<(), QpackError> {
    let first = input.first().ok_or(QpackError::Truncated)?;
    let is_coded = first & 1 << prefix_bits != 0;
    let length = integer::read(input, prefix_bits)?;
    let (text, rest) = input
        .split_at_checked(length)
        .ok_or(QpackError::Truncated)?;
    *input = rest;
    if is_coded {
        huffman::decode(text, out)?;
    } else {
        out.extend_from_slice(text);
    }
    Ok(())
}
