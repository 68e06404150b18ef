//! Fields to header blocks.

use super::table::{Found, Table, size};
use super::{TABLE_BYTES_DEFAULT, huffman, integer};

/// Says that the table is empty and will stay so: how a sender that keeps none
/// answers a peer that wants a small one (RFC 7541, 4.2).
pub(in crate::h2) const EMPTY_TABLE: u8 = 0x20;

/// Writes the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The sizes to announce: the smallest since the last block, and the last.
    announced: Option<(usize, usize)>,
}

impl Encoder {
    /// Keeps a table of `table_bytes`: at most what the peer allows, which is
    /// 4096 until it says otherwise. With 0 none is kept.
    #[must_use]
    pub fn new(table_bytes: usize) -> Self {
        let mut encoder = Self {
            table: Table::new(TABLE_BYTES_DEFAULT),
            announced: None,
        };
        if table_bytes != TABLE_BYTES_DEFAULT {
            encoder.set_table_bytes(table_bytes);
        }
        encoder
    }

    /// Changes the size of the table; the next block says so.
    pub fn set_table_bytes(&mut self, table_bytes: usize) {
        let smallest = self.announced.map_or(table_bytes, |(smallest, _)| smallest);
        self.announced = Some((smallest.min(table_bytes), table_bytes));
        self.table.set_bytes_max(table_bytes);
    }

    /// Appends one block of `fields`, names in lower case. Fields that take more
    /// than half of the table are not kept in it.
    pub fn encode<'f>(
        &mut self,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) {
        if let Some((smallest, last)) = self.announced.take() {
            if smallest < last {
                integer::write(smallest, 5, 0x20, out);
            }
            integer::write(last, 5, 0x20, out);
        }
        for (name, value) in fields {
            self.encode_field(name, value, out);
        }
    }

    fn encode_field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let index = match self.table.find(name, value) {
            Found::Field(index) => return integer::write(index, 7, 0x80, out),
            Found::Name(index) => index,
            Found::Nothing => 0,
        };
        let is_kept = size(name, value) <= self.table.bytes_max() / 2;
        if is_kept {
            integer::write(index, 6, 0x40, out);
        } else {
            integer::write(index, 4, 0, out);
        }
        if index == 0 {
            write_string(name, out);
        }
        write_string(value, out);
        if is_kept {
            self.table.insert(name, value);
        }
    }
}

/// Appends a field by itself, without reference to what was sent before: it
/// means the same in every block of every connection.
pub(in crate::h2) fn write_literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let mut alone = Encoder {
        table: Table::new(0),
        announced: None,
    };
    alone.encode_field(name, value, out);
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_bytes(text);
    if coded < text.len() {
        integer::write(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
