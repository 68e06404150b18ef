//! Header blocks as they arrive.

use super::hpack::{Decoder, HpackError, TABLE_BYTES_DEFAULT};
use super::limits::Limits;
use super::section::Section;

/// Decodes blocks, and remembers the last one. Where the same bytes come again,
/// the same fields are meant, and the block need not be read again, if either
///
/// * it left the table as it was; or
/// * it refers to no earlier entry, and has come so often that the table holds nothing else:
///   it adds the entries that it evicts. The table keeps the newest entries that fit, with no
///   regard to older ones.
///
/// Peers in a load test say the same thing again and again, so this is what
/// mostly happens; it costs a comparison.
#[derive(Debug)]
pub(super) struct HeaderBlocks {
    decoder: Decoder,
    /// The last one, decoded.
    pub(super) last: Section,
    last_block: Vec<u8>,
    /// True if `last_block` means `last` and need not be read again.
    is_remembered: bool,
    /// Size of the entries that `last_block` has added to the table since another block came,
    /// in bytes.
    added_bytes: usize,
}

impl HeaderBlocks {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut decoder = Decoder::new(limits.block_bytes_max());
        if limits.header_table_bytes as usize > TABLE_BYTES_DEFAULT {
            // It may use more as soon as it knows.
            decoder.allow_table(limits.header_table_bytes as usize);
        }
        Self {
            decoder,
            last: Section::new(limits.connect_protocol),
            last_block: Vec::new(),
            is_remembered: false,
            added_bytes: 0,
        }
    }

    /// The peer knows our settings.
    pub(super) const fn acknowledged(&mut self, limits: &Limits) {
        self.decoder.allow_table(limits.header_table_bytes as usize);
    }

    pub(super) fn decode(&mut self, block: &[u8]) -> Result<(), HpackError> {
        let is_same = block == self.last_block;
        if is_same && self.is_remembered {
            return Ok(());
        }
        self.is_remembered = false;
        let changes = self.decoder.changes();
        self.decoder.decode(block, self.last.refill())?;
        if !is_same {
            self.last_block.clear();
            self.last_block.extend_from_slice(block);
            self.added_bytes = 0;
        }
        let effect = self.decoder.effect();
        self.added_bytes = self.added_bytes.saturating_add(effect.added_bytes);
        let fills_table = self.added_bytes >= self.decoder.table_bytes_max();
        self.is_remembered = self.decoder.changes() == changes || (fills_table && !effect.depends);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
