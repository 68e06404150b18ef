//! Protocols of servers, without I/O: bytes in, bytes out.

use stillwell_http::h2::is_http2;
use stillwell_units::Moment;

/// The bytes that a connection has to send.
pub trait Output {
    /// Returns true if [`Output::fill`] may have work.
    fn needs_filling(&self) -> bool {
        true
    }

    /// Lays out everything that is due at `now`.
    fn fill(&mut self, now: Moment);

    /// Bytes that are laid out and not sent yet.
    fn unsent(&self) -> &[u8];

    /// Removes the first `length` bytes of [`Output::unsent`], which were sent.
    fn advance(&mut self, length: usize);
}

/// One connection of a server, as [`drive`](super::drive) moves its bytes.
pub trait Protocol: Output {
    /// The manner in which a connection is closed.
    type End;

    /// Takes in bytes that were read at `now`.
    fn take(&mut self, input: &[u8], now: Moment);

    /// The moment of the next response.
    fn due(&self) -> Option<Moment>;

    /// The number of the request whose head has begun and is not whole, if there is one.
    fn open_head(&self) -> Option<u64> {
        None
    }

    /// Returns true if so many responses wait that nothing more is to be read.
    fn is_full(&self) -> bool {
        false
    }

    /// Returns true if the connection is to be closed without sending the rest.
    fn is_cut(&self) -> bool {
        false
    }

    /// The manner of the close, once everything is sent; `None` while the connection goes on.
    fn end(&self) -> Option<Self::End>;

    /// Ends the connection, which the peer has closed.
    fn finish(&mut self);
}

/// Makes the protocols of a listener that serves HTTP/1.1 and HTTP/2 on the same port.
pub trait Versions {
    /// The manner in which a connection is closed.
    type End;
    /// HTTP/1.1.
    type Http1: Protocol<End = Self::End>;
    /// HTTP/2.
    type Http2: Protocol<End = Self::End>;

    /// A connection of HTTP/1.1.
    fn http1(&self) -> Self::Http1;

    /// A connection of HTTP/2.
    fn http2(&self) -> Self::Http2;

    /// Counts a connection that ended within its first bytes.
    fn count_cut(&self);
}

/// A connection of HTTP/1.1 or HTTP/2. Unless TLS has negotiated one of them, its first
/// bytes decide.
#[derive(Debug)]
pub enum Http<V: Versions> {
    /// Too few bytes to decide.
    Unknown(V, Vec<u8>),
    /// HTTP/1.1.
    Http1(V::Http1),
    /// HTTP/2.
    Http2(V::Http2),
}

impl<V: Versions> Http<V> {
    /// A connection whose first bytes decide.
    #[must_use]
    pub const fn new(versions: V) -> Self {
        Self::Unknown(versions, Vec::new())
    }
}

impl<V: Versions> Output for Http<V> {
    fn needs_filling(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(http) => http.needs_filling(),
            Self::Http2(http) => http.needs_filling(),
        }
    }

    fn fill(&mut self, now: Moment) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(http) => http.fill(now),
            Self::Http2(http) => http.fill(now),
        }
    }

    fn unsent(&self) -> &[u8] {
        match self {
            Self::Unknown(..) => &[],
            Self::Http1(http) => http.unsent(),
            Self::Http2(http) => http.unsent(),
        }
    }

    fn advance(&mut self, length: usize) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(http) => http.advance(length),
            Self::Http2(http) => http.advance(length),
        }
    }
}

impl<V: Versions> Protocol for Http<V> {
    type End = V::End;

    fn take(&mut self, input: &[u8], now: Moment) {
        match self {
            Self::Http1(http) => http.take(input, now),
            Self::Http2(http) => http.take(input, now),
            Self::Unknown(versions, seen) => {
                seen.extend_from_slice(input);
                let Some(is_http2) = is_http2(seen) else {
                    return;
                };
                let seen = std::mem::take(seen);
                *self = if is_http2 {
                    Self::Http2(versions.http2())
                } else {
                    Self::Http1(versions.http1())
                };
                self.take(&seen, now);
            }
        }
    }

    fn due(&self) -> Option<Moment> {
        match self {
            Self::Unknown(..) => None,
            Self::Http1(http) => http.due(),
            Self::Http2(http) => http.due(),
        }
    }

    fn open_head(&self) -> Option<u64> {
        match self {
            Self::Unknown(_, seen) => (!seen.is_empty()).then_some(0),
            Self::Http1(http) => http.open_head(),
            Self::Http2(http) => http.open_head(),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(http) => http.is_full(),
            Self::Http2(http) => http.is_full(),
        }
    }

    fn is_cut(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(http) => http.is_cut(),
            Self::Http2(http) => http.is_cut(),
        }
    }

    fn end(&self) -> Option<Self::End> {
        match self {
            Self::Unknown(..) => None,
            Self::Http1(http) => http.end(),
            Self::Http2(http) => http.end(),
        }
    }

    fn finish(&mut self) {
        match self {
            Self::Unknown(versions, seen) if !seen.is_empty() => versions.count_cut(),
            Self::Unknown(..) => {}
            Self::Http1(http) => http.finish(),
            Self::Http2(http) => http.finish(),
        }
    }
}
