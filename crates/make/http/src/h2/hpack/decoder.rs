//! Header blocks to fields.

use super::table::{Table, size};
use super::{TABLE_BYTES_DEFAULT, huffman, integer};
use crate::h2::fields::FieldList;

/// Reasons for which a header block cannot be read. The connection is lost with it: the
/// tables of both sides no longer agree.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HpackError {
    /// The block ends within a field.
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
    /// A table size above what was allowed.
    #[error("a table size of {bytes} bytes exceeds the {bytes_max} allowed")]
    TableSize {
        /// The size in the block.
        bytes: usize,
        /// The limit of the settings.
        bytes_max: usize,
    },
    /// A table size after a field.
    #[error("the size of the table changes within the header block")]
    TableSizePosition,
}

/// Reads the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    table_bytes_limit: usize,
    list_bytes_max: usize,
    effect: BlockEffect,
}

/// Effect of the last block on the table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::h2) struct BlockEffect {
    /// True if it referred to an earlier entry, or changed the size.
    pub(in crate::h2) depends: bool,
    /// Size of the entries that it added.
    pub(in crate::h2) added_bytes: usize,
}

/// Table use of a literal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Literal {
    Indexed,
    NotIndexed,
}

impl Decoder {
    /// Allows the table that HTTP/2 begins with, of 4096 bytes. Of lists that
    /// count more than `list_bytes_max` (names, values and 32 for each field)
    /// the rest is read but not kept.
    #[must_use]
    pub const fn new(list_bytes_max: usize) -> Self {
        Self {
            table: Table::new(TABLE_BYTES_DEFAULT),
            table_bytes_limit: TABLE_BYTES_DEFAULT,
            list_bytes_max,
            effect: BlockEffect {
                depends: false,
                added_bytes: 0,
            },
        }
    }

    /// The peer has learnt that the table may have `bytes`.
    pub const fn allow_table(&mut self, bytes: usize) {
        self.table_bytes_limit = bytes;
    }

    /// Number of changes of the table: without a change, the same block means the same
    /// fields.
    pub(in crate::h2) const fn changes(&self) -> u64 {
        self.table.changes()
    }

    /// Returns the effect of the last block on the table.
    pub(in crate::h2) const fn effect(&self) -> BlockEffect {
        self.effect
    }

    /// Maximum size of the table now.
    pub(in crate::h2) const fn table_bytes_max(&self) -> usize {
        self.table.bytes_max()
    }

    /// Reads a whole block into `list`, which is cleared first.
    ///
    /// # Errors
    /// [`HpackError`], after which nothing more of the connection can be read.
    pub fn decode(&mut self, block: &[u8], list: &mut FieldList) -> Result<(), HpackError> {
        list.clear();
        self.effect = BlockEffect::default();
        let mut input = block;
        let mut size_may_change = true;
        while let Some(first) = input.first() {
            if first & 0xe0 == 0x20 {
                if !size_may_change {
                    return Err(HpackError::TableSizePosition);
                }
                self.resize(integer::read(&mut input, 5)?)?;
                continue;
            }
            size_may_change = false;
            if first & 0x80 != 0 {
                self.indexed(integer::read(&mut input, 7)?, list)?;
            } else if first & 0x40 != 0 {
                self.literal(&mut input, 6, Literal::Indexed, list)?;
            } else {
                self.literal(&mut input, 4, Literal::NotIndexed, list)?;
            }
        }
        Ok(())
    }

    fn resize(&mut self, bytes: usize) -> Result<(), HpackError> {
        let bytes_max = self.table_bytes_limit;
        if bytes > bytes_max {
            return Err(HpackError::TableSize { bytes, bytes_max });
        }
        self.table.set_bytes_max(bytes);
        self.effect.depends = true;
        Ok(())
    }

    fn indexed(&mut self, index: usize, list: &mut FieldList) -> Result<(), HpackError> {
        let field = self.table.field(index);
        let (name, value) = field.ok_or(HpackError::Index { index })?;
        self.effect.depends |= !Table::is_static(index);
        if list.charge(size(name, value), self.list_bytes_max) {
            list.push(name, value);
        }
        Ok(())
    }

    fn literal(
        &mut self,
        input: &mut &[u8],
        prefix_bits: u8,
        literal: Literal,
        list: &mut FieldList,
    ) -> Result<(), HpackError> {
        let index = integer::read(input, prefix_bits)?;
        let bytes = list.open();
        let start = bytes.len();
        if index == 0 {
            read_string(input, bytes)?;
        } else {
            let field = self.table.field(index);
            let (name, _) = field.ok_or(HpackError::Index { index })?;
            self.effect.depends |= !Table::is_static(index);
            bytes.extend_from_slice(name);
        }
        let value_start = bytes.len();
        read_string(input, bytes)?;
        let (name, value) = bytes[start..].split_at(value_start - start);
        let size = size(name, value);
        if literal == Literal::Indexed {
            self.table.insert(name, value);
            self.effect.added_bytes += size;
        }
        if list.charge(size, self.list_bytes_max) {
            list.close(value_start);
        } else {
            list.abandon(start);
        }
        Ok(())
    }
}

fn read_string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_coded = input.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = integer::read(input, 7)?;
    let (text, rest) = input
        .split_at_checked(length)
        .ok_or(HpackError::Truncated)?;
    *input = rest;
    if is_coded {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}
