//! Inputs and outputs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use stillwell_http::Target;
use stillwell_units::ParseError;

const ACCEPTED: &str = "`tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, `unixgram:///PATH`, \
                        `http://HOST:PORT/PATH`, `hec://HOST:PORT`, `grpc://HOST:PORT`, `tail:///FOLDER`, \
                        `file:///PATH` or `discard:`";

/// An input or an output; prints as it is typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// Nowhere: events are thrown away. For outputs only.
    Discard,
    /// HTTP/1.1 `POST`s of lines. As an input any path is answered.
    Http(Target),
    /// Splunk's HTTP event collector. The output sends lines and does not request
    /// acknowledgements.
    SplunkHec(Target),
    /// Unary gRPC calls, at `host:port`. For inputs only.
    Grpc(String),
    /// The files of a folder that end in `.log`, as they grow. For inputs only.
    Tail(PathBuf),
    /// Lines at the end of a file. For outputs only.
    File(PathBuf),
    /// Lines over TCP, at `host:port`.
    Tcp(String),
    /// Datagrams of lines over UDP, at `host:port`.
    Udp(String),
    /// Datagrams of lines over a Unix socket.
    UnixDatagram(PathBuf),
    /// Lines over a Unix socket.
    UnixStream(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discard => f.write_str("discard:"),
            Self::Http(target) => target.fmt(f),
            Self::SplunkHec(target) => write!(f, "hec://{}", target.dial_address()),
            Self::Grpc(address) => write!(f, "grpc://{address}"),
            Self::File(path) => write!(f, "file://{}", path.display()),
            Self::Tail(folder) => write!(f, "tail://{}", folder.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Udp(address) => write!(f, "udp://{address}"),
            Self::UnixDatagram(path) => write!(f, "unixgram://{}", path.display()),
            Self::UnixStream(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Returns true for an input that can refuse requests.
    pub(crate) const fn can_refuse(&self) -> bool {
        matches!(self, Self::Http(_) | Self::SplunkHec(_))
    }
}

impl FromStr for Endpoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let shape = || ParseError::Shape {
            input: text.to_owned(),
            kind: "relay endpoint",
            accepted: ACCEPTED,
        };
        if text == "discard:" {
            return Ok(Self::Discard);
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(shape)?;
        match scheme {
            "http" => text.parse().map(Self::Http).map_err(|_| shape()),
            "hec" if is_address(rest) => format!("http://{rest}/services/collector/raw")
                .parse()
                .map(Self::SplunkHec)
                .map_err(|_| shape()),
            "grpc" if is_address(rest) => Ok(Self::Grpc(rest.to_owned())),
            "file" if !rest.is_empty() => Ok(Self::File(rest.into())),
            "tail" if !rest.is_empty() => Ok(Self::Tail(rest.into())),
            "tcp" if is_address(rest) => Ok(Self::Tcp(rest.to_owned())),
            "udp" if is_address(rest) => Ok(Self::Udp(rest.to_owned())),
            "unix" if !rest.is_empty() => Ok(Self::UnixStream(rest.into())),
            "unixgram" if !rest.is_empty() => Ok(Self::UnixDatagram(rest.into())),
            _ => Err(shape()),
        }
    }
}

/// Returns true for a host, a colon and a port.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_print_as_they_are_typed() {
        for text in [
            "tcp://127.0.0.1:9100",
            "tcp://[::1]:0",
            "udp://localhost:514",
            "unix:///run/in.sock",
            "unixgram:///run/in.sock",
            "http://127.0.0.1:8080/in",
            "hec://127.0.0.1:8088",
            "grpc://127.0.0.1:4317",
            "tail:///run/logs",
            "file:///run/out.log",
            "discard:",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_error_lists_the_accepted_endpoints() {
        for text in [
            "",
            "tcp://",
            "tcp://host",
            "tcp://:1",
            "tcp://h:99999",
            "unix://",
            "ftp://a:1",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        assert_eq!(
            "9100".parse::<Endpoint>().unwrap_err().to_string(),
            "`9100` is not a relay endpoint: write `tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, \
             `unixgram:///PATH`, `http://HOST:PORT/PATH`, `hec://HOST:PORT`, `grpc://HOST:PORT`, \
             `tail:///FOLDER`, `file:///PATH` or `discard:`"
        );
    }
}
