//! One stats sink.

use std::io;
use std::sync::Arc;

use stillwell_export::{Origin, Page, Statsd, otlp_metrics, otlp_rejected, remote_write};
use stillwell_plan::{Alpn, StatsProtocol, StatsSinkPlan};
use stillwell_scope::explain;
use stillwell_units::Nanos;
use stillwell_wire::dial;
use stillwell_wire::tls::ClientTls;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Board;
use super::account::Account;
use super::post::Receiver;

/// How long one telling may take.
const TELL_MAX: Nanos = Nanos::from_secs(2);
/// How often the last page is tried.
const LAST_TRIES: u32 = 3;
/// Between these.
const LAST_PAUSE: Nanos = Nanos::from_millis(200);

/// What is sent to OpenTelemetry's receivers of metrics.
const OTLP_METHOD: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// One stats sink, and how far it has been told.
#[derive(Debug)]
pub(super) struct Sink {
    account: Arc<Account>,
    origin: Arc<Origin>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    StatsdDatagrams {
        statsd: Statsd,
        address: String,
        socket: Option<UdpSocket>,
    },
    StatsdStream {
        statsd: Statsd,
        address: String,
        stream: Option<TcpStream>,
    },
    OtlpHttp(Receiver),
    OtlpGrpc(Receiver),
    RemoteWrite(Receiver),
}

impl Sink {
    pub(super) fn new(plan: &StatsSinkPlan, origin: &Arc<Origin>, tls: &ClientTls) -> Self {
        let statsd = |tags| Statsd::new(&plan.prefix, tags, Statsd::DATAGRAM_BYTES_MAX);
        let receiver = |alpn| Receiver::new(&plan.receiver, tls, alpn);
        let address = plan.receiver.address.clone();
        let datagrams = |statsd, address| Way::StatsdDatagrams {
            statsd,
            address,
            socket: None,
        };
        let way = match plan.protocol {
            StatsProtocol::Statsd => datagrams(statsd(None), address),
            StatsProtocol::Dogstatsd => datagrams(statsd(Some(&origin.labels)), address),
            StatsProtocol::StatsdTcp => Way::StatsdStream {
                statsd: statsd(None),
                address,
                stream: None,
            },
            StatsProtocol::OtlpHttp => Way::OtlpHttp(receiver(Alpn::Http1)),
            StatsProtocol::OtlpGrpc => Way::OtlpGrpc(receiver(Alpn::Http2)),
            StatsProtocol::RemoteWrite => Way::RemoteWrite(receiver(Alpn::Http1)),
        };
        Self {
            account: Arc::new(Account::new(&plan.name)),
            origin: Arc::clone(origin),
            way,
        }
    }

    pub(super) const fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Tells every page that is due, until the last.
    pub(super) async fn run(mut self, mut board: watch::Receiver<Board>) {
        let mut seen = 0;
        loop {
            let next = board.wait_for(|board| board.flush > seen).await;
            let Ok(next) = next.map(|board| Board::clone(&board)) else {
                return;
            };
            seen = next.flush;
            let Some(page) = next.page else {
                continue;
            };
            let mut told = self.tell_in_time(&page).await;
            for _ in 1..LAST_TRIES {
                if !next.is_last || told.is_ok() {
                    break;
                }
                self.account.note(told, false);
                sleep(LAST_PAUSE.as_duration()).await;
                told = self.tell_in_time(&page).await;
            }
            self.account.note(told, next.is_last);
            if next.is_last {
                return;
            }
        }
    }

    async fn tell_in_time(&mut self, page: &Page) -> Result<(), String> {
        let told = timeout(TELL_MAX.as_duration(), self.tell(page)).await;
        told.unwrap_or_else(|_| Err(format!("it takes longer than {TELL_MAX}")))
    }

    async fn tell(&mut self, page: &Page) -> Result<(), String> {
        let origin = &self.origin;
        match &mut self.way {
            Way::StatsdDatagrams {
                statsd,
                address,
                socket,
            } => {
                let told = datagrams(statsd, address, socket, page).await;
                told.inspect_err(|_| *socket = None)
            }
            Way::StatsdStream {
                statsd,
                address,
                stream,
            } => {
                let told = lines(statsd, address, stream, page).await;
                told.inspect_err(|_| *stream = None)
            }
            Way::OtlpHttp(receiver) => {
                let body = otlp_metrics(origin, page);
                let headers = [("content-type", "application/x-protobuf")];
                taken(&receiver.post(&headers, &body).await?)
            }
            Way::OtlpGrpc(receiver) => {
                let message = otlp_metrics(origin, page);
                taken(&receiver.call(OTLP_METHOD, &message).await?)
            }
            Way::RemoteWrite(receiver) => {
                let headers = [
                    ("content-type", "application/x-protobuf"),
                    ("content-encoding", "snappy"),
                    ("x-prometheus-remote-write-version", "0.1.0"),
                ];
                receiver.post(&headers, &remote_write(origin, page)).await?;
                Ok(())
            }
        }
    }
}

/// Whether a receiver of OpenTelemetry took all of it.
pub(super) fn taken(answer: &[u8]) -> Result<(), String> {
    match otlp_rejected(answer) {
        None => Ok(()),
        Some((rejected, why)) => Err(format!("it rejects {rejected} of them: {why}")),
    }
}

async fn datagrams(
    statsd: &mut Statsd,
    address: &str,
    socket: &mut Option<UdpSocket>,
    page: &Page,
) -> Result<(), String> {
    let socket = match socket {
        Some(socket) => socket,
        None => {
            let any = if address.starts_with('[') {
                "[::]:0"
            } else {
                "0.0.0.0:0"
            };
            let opened = dial::udp(any, address).await;
            socket.insert(opened.map_err(|error| explain(&error))?)
        }
    };
    for datagram in statsd.datagrams(page) {
        let sent = socket.send(&datagram.bytes).await;
        // Where nobody listens the kernel may know at once.
        let refused = socket.take_error().ok().flatten();
        sent.and_then(|_| refused.map_or(Ok(()), Err))
            .map_err(|error| unsent(address, &error))?;
        statsd.told(page, &datagram);
    }
    Ok(())
}

async fn lines(
    statsd: &mut Statsd,
    address: &str,
    stream: &mut Option<TcpStream>,
    page: &Page,
) -> Result<(), String> {
    let stream = match stream {
        Some(stream) => stream,
        None => {
            let opened = dial::tcp(address).await;
            stream.insert(opened.map_err(|error| explain(&error))?)
        }
    };
    for lines in statsd.datagrams(page) {
        let written = stream.write_all(&lines.bytes).await;
        written.map_err(|error| unsent(address, &error))?;
        statsd.told(page, &lines);
    }
    Ok(())
}

fn unsent(address: &str, error: &io::Error) -> String {
    format!("send to {address}: {error}")
}
