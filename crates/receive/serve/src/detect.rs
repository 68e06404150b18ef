//! The versions of HTTP on a connection.

use std::rc::Rc;

use stillwell_plan::serve::ServeProtocols;
use stillwell_plan::tls::Alpn;
use stillwell_units::Moment;
use stillwell_wire::server::{Http, Output, Protocol, Versions};

use crate::conversation::Conversation;
use crate::http2::Http2;
use crate::outbox::{End, Outbox};
use crate::service::Service;

/// Makes connections of HTTP/1.1 and HTTP/2 to the test server.
#[derive(Debug)]
pub(crate) struct ServeVersions(Rc<Service>);

/// One connection of HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Http1 {
    service: Rc<Service>,
    conversation: Conversation,
    outbox: Outbox,
}

/// A connection at its start, on which `alpn` was negotiated, if anything.
pub(crate) fn http(service: &Rc<Service>, alpn: Option<Alpn>) -> Http<ServeVersions> {
    let versions = ServeVersions(Rc::clone(service));
    match (service.site.plan.protocols, alpn) {
        (ServeProtocols::Http2, _) | (ServeProtocols::Auto, Some(Alpn::Http2)) => {
            Http::Http2(versions.http2())
        }
        (ServeProtocols::Http1, _) | (ServeProtocols::Auto, Some(Alpn::Http1)) => {
            Http::Http1(versions.http1())
        }
        // HTTP/3 does not come over a stream.
        (ServeProtocols::Http3, _) | (ServeProtocols::Auto, _) => Http::new(versions),
    }
}

impl Versions for ServeVersions {
    type End = End;
    type Http1 = Http1;
    type Http2 = Http2;

    fn http1(&self) -> Http1 {
        Http1 {
            service: Rc::clone(&self.0),
            conversation: Conversation::default(),
            outbox: Outbox::new(&self.0),
        }
    }

    fn http2(&self) -> Http2 {
        Http2::new(&self.0)
    }

    fn count_cut(&self) {
        self.0.shard.malformed.add(1);
    }
}

impl Output for Http1 {
    fn needs_filling(&self) -> bool {
        self.outbox.due().is_some()
    }

    fn fill(&mut self, now: Moment) {
        self.outbox.fill(now);
    }

    fn unsent(&self) -> &[u8] {
        self.outbox.unsent()
    }

    fn advance(&mut self, length: usize) {
        self.outbox.advance(length);
    }
}

impl Protocol for Http1 {
    type End = End;

    fn take(&mut self, input: &[u8], now: Moment) {
        self.service.shard.received_bytes.add(input.len() as u64);
        self.conversation
            .take(input, now, &self.service, &mut self.outbox);
    }

    fn due(&self) -> Option<Moment> {
        self.outbox.due()
    }

    fn open_head(&self) -> Option<u64> {
        self.conversation.open_head()
    }

    fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    fn end(&self) -> Option<End> {
        self.outbox.end()
    }

    fn finish(&mut self) {
        self.conversation.finish(&self.service);
    }
}
