//! The newest values as a page, and who serves it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillwell_http::{RequestEvent, RequestParser, write_response};
use stillwell_metric::{Kind, Labels, Sample, Value, lading_series};
use stillwell_scope::{PartError, Place, Scope, Token};
use stillwell_wire::{ListenError, Listener, SocketFile, Stream, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::export::PageAddress;

const CONTENT_TYPE: (&str, &str) = ("content-type", "text/plain; version=0.0.4");
/// Scrapers are served one after the other; none may take longer.
const SCRAPE_MAX: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 4096;
/// A head of a request is never nearly as long.
const REQUEST_BYTES_MAX: usize = 65_536;

/// The newest values of a run; a handle, of which all show the same.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    labels: Labels,
    text: Arc<Mutex<String>>,
}

impl Page {
    pub(crate) fn new(labels: Labels) -> Self {
        Self {
            labels,
            text: Arc::default(),
        }
    }

    /// Shows `samples` from now on, and nothing else.
    pub(crate) fn show(&self, samples: &[Sample]) {
        let text = render(samples, &self.labels);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        let text = self.text.lock();
        text.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The samples as Prometheus reads them (text format 0.0.4).
fn render(samples: &[Sample], everywhere: &Labels) -> String {
    let mut series: Vec<(String, Kind, Labels, String)> = Vec::new();
    for sample in samples {
        let (name, own) = lading_series(sample);
        let value = match &sample.value {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => plain(*value),
            Value::Histogram(_) => continue,
        };
        let labels = own
            .iter()
            .fold(everywhere.clone(), |all, (key, value)| all.with(key, value));
        series.push((allowed(name.as_str()), sample.kind, labels, value));
    }
    // A metric's series stand together, under its type.
    series.sort_by(|one, other| (&one.0, &one.2).cmp(&(&other.0, &other.2)));
    let mut text = String::new();
    let mut last = String::new();
    for (name, kind, labels, value) in series {
        if name != last {
            put(&mut text, format_args!("# TYPE {name} {}\n", kind.name()));
            last.clone_from(&name);
        }
        put(
            &mut text,
            format_args!("{name}{} {value}\n", braced(&labels)),
        );
    }
    text
}

/// Writing to a string cannot fail.
fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).unwrap_or_default();
}

fn plain(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    match (value.is_infinite(), value > 0.0) {
        (true, true) => "+Inf".to_owned(),
        (true, false) => "-Inf".to_owned(),
        (false, _) => value.to_string(),
    }
}

/// `name` with what may not stand in one replaced.
fn allowed(name: &str) -> String {
    let replace = |c: char| {
        if c.is_ascii_alphanumeric() || c == ':' {
            c
        } else {
            '_'
        }
    };
    let text: String = name.chars().map(replace).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{text}");
    }
    text
}

fn braced(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            format!("{}=\"{value}\"", allowed(key).replace(':', "_"))
        })
        .collect();
    if pairs.is_empty() {
        return String::new();
    }
    format!("{{{}}}", pairs.join(","))
}

/// Why a page is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error("serve the page for Prometheus")]
    Listen(#[source] ListenError),
    #[error("serve the page for Prometheus")]
    Thread(#[source] std::io::Error),
}

/// Serves `page` at `address` until the scope ends.
pub(crate) fn serve(
    page: Page,
    address: &PageAddress,
    scope: &mut Scope,
    place: Place,
) -> Result<(), PageError> {
    enum Socket {
        Tcp(std::net::TcpListener),
        Unix(std::os::unix::net::UnixListener, Option<SocketFile>),
    }
    let socket = match address {
        PageAddress::Tcp(address) => listen::tcp(*address).map(Socket::Tcp),
        PageAddress::Unix(path) => {
            listen::unix_stream(path).map(|socket| Socket::Unix(socket, SocketFile::at(path)))
        }
    };
    let socket = socket.map_err(PageError::Listen)?;
    scope
        .worker(place, "page", move |token| async move {
            let (listener, _file) = match socket {
                Socket::Tcp(socket) => (Listener::tcp(socket)?, None),
                Socket::Unix(socket, file) => (Listener::unix(socket)?, file),
            };
            answer_all(&page, &listener, &token).await
        })
        .map_err(PageError::Thread)
}

async fn answer_all(page: &Page, listener: &Listener, token: &Token) -> Result<(), PartError> {
    loop {
        let accepted = std::future::poll_fn(|context| listener.poll_accept(context));
        let stream = tokio::select! {
            // Both are cancel-safe.
            () = token.cancelled() => return Ok(()),
            accepted = accepted => accepted,
        };
        // A connection that has gone is its scraper's loss.
        let Ok(stream) = stream else { continue };
        tokio::select! {
            // What is cut off here is one answer, when the run is over.
            () = token.cancelled() => return Ok(()),
            answered = timeout(SCRAPE_MAX, answer(page, stream)) => {
                answered.unwrap_or(Ok(())).unwrap_or_default();
            }
        }
    }
}

/// Answers one request with the page.
async fn answer(page: &Page, mut stream: Stream) -> std::io::Result<()> {
    let mut parser = RequestParser::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut seen = 0;
    let mut waiting = Vec::new();
    loop {
        let count = stream.read(&mut buffer).await?;
        seen += count;
        if count == 0 || seen > REQUEST_BYTES_MAX {
            return Ok(());
        }
        waiting.extend_from_slice(&buffer[..count]);
        loop {
            let mut out = Vec::new();
            let Ok((consumed, event)) = parser.advance(&waiting) else {
                write(400, &[], b"", &mut out);
                return stream.write_all(&out).await;
            };
            let is_end = matches!(event, Some(RequestEvent::End));
            let is_over = event.is_none();
            waiting.drain(..consumed);
            if is_end {
                write(200, &[CONTENT_TYPE], page.text().as_bytes(), &mut out);
                return stream.write_all(&out).await;
            }
            if is_over {
                break;
            }
        }
    }
}

/// Writes an answer that is the last of its connection.
fn write(status: u16, headers: &[(&str, &str)], body: &[u8], out: &mut Vec<u8>) {
    let headers: Vec<(&str, &str)> = [headers, &[("connection", "close")]].concat();
    // Headers of our own can always be written.
    write_response(status, &headers, body, out).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use stillwell_metric::catalogue as metric;

    use super::*;

    #[test]
    fn the_page_is_prometheus_text_in_ladings_words() {
        let labels = Labels::none()
            .with("component", "sink")
            .with("component_name", "http")
            .with("id", "a\"b\\c");
        let scraped = Sample {
            name: stillwell_metric::SeriesName::scraped("up.time-s"),
            kind: Kind::Gauge,
            labels: Labels::none(),
            value: Value::Float(f64::INFINITY),
        };
        let samples = [
            Sample::int(metric::MESSAGES_RECEIVED, &labels, 7),
            scraped,
            Sample::int(metric::SUBJECT_RSS, &Labels::none(), 4096),
        ];
        let text = render(&samples, &Labels::none().with("lab", "x"));
        assert_eq!(
            text,
            "# TYPE requests_received counter\n\
             requests_received{component=\"blackhole\",component_name=\"http\",id=\"a\\\"b\\\\c\",lab=\"x\"} 7\n\
             # TYPE target_up_time_s gauge\n\
             target_up_time_s{lab=\"x\"} +Inf\n\
             # TYPE total_rss_bytes gauge\n\
             total_rss_bytes{focus=\"target\",lab=\"x\"} 4096\n"
        );
    }

    #[test]
    fn names_begin_with_a_letter() {
        assert_eq!(allowed("9to5"), "_9to5");
        assert_eq!(
            allowed("cgroup.v2.memory/current"),
            "cgroup_v2_memory_current"
        );
    }
}
