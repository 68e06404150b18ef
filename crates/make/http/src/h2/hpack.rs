//! Header compression (RFC 7541).

mod decoder;
mod encoder;
pub(crate) mod huffman;
pub(crate) mod integer;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, HpackError};
pub use encoder::Encoder;
pub(super) use encoder::{EMPTY_TABLE, write_literal};

/// The size of a table that nothing was said about, in bytes.
pub(super) const TABLE_BYTES_DEFAULT: usize = 4096;
