//! Input and output addresses of a target, one word each.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use stillwell_plan::SinkProtocol;
use stillwell_plan::sink::SinkBody;
use stillwell_text::{check_address, check_url};
use stillwell_units::{Nanos, ParseError};

const ACCEPTED: &str = "`tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, `unixgram:///PATH`, \
                        `http://HOST:PORT/PATH`, `hec://HOST:PORT` or `file:///PATH`";

/// Connections that a sink serves at once.
const CONNECTIONS_MAX: u32 = 1024;

/// Input or output address of a target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BenchEndpoint {
    /// Lines over TCP, at `host:port`.
    Tcp(String),
    /// Datagrams over UDP, at `host:port`.
    Udp(String),
    /// Lines over a Unix socket.
    UnixStream(PathBuf),
    /// Datagrams over a Unix socket.
    UnixDatagram(PathBuf),
    /// Requests over HTTP/1.1, at this URL.
    Http(String),
    /// Splunk's HTTP event collector, at this `host:port`. Only to go in.
    SplunkHec(String),
    /// The end of a file.
    File(PathBuf),
}

impl FromStr for BenchEndpoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let shape = || ParseError::Shape {
            input: text.to_owned(),
            kind: "bench endpoint",
            accepted: ACCEPTED,
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(shape)?;
        let address = || match check_address(rest) {
            Ok((_, port)) if port > 0 => Ok(rest.to_owned()),
            _ => Err(shape()),
        };
        let path = || match rest.starts_with('/') && rest.len() > 1 {
            true => Ok(PathBuf::from(rest)),
            false => Err(shape()),
        };
        match scheme {
            "tcp" => address().map(Self::Tcp),
            "udp" => address().map(Self::Udp),
            "unix" => path().map(Self::UnixStream),
            "unixgram" => path().map(Self::UnixDatagram),
            "http" if check_url(text).is_ok() => Ok(Self::Http(text.to_owned())),
            "hec" => address().map(Self::SplunkHec),
            "file" => path().map(Self::File),
            _ => Err(shape()),
        }
    }
}

impl BenchEndpoint {
    /// Returns the sink for events that a target sends there.
    ///
    /// # Errors
    /// The error is the text to write instead.
    pub(super) fn sink(&self) -> Result<SinkProtocol, String> {
        Ok(match self {
            Self::Tcp(address) => SinkProtocol::Tcp {
                address: bound(address)?,
            },
            Self::Udp(address) => SinkProtocol::Udp {
                address: bound(address)?,
            },
            Self::UnixStream(path) => SinkProtocol::UnixStream { path: path.clone() },
            Self::UnixDatagram(path) => SinkProtocol::UnixDatagram { path: path.clone() },
            Self::Http(url) => SinkProtocol::Http {
                address: bound(&check_url(url)?)?,
                status: 200,
                headers: Vec::new(),
                body: SinkBody::Empty,
                delay: Nanos::ZERO,
                connections_max: CONNECTIONS_MAX,
            },
            Self::SplunkHec(address) => {
                return Err(format!("let the target send to `http://{address}/`"));
            }
            Self::File(path) => SinkProtocol::File { path: path.clone() },
        })
    }

    /// Returns true if each event needs a separate message.
    pub(super) const fn is_datagrams(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::UnixDatagram(_))
    }

    /// Returns true for a socket that carries only the sent bytes.
    pub(super) const fn is_socket(&self) -> bool {
        matches!(
            self,
            Self::Tcp(_) | Self::Udp(_) | Self::UnixStream(_) | Self::UnixDatagram(_)
        )
    }

    /// Returns true if requests to it have responses.
    pub(super) const fn is_answered(&self) -> bool {
        matches!(self, Self::Http(_) | Self::SplunkHec(_))
    }
}

/// Address to listen at: a name can have several addresses.
fn bound(address: &str) -> Result<SocketAddr, String> {
    let named = address.replace("localhost", "127.0.0.1");
    named
        .parse()
        .map_err(|_| "a sink listens at an IP address, such as `127.0.0.1:9200`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let path = PathBuf::from("/run/in");
        for (text, expected) in [
            ("tcp://[::1]:9", BenchEndpoint::Tcp("[::1]:9".to_owned())),
            ("udp://h:1", BenchEndpoint::Udp("h:1".to_owned())),
            ("unix:///run/in", BenchEndpoint::UnixStream(path.clone())),
            (
                "unixgram:///run/in",
                BenchEndpoint::UnixDatagram(path.clone()),
            ),
            ("file:///run/in", BenchEndpoint::File(path)),
            (
                "hec://h:8088",
                BenchEndpoint::SplunkHec("h:8088".to_owned()),
            ),
            (
                "http://h:1/in",
                BenchEndpoint::Http("http://h:1/in".to_owned()),
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "9100",
            "tcp://",
            "tcp://h",
            "tcp://h:0",
            "unix://",
            "file://",
            "https://h:1/",
        ] {
            assert!(text.parse::<BenchEndpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn sinks_listen_at_addresses() {
        let sink = |text: &str| text.parse::<BenchEndpoint>().unwrap().sink();
        assert!(sink("tcp://localhost:9200").is_ok());
        assert!(sink("http://127.0.0.1:9200/x").is_ok());
        assert!(
            sink("tcp://elsewhere:9200")
                .unwrap_err()
                .contains("IP address")
        );
        assert!(sink("hec://127.0.0.1:1").unwrap_err().contains("http://"));
    }
}
