//! What is spoken on a connection, once that is known.

use std::rc::Rc;

use stillwell_http::h2::is_http2;
use stillwell_plan::{Alpn, ServeProtocols};
use stillwell_units::Moment;

use crate::conversation::Conversation;
use crate::http2::Http2;
use crate::outbox::{End, Outbox};
use crate::service::Service;

/// What is spoken on a connection.
#[derive(Debug)]
pub(crate) enum Talk {
    /// Not known yet: the first bytes will tell.
    Unknown(Rc<Service>, Vec<u8>),
    /// HTTP/1.1.
    Http1(Rc<Service>, Conversation, Outbox),
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl Talk {
    /// At the start of a connection on which `alpn` was agreed on, if anything.
    pub(crate) fn new(service: &Rc<Service>, alpn: Option<Alpn>) -> Self {
        match (service.site.plan.protocols, alpn) {
            (ServeProtocols::Http2, _) | (ServeProtocols::Auto, Some(Alpn::Http2)) => {
                Self::http2(service)
            }
            (ServeProtocols::Http1, _) | (ServeProtocols::Auto, Some(Alpn::Http1)) => {
                Self::http1(service)
            }
            // That comes by another way; whoever speaks bytes here speaks no such thing.
            (ServeProtocols::Http3, _) | (ServeProtocols::Auto, _) => {
                Self::Unknown(Rc::clone(service), Vec::new())
            }
        }
    }

    /// Takes in what was read `now`.
    pub(crate) fn take(&mut self, input: &[u8], now: Moment) {
        match self {
            Self::Http1(service, conversation, outbox) => {
                conversation.take(input, now, service, outbox);
            }
            Self::Http2(talk) => talk.take(input, now),
            Self::Unknown(service, seen) => {
                seen.extend_from_slice(input);
                if let Some(is_http2) = is_http2(seen) {
                    let (service, seen) = (Rc::clone(service), std::mem::take(seen));
                    *self = if is_http2 {
                        Self::http2(&service)
                    } else {
                        Self::http1(&service)
                    };
                    self.take(&seen, now);
                }
            }
        }
    }

    /// Whether [`Self::fill`] has anything to do.
    pub(crate) fn wants_filling(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(_, _, outbox) => outbox.due().is_some(),
            Self::Http2(_) => true,
        }
    }

    /// Lays out what is due `now`.
    pub(crate) fn fill(&mut self, now: Moment) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(_, _, outbox) => outbox.fill(now),
            Self::Http2(talk) => talk.fill(now),
        }
    }

    /// What is to be sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        match self {
            Self::Unknown(..) => &[],
            Self::Http1(_, _, outbox) => outbox.unsent(),
            Self::Http2(talk) => talk.unsent(),
        }
    }

    /// So much of it was sent.
    pub(crate) fn advance(&mut self, length: usize) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(_, _, outbox) => outbox.advance(length),
            Self::Http2(talk) => talk.advance(length),
        }
    }

    /// How the connection ends, once all is sent; `None` while it goes on.
    pub(crate) fn end(&self) -> Option<End> {
        match self {
            Self::Unknown(..) => None,
            Self::Http1(_, _, outbox) => outbox.end(),
            Self::Http2(talk) => talk.end(),
        }
    }

    /// When the next answer is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        match self {
            Self::Unknown(..) => None,
            Self::Http1(_, _, outbox) => outbox.due(),
            Self::Http2(talk) => talk.due(),
        }
    }

    /// Whether so much waits that no more is to be read.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Unknown(..) | Self::Http2(_) => false,
            Self::Http1(_, _, outbox) => outbox.is_full(),
        }
    }

    /// The peer has closed the connection.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Unknown(service, seen) => {
                service.shard.malformed.add(u64::from(!seen.is_empty()));
            }
            Self::Http1(service, conversation, _) => conversation.finish(service),
            Self::Http2(talk) => talk.finish(),
        }
    }

    fn http1(service: &Rc<Service>) -> Self {
        Self::Http1(
            Rc::clone(service),
            Conversation::default(),
            Outbox::new(service),
        )
    }

    fn http2(service: &Rc<Service>) -> Self {
        Self::Http2(Box::new(Http2::new(service)))
    }
}
