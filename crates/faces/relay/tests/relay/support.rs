//! A relay that runs, and the sockets at its ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use stillwell_relay::{BoundRelay, Endpoint, RelayOptions, RelayReport, bind};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;

/// Longer than anything takes here; a test that reaches it has failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct RunningRelay {
    scope: Scope,
    stop: Token,
    report: Receiver<RelayReport>,
    input: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
}

pub(crate) fn options(input: &str, output: &str) -> RelayOptions {
    RelayOptions::new(input.parse().unwrap(), output.parse().unwrap())
}

pub(crate) fn run(options: RelayOptions) -> RunningRelay {
    run_bound(bind(options).unwrap())
}

pub(crate) fn run_bound(bound: BoundRelay) -> RunningRelay {
    let (input, metrics) = (bound.input_address(), bound.metrics_address());
    let stop = Token::new();
    // The test ends the relay, not the scope.
    let mut scope = Scope::new(&Token::new());
    let (sender, report) = sync_channel(1);
    let token = stop.clone();
    let body = move |_: &Token| {
        sender.send(bound.run(&token)?)?;
        Ok(())
    };
    scope
        .thread(Place::default(), "relay-under-test", body)
        .unwrap();
    RunningRelay {
        scope,
        stop,
        report,
        input,
        metrics,
    }
}

impl RunningRelay {
    pub(crate) fn input(&self) -> SocketAddr {
        self.input.unwrap()
    }

    pub(crate) fn metrics(&self) -> SocketAddr {
        self.metrics.unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.input()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Cancels its token without waiting for the end.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Cancels its token and waits; fails the test where it failed.
    pub(crate) fn end(self) -> RelayReport {
        self.stop.cancel();
        let report = self.report.recv_timeout(TIMEOUT).unwrap();
        for end in self.scope.close(Nanos::from_secs(10)) {
            end.result.unwrap();
        }
        assert_eq!(report.events_in, report.events_out + report.events_dropped);
        report
    }
}

/// An output: collects all that comes over one connection.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    bytes: Receiver<Vec<u8>>,
    _scope: Scope,
}

pub(crate) fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    (listener, endpoint)
}

pub(crate) fn collect() -> Collector {
    let (listener, endpoint) = listener();
    let mut scope = Scope::new(&Token::new());
    let (sender, bytes) = sync_channel(1);
    let body = move |_: &Token| {
        let mut bytes = Vec::new();
        listener.accept()?.0.read_to_end(&mut bytes)?;
        sender.send(bytes)?;
        Ok(())
    };
    scope.thread(Place::default(), "collector", body).unwrap();
    Collector {
        endpoint,
        bytes,
        _scope: scope,
    }
}

impl Collector {
    /// All that came, once the relay has closed the connection.
    pub(crate) fn all(self) -> Vec<u8> {
        self.bytes.recv_timeout(TIMEOUT).unwrap()
    }
}

/// Collects the datagrams that come to a Unix socket.
pub(crate) struct DatagramCollector {
    path: std::path::PathBuf,
    datagrams: Receiver<Vec<Vec<u8>>>,
    _scope: Scope,
}

const LAST: &[u8] = b"this is the last one";

pub(crate) fn collect_datagrams(path: &std::path::Path) -> DatagramCollector {
    let socket = UnixDatagram::bind(path).unwrap();
    let mut scope = Scope::new(&Token::new());
    let (sender, datagrams) = sync_channel(1);
    let body = move |_: &Token| {
        let mut all = Vec::new();
        loop {
            let mut buffer = vec![0; 1000];
            let length = socket.recv(&mut buffer)?;
            buffer.truncate(length);
            if buffer == LAST {
                break;
            }
            all.push(buffer);
        }
        sender.send(all)?;
        Ok(())
    };
    scope.thread(Place::default(), "collector", body).unwrap();
    DatagramCollector {
        path: path.to_owned(),
        datagrams,
        _scope: scope,
    }
}

impl DatagramCollector {
    /// All that came up to now.
    pub(crate) fn all(self) -> Vec<Vec<u8>> {
        let socket = UnixDatagram::unbound().unwrap();
        socket.send_to(LAST, &self.path).unwrap();
        self.datagrams.recv_timeout(TIMEOUT).unwrap()
    }
}

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = stillwell_relay::spin(3, self.0);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// `count` numbered lines of different lengths, empty ones among them.
pub(crate) fn lines(count: usize) -> Vec<u8> {
    let mut numbers = Numbers(7);
    let mut bytes = Vec::new();
    for index in 0..count {
        if !index.is_multiple_of(97) {
            write!(bytes, "{index} ").unwrap();
            bytes.resize(bytes.len() + numbers.below(60), b'x');
        }
        bytes.push(b'\n');
    }
    bytes
}

/// Writes `bytes` in pieces of random length.
pub(crate) fn send_in_pieces(bytes: &[u8], piece_bytes_max: usize, stream: &mut impl Write) {
    let mut numbers = Numbers(11);
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = (1 + numbers.below(piece_bytes_max)).min(rest.len());
        stream.write_all(&rest[..length]).unwrap();
        rest = &rest[length..];
    }
}

/// Closes our side and waits until the relay has taken everything in.
pub(crate) fn finish(mut stream: TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

/// One HTTP client or server's connection, by hand.
pub(crate) struct Connection(pub(crate) BufReader<TcpStream>);

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn post(&mut self, body: &str) -> u16 {
        let length = body.len();
        self.send(&format!(
            "POST /in HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
        self.status()
    }

    pub(crate) fn status(&mut self) -> u16 {
        let (head, _) = self.message().unwrap();
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Head and body of the next message; `None` where the peer has closed.
    pub(crate) fn message(&mut self) -> Option<(String, String)> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).unwrap() == 0 {
                assert_eq!(head, "");
                return None;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Some((head, String::from_utf8(body).unwrap()))
    }
}

pub(crate) fn endpoint_of(scheme: &str, path: &std::path::Path) -> String {
    let text = format!("{scheme}://{}", path.display());
    assert!(text.parse::<Endpoint>().is_ok());
    text
}
