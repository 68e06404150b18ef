//! A server of one request per connection, for APIs of tests.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

/// A request to the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiRequest {
    /// Method and path, as `POST /api/v1/nodes`.
    pub method_and_path: String,
    /// The value of `Authorization` or `Private-Token`, or empty.
    pub authorization: String,
    /// The body, or empty.
    pub body: String,
}

impl ApiRequest {
    /// Receives a request of HTTP/1.1 from `peer`; `None` if the peer ends before it is complete.
    ///
    /// # Errors
    /// That of a read.
    pub fn receive(peer: &mut impl Read) -> io::Result<Option<Self>> {
        read_until(peer, Self::read)
    }

    /// Reads a request of HTTP/1.1; `None` if it is incomplete.
    pub(crate) fn read(request: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(request);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let header = |wanted: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let line = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            line.map(|(_, value)| value)
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        if body.len() < length.unwrap_or(0) {
            return None;
        }
        let token = header("authorization").or_else(|| header("private-token"));
        let line = head.lines().next().unwrap_or_default();
        Some(Self {
            method_and_path: line.trim_end_matches(" HTTP/1.1").to_owned(),
            authorization: token.unwrap_or_default().to_owned(),
            body: body.to_owned(),
        })
    }
}

/// Returns a URL on loopback and a function that serves it until the process ends: `respond` returns the response
/// to the bytes of a request, or `None` while they are incomplete.
pub(crate) fn listen(
    respond: impl Fn(&[u8]) -> Option<String> + Send,
) -> (String, impl FnOnce() + Send) {
    let listener = TcpListener::bind("127.0.0.1:0");
    let listener = listener.unwrap_or_else(|error| panic!("listen on loopback: {error}"));
    let address = listener.local_addr();
    let address = address.unwrap_or_else(|error| panic!("where it listens: {error}"));
    let serve = move || {
        while let Ok((peer, _)) = listener.accept() {
            // The server ignores errors of a connection.
            serve_connection(peer, &respond).unwrap_or_default();
        }
    };
    (format!("http://{address}"), serve)
}

fn serve_connection(
    mut peer: TcpStream,
    respond: &impl Fn(&[u8]) -> Option<String>,
) -> io::Result<()> {
    match read_until(&mut peer, respond)? {
        Some(response) => peer.write_all(response.as_bytes()),
        None => Ok(()),
    }
}

/// Reads until `parse` returns a value of all bytes so far; `None` if `peer` ends before.
fn read_until<T>(
    peer: &mut impl Read,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = peer.read(&mut buffer)?;
        if length == 0 {
            return Ok(None);
        }
        read.extend_from_slice(&buffer[..length]);
        if let Some(value) = parse(&read) {
            return Ok(Some(value));
        }
    }
}

/// Returns a response with a body of JSON; `headers` end with a line break each.
pub(crate) fn json_response(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Any\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         {headers}\r\n{body}"
    )
}
