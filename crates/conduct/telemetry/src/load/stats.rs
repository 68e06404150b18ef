//! Export of metrics to one stats receiver.

use std::io;
use std::sync::Arc;

use stillwell_plan::load::{StatsProtocol, StatsSinkPlan, StatsdNamesPlan};
use stillwell_plan::tls::Alpn;
use stillwell_scope::explain;
use stillwell_units::Nanos;
use stillwell_wire::dial;
use stillwell_wire::tls::ClientTls;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::counts::ExportCounts;
use super::receiver::Receiver;
use crate::format::otlp::{otlp_metrics, otlp_rejected};
use crate::format::page::{MetricsPage, Origin};
use crate::format::remote_write::remote_write;
use crate::format::statsd::Statsd;
use crate::published::Published;

/// Timeout of one export.
const EXPORT_MAX: Nanos = Nanos::from_secs(2);
/// Number of attempts to export the last page.
const LAST_TRIES: u32 = 3;
/// Pause between these attempts.
const LAST_PAUSE: Nanos = Nanos::from_millis(200);
/// Number of reads before a flush over TCP; a receiver of statsd has nothing to send.
const READS_MAX: usize = 16;

/// The gRPC method of OpenTelemetry's metrics receivers.
const OTLP_METHOD: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// Exports metrics to one stats receiver.
#[derive(Debug)]
pub(super) struct StatsExporter {
    counts: Arc<ExportCounts>,
    origin: Arc<Origin>,
    connection: StatsConnection,
}

#[derive(Debug)]
enum StatsConnection {
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

impl StatsExporter {
    pub(super) fn new(
        plan: &StatsSinkPlan,
        names: Option<&StatsdNamesPlan>,
        origin: &Arc<Origin>,
        tls: &ClientTls,
    ) -> Self {
        let statsd =
            |tags| Statsd::new(&plan.prefix, tags, Statsd::DATAGRAM_BYTES_MAX).named(names);
        let receiver = |alpn| Receiver::new(&plan.receiver, tls, alpn);
        let address = plan.receiver.address.clone();
        let datagrams = |statsd, address| StatsConnection::StatsdDatagrams {
            statsd,
            address,
            socket: None,
        };
        let connection = match plan.protocol {
            StatsProtocol::Statsd => datagrams(statsd(None), address),
            StatsProtocol::Dogstatsd => datagrams(statsd(Some(&origin.labels)), address),
            StatsProtocol::StatsdTcp => StatsConnection::StatsdStream {
                statsd: statsd(None),
                address,
                stream: None,
            },
            StatsProtocol::OtlpHttp => StatsConnection::OtlpHttp(receiver(Alpn::Http1)),
            StatsProtocol::OtlpGrpc => StatsConnection::OtlpGrpc(receiver(Alpn::Http2)),
            StatsProtocol::RemoteWrite => StatsConnection::RemoteWrite(receiver(Alpn::Http1)),
        };
        Self {
            counts: Arc::new(ExportCounts::new(&plan.name)),
            origin: Arc::clone(origin),
            connection,
        }
    }

    pub(super) const fn counts(&self) -> &Arc<ExportCounts> {
        &self.counts
    }

    /// Exports the due pages of each flush, until the last.
    pub(super) async fn run(mut self, mut published: watch::Receiver<Published>) {
        // Pages of a flush that failed are exported with the next one.
        let (mut seen, mut exported_until) = (0, 0);
        loop {
            let next = published.wait_for(|published| published.flush > seen).await;
            let Ok(next) = next.map(|published| Published::clone(&published)) else {
                return;
            };
            let pages = next.due_after(exported_until);
            seen = next.flush;
            if pages.is_empty() {
                // Runs that have recorded nothing have no page in the end: nothing is missing.
                if next.is_last {
                    self.counts.mark_complete();
                    return;
                }
                continue;
            }
            let mut exported = self.export_in_time(&pages).await;
            for _ in 1..LAST_TRIES {
                if !next.is_last || exported.is_ok() {
                    break;
                }
                self.counts.count(exported, false);
                sleep(LAST_PAUSE.as_duration()).await;
                exported = self.export_in_time(&pages).await;
            }
            if exported.is_ok() {
                exported_until = next.flush;
            }
            self.counts.count(exported, next.is_last);
            if next.is_last {
                return;
            }
        }
    }

    async fn export_in_time(&mut self, pages: &[Arc<MetricsPage>]) -> Result<(), String> {
        let exported = timeout(EXPORT_MAX.as_duration(), self.export(pages)).await;
        exported.unwrap_or_else(|_| {
            // A line may be cut: what follows needs a new connection.
            if let StatsConnection::StatsdStream { stream, .. } = &mut self.connection {
                *stream = None;
            }
            Err(format!("it takes longer than {EXPORT_MAX}"))
        })
    }

    async fn export(&mut self, pages: &[Arc<MetricsPage>]) -> Result<(), String> {
        let origin = &self.origin;
        match &mut self.connection {
            StatsConnection::StatsdDatagrams {
                statsd,
                address,
                socket,
            } => {
                let sent = send_datagrams(statsd, address, socket, pages).await;
                sent.inspect_err(|_| *socket = None)
            }
            StatsConnection::StatsdStream {
                statsd,
                address,
                stream,
            } => {
                let sent = send_lines(statsd, address, stream, pages).await;
                sent.inspect_err(|_| *stream = None)
            }
            StatsConnection::OtlpHttp(receiver) => {
                let body = otlp_metrics(origin, pages);
                let headers = [("content-type", "application/x-protobuf")];
                check_accepted(&receiver.post(&headers, &body).await?)
            }
            StatsConnection::OtlpGrpc(receiver) => {
                let message = otlp_metrics(origin, pages);
                check_accepted(&receiver.call(OTLP_METHOD, &message).await?)
            }
            StatsConnection::RemoteWrite(receiver) => {
                let headers = [
                    ("content-type", "application/x-protobuf"),
                    ("content-encoding", "snappy"),
                    ("x-prometheus-remote-write-version", "0.1.0"),
                ];
                let body = remote_write(origin, pages);
                receiver.post(&headers, &body).await?;
                Ok(())
            }
        }
    }
}

/// Fails if an OpenTelemetry receiver rejected a part.
pub(super) fn check_accepted(response: &[u8]) -> Result<(), String> {
    match otlp_rejected(response) {
        None => Ok(()),
        Some((rejected, why)) => Err(format!("it rejects {rejected} of them: {why}")),
    }
}

async fn send_datagrams(
    statsd: &mut Statsd,
    address: &str,
    socket: &mut Option<UdpSocket>,
    pages: &[Arc<MetricsPage>],
) -> Result<(), String> {
    let socket = match socket {
        Some(socket) => socket,
        None => {
            let opened = dial::udp("0.0.0.0:0", address).await;
            socket.insert(opened.map_err(|error| explain(&error))?)
        }
    };
    // Only a load exports to statsd, and it has one page.
    for page in pages {
        for datagram in statsd.datagrams(page) {
            let sent = socket.send(&datagram.bytes).await;
            // The kernel may report at once that no socket listens there.
            let refused = socket.take_error().ok().flatten();
            sent.and_then(|_| refused.map_or(Ok(()), Err))
                .map_err(|error| send_error(address, &error))?;
            statsd.mark_sent(page, &datagram);
        }
    }
    Ok(())
}

async fn send_lines(
    statsd: &mut Statsd,
    address: &str,
    stream: &mut Option<TcpStream>,
    pages: &[Arc<MetricsPage>],
) -> Result<(), String> {
    // The first write to it would succeed and be lost.
    if stream.as_ref().is_some_and(has_ended) {
        *stream = None;
    }
    let stream = match stream {
        Some(stream) => stream,
        None => {
            let opened = dial::tcp(address).await;
            stream.insert(opened.map_err(|error| explain(&error))?)
        }
    };
    for page in pages {
        for lines in statsd.datagrams(page) {
            let written = stream.write_all(&lines.bytes).await;
            written.map_err(|error| send_error(address, &error))?;
            statsd.mark_sent(page, &lines);
        }
    }
    Ok(())
}

/// Returns true if the receiver has closed the connection. Discards bytes that it sent.
fn has_ended(stream: &TcpStream) -> bool {
    let mut discarded = [0; 1024];
    for _ in 0..READS_MAX {
        match stream.try_read(&mut discarded) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
    false
}

fn send_error(address: &str, error: &io::Error) -> String {
    format!("send to {address}: {error}")
}

#[cfg(test)]
mod tests {
    use stillwell_plan::load::ReceiverPlan;
    use stillwell_plan::tls::ClientTlsPlan;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::format::fixture;

    /// A warning said that the final totals were not exported.
    #[tokio::test]
    async fn the_export_of_runs_without_a_page_is_complete() {
        let address = "127.0.0.1:1".to_owned();
        let plan = StatsSinkPlan {
            name: format!("otlp+http://{address}"),
            protocol: StatsProtocol::OtlpHttp,
            receiver: ReceiverPlan {
                address: address.clone(),
                tls_host: None,
                authority: address,
                path: "/".to_owned(),
            },
            prefix: String::new(),
        };
        let tls = ClientTls::new(&ClientTlsPlan::default()).unwrap();
        let origin = Arc::new(fixture::origin());
        let exporter = StatsExporter::new(&plan, None, &origin, &tls);
        let counts = Arc::clone(exporter.counts());
        let published = watch::Sender::new(Published::default());
        let writer = Published::add_writer(&published);
        published.send_modify(|published| published.end(writer));
        published.send_modify(Published::finish);
        exporter.run(published.subscribe()).await;
        let result = counts.stats_result();
        assert!(result.is_complete, "{result:?}");
        assert_eq!((result.flushes, result.failures), (0, 0));
    }

    /// The kernel took the lines of the next flush, and no program read them.
    #[tokio::test]
    async fn lines_go_over_a_new_connection_after_the_receiver_closed_the_last_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut statsd = Statsd::new("", None, Statsd::DATAGRAM_BYTES_MAX);
        let (mut stream, mut last) = (None, None);
        // A page has twice its count of sent requests; the second has 4 more.
        for (count, expected) in [(1, "requests_sent:2|c\n"), (3, "requests_sent:4|c\n")] {
            let pages = [Arc::new(fixture::page(count))];
            let sent = send_lines(&mut statsd, &address, &mut stream, &pages).await;
            assert_eq!(sent, Ok(()));
            let opened = stream.as_ref().unwrap();
            let local = opened.local_addr().ok();
            assert_ne!(local, last);
            last = local;
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut line = vec![0; expected.len()];
            peer.read_exact(&mut line).await.unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), expected);
            peer.shutdown().await.unwrap();
            // Its end has arrived.
            opened.readable().await.unwrap();
        }
    }
}
