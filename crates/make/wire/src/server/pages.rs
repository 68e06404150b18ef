//! Pages of the control plane over HTTP/1.1, without I/O.

use stillwell_http::{H1RequestEvent, PreparedResponse, RequestParser, write_response};
use stillwell_units::Moment;

use super::protocol::{Output, Protocol};

/// Content for [`PageServer`].
pub trait Pages {
    /// The response to a request.
    fn page(&mut self, request: &PageRequest) -> Page;

    /// The response to bytes that are not a request; `None` to close without one.
    fn malformed(&mut self) -> Option<Page> {
        None
    }

    /// Notes that the response with this status was sent.
    fn sent(&mut self, _status: u16) {}
}

/// A request for a page. Its body is ignored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageRequest {
    /// Such as `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// True if the client may send another request on this connection.
    pub keeps_alive: bool,
}

/// One response.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// Headers besides `content-length`.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body.
    pub body: Vec<u8>,
    /// True if the body is left out, as in a response to `HEAD`.
    pub is_head: bool,
    /// True if the connection is closed after it.
    pub is_last: bool,
}

/// One connection that serves pages.
#[derive(Debug)]
pub struct PageServer<P> {
    pages: P,
    parser: RequestParser,
    request: Option<PageRequest>,
    out: Vec<u8>,
    sent: usize,
    /// The statuses of the responses in `out`, with the place where each ends.
    unsent: Vec<(usize, u16)>,
    is_over: bool,
}

impl<P: Pages> PageServer<P> {
    /// A connection at its start.
    #[must_use]
    pub fn new(pages: P) -> Self {
        Self {
            pages,
            parser: RequestParser::default(),
            request: None,
            out: Vec::new(),
            sent: 0,
            unsent: Vec::new(),
            is_over: false,
        }
    }

    /// The content.
    #[must_use]
    pub const fn pages(&self) -> &P {
        &self.pages
    }

    fn respond(&mut self, page: &Page) {
        self.is_over = page.is_last;
        let written = if page.is_head {
            PreparedResponse::new(page.status, &page.headers, &page.body)
                .map(|response| self.out.extend_from_slice(response.head()))
        } else {
            write_response(page.status, &page.headers, &page.body, &mut self.out)
        };
        match written {
            Ok(()) => self.unsent.push((self.out.len(), page.status)),
            // A page that cannot be written is a fault of this program.
            Err(_) => self.is_over = true,
        }
    }
}

impl<P: Pages> Output for PageServer<P> {
    fn needs_filling(&self) -> bool {
        false
    }

    fn fill(&mut self, _: Moment) {}

    fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    fn advance(&mut self, length: usize) {
        self.sent += length;
        let sent = self.sent;
        let pages = &mut self.pages;
        self.unsent.retain(|(end, status)| {
            let is_sent = *end <= sent;
            if is_sent {
                pages.sent(*status);
            }
            !is_sent
        });
        if sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }
}

impl<P: Pages> Protocol for PageServer<P> {
    type End = ();

    fn take(&mut self, input: &[u8], _: Moment) {
        let mut read = 0;
        while !self.is_over {
            match self.parser.advance(&input[read..]) {
                Ok((_, None)) => return,
                Ok((taken, Some(event))) => {
                    read += taken;
                    match event {
                        H1RequestEvent::Head(head) => {
                            self.request = Some(PageRequest {
                                method: head.method.to_owned(),
                                target: head.target.to_owned(),
                                keeps_alive: head.keep_alive,
                            });
                        }
                        H1RequestEvent::Body(_) => {}
                        H1RequestEvent::End => {
                            if let Some(request) = self.request.take() {
                                let page = self.pages.page(&request);
                                self.respond(&page);
                            }
                        }
                    }
                }
                Err(_) => {
                    if let Some(page) = self.pages.malformed() {
                        self.respond(&page);
                    }
                    self.is_over = true;
                }
            }
        }
    }

    fn due(&self) -> Option<Moment> {
        None
    }

    fn open_head(&self) -> Option<u64> {
        self.parser.open_head()
    }

    fn end(&self) -> Option<()> {
        (self.is_over && self.unsent().is_empty()).then_some(())
    }

    fn finish(&mut self) {}
}
