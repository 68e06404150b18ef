//! Sections of fields as they arrive.

use super::error::{ConnectionError, MessageError, StreamFailure};
use super::qpack;
use crate::h2::head::{RequestParts, ResponseParts};
use crate::h2::{FieldList, Fields, RequestHead, ResponseHead};

/// Decodes sections, and remembers the last one: the same bytes mean the same
/// fields, since nothing refers to what was sent before.
#[derive(Debug)]
pub(super) struct Sections {
    list_bytes_max: usize,
    list: FieldList,
    last: Vec<u8>,
    is_remembered: bool,
    response: Option<Result<ResponseParts, &'static str>>,
    request: Option<Result<RequestParts, &'static str>>,
}

impl Sections {
    pub(super) fn new(list_bytes_max: usize) -> Self {
        Self {
            list_bytes_max,
            list: FieldList::new(),
            last: Vec::new(),
            is_remembered: false,
            response: None,
            request: None,
        }
    }

    /// What a section may take before it is decoded.
    pub(super) const fn bytes_max(&self) -> usize {
        self.list_bytes_max
    }

    pub(super) fn decode(&mut self, section: &[u8]) -> Result<(), MessageError> {
        if !self.is_remembered || section != self.last {
            self.is_remembered = false;
            (self.response, self.request) = (None, None);
            let decoded = qpack::decode(section, self.list_bytes_max, &mut self.list);
            decoded.map_err(ConnectionError::Compression)?;
            self.last.clear();
            self.last.extend_from_slice(section);
            self.is_remembered = true;
        }
        if self.list.is_overflowed() {
            return Err(StreamFailure::HeadersTooLarge.into());
        }
        Ok(())
    }

    /// The fields of the last section.
    pub(super) fn fields(&self) -> Fields<'_> {
        self.list.fields()
    }

    /// The last section as the head of a response.
    pub(super) fn response(&mut self) -> Result<ResponseParts, &'static str> {
        let fields = self.list.fields();
        *self
            .response
            .get_or_insert_with(|| ResponseParts::parse(fields))
    }

    /// The last section as the head of a request.
    pub(super) fn request(&mut self) -> Result<RequestParts, &'static str> {
        let fields = self.list.fields();
        *self
            .request
            .get_or_insert_with(|| RequestParts::parse(fields))
    }

    /// The last section, which was found to be the head of a response.
    pub(super) fn response_head(&self) -> ResponseHead<'_> {
        let parts = self.response.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }

    /// The last section, which was found to be the head of a request.
    pub(super) fn request_head(&self) -> RequestHead<'_> {
        let parts = self.request.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }
}
