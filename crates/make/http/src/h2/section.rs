//! A section of fields that was decoded, and the heads that it makes.

use super::fields::{FieldList, Fields};
use super::head::{RequestHead, RequestParts, ResponseHead, ResponseParts};

/// The fields of one section. What head they make is found out once, however often the
/// section comes again.
#[derive(Debug)]
pub(crate) struct Section {
    list: FieldList,
    /// True if a request may have a `:protocol`.
    connect_protocol: bool,
    response: Option<Result<ResponseParts, &'static str>>,
    request: Option<Result<RequestParts, &'static str>>,
}

impl Section {
    /// Without a field. Requests may say a `:protocol` where `connect_protocol`.
    pub(crate) fn new(connect_protocol: bool) -> Self {
        Self {
            list: FieldList::new(),
            connect_protocol,
            response: None,
            request: None,
        }
    }

    /// Returns the list for the fields of another section.
    pub(crate) const fn refill(&mut self) -> &mut FieldList {
        (self.response, self.request) = (None, None);
        &mut self.list
    }

    /// Returns true if there were more fields than the limit.
    pub(crate) const fn is_overflowed(&self) -> bool {
        self.list.is_overflowed()
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        self.list.fields()
    }

    /// As the head of a response.
    pub(crate) fn response(&mut self) -> Result<ResponseParts, &'static str> {
        let fields = self.list.fields();
        *self
            .response
            .get_or_insert_with(|| ResponseParts::parse(fields))
    }

    /// As the head of a request.
    pub(crate) fn request(&mut self) -> Result<RequestParts, &'static str> {
        let (fields, connect_protocol) = (self.list.fields(), self.connect_protocol);
        *self
            .request
            .get_or_insert_with(|| RequestParts::parse(fields, connect_protocol))
    }

    /// That of a response, which it was found to be.
    pub(crate) fn response_head(&self) -> ResponseHead<'_> {
        let parts = self.response.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }

    /// That of a request, which it was found to be.
    pub(crate) fn request_head(&self) -> RequestHead<'_> {
        let parts = self.request.and_then(Result::ok).unwrap_or_default();
        parts.head(self.list.fields())
    }
}
