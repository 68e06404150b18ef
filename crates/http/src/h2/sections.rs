//! Header blocks as they arrive.

use super::fields::{FieldList, Fields};
use super::head::{RequestHead, RequestParts, ResponseHead, ResponseParts};
use super::hpack::{Decoder, HpackError, TABLE_BYTES_DEFAULT};
use super::limits::Limits;

/// Decodes blocks, and remembers the last one. Where the same bytes come again,
/// the same fields are meant, and the block need not be read again, if either
///
/// * it left the table as it was; or
/// * it refers to nothing that was sent before, and has come so often that the
///   table holds nothing else: what it would add is then what would go. The table
///   keeps the newest entries that fit, whatever was there before them.
///
/// Peers in a load test say the same thing again and again, so this is what
/// mostly happens; it costs a comparison.
#[derive(Debug)]
pub(super) struct Sections {
    decoder: Decoder,
    list: FieldList,
    last_block: Vec<u8>,
    /// Whether `last_block` stands for `list` and need not be read again.
    is_remembered: bool,
    /// What `last_block` has added to the table since another one came, in bytes.
    added_bytes: usize,
    response: Option<Result<ResponseParts, &'static str>>,
    request: Option<Result<RequestParts, &'static str>>,
}

impl Sections {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut decoder = Decoder::new(limits.block_bytes_max());
        if limits.header_table_bytes as usize > TABLE_BYTES_DEFAULT {
            // It may use more as soon as it knows.
            decoder.allow_table(limits.header_table_bytes as usize);
        }
        Self {
            decoder,
            list: FieldList::new(),
            last_block: Vec::new(),
            is_remembered: false,
            added_bytes: 0,
            response: None,
            request: None,
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
        self.response = None;
        self.request = None;
        let changes = self.decoder.changes();
        self.decoder.decode(block, &mut self.list)?;
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

    pub(super) const fn is_overflowed(&self) -> bool {
        self.list.is_overflowed()
    }

    /// The fields of the last block.
    pub(super) fn fields(&self) -> Fields<'_> {
        self.list.fields()
    }

    /// The last block as the head of a response.
    pub(super) fn response(&mut self) -> Result<ResponseParts, &'static str> {
        let fields = self.list.fields();
        *self
            .response
            .get_or_insert_with(|| ResponseParts::parse(fields))
    }

    /// The last block as the head of a request.
    pub(super) fn request(&mut self) -> Result<RequestParts, &'static str> {
        let fields = self.list.fields();
        *self
            .request
            .get_or_insert_with(|| RequestParts::parse(fields))
    }

    /// The last block, which was found to be the head of a response.
    pub(super) fn response_head(&self) -> ResponseHead<'_> {
        let parts = self.response.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }

    /// The last block, which was found to be the head of a request.
    pub(super) fn request_head(&self) -> RequestHead<'_> {
        let parts = self.request.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }
}

#[cfg(test)]
mod tests;
