//! Sections of fields as they arrive.

use super::error::{H3ConnectionError, H3MessageError, H3StreamFailure};
use super::qpack;
use crate::h2::section::Section;

/// Decodes sections, and remembers the last one: the same bytes mean the same
/// fields, since nothing refers to what was sent before.
#[derive(Debug)]
pub(super) struct FieldSections {
    list_bytes_max: usize,
    /// The last one, decoded.
    pub(super) last: Section,
    last_bytes: Vec<u8>,
    is_remembered: bool,
}

impl FieldSections {
    pub(super) fn new(list_bytes_max: usize) -> Self {
        Self {
            list_bytes_max,
            // We never say that we take `:protocol`.
            last: Section::new(false),
            last_bytes: Vec::new(),
            is_remembered: false,
        }
    }

    /// Maximum size of a section before it is decoded.
    pub(super) const fn bytes_max(&self) -> usize {
        self.list_bytes_max
    }

    pub(super) fn decode(&mut self, section: &[u8]) -> Result<(), H3MessageError> {
        if !self.is_remembered || section != self.last_bytes {
            self.is_remembered = false;
            let decoded = qpack::decode(section, self.list_bytes_max, self.last.refill());
            decoded.map_err(H3ConnectionError::Compression)?;
            self.last_bytes.clear();
            self.last_bytes.extend_from_slice(section);
            self.is_remembered = true;
        }
        if self.last.is_overflowed() {
            return Err(H3StreamFailure::HeadersTooLarge.into());
        }
        Ok(())
    }
}
