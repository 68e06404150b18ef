//! The newest values as a page, and who serves it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillwell_export::{PROMETHEUS_TEXT, prometheus_samples};
use stillwell_metric::{Labels, Sample};
use stillwell_scope::{PartError, Place, Scope, Token};
use stillwell_wire::server::{
    self, PageRequest, PageServer, Pages, PlainReader, Reader as _, StreamListener, drive,
};
use stillwell_wire::{ListenError, Stream};
use tokio::time::{sleep, timeout};

use crate::export::{PageAddress, SeriesNaming};

const CONTENT_TYPE: (&str, &str) = ("content-type", PROMETHEUS_TEXT);
/// Scrapers are served one after the other; none may take longer.
const SCRAPE_MAX: Duration = Duration::from_secs(2);
/// Between tries to accept a connection that fail; each pause is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);

/// The newest values of a run; a handle, of which all show the same.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    labels: Labels,
    naming: SeriesNaming,
    text: Arc<Mutex<String>>,
}

impl Page {
    pub(crate) fn new(labels: Labels, naming: SeriesNaming) -> Self {
        Self {
            labels,
            naming,
            text: Arc::default(),
        }
    }

    /// Shows `samples` from now on, and nothing else.
    pub(crate) fn show(&self, samples: &[Sample]) {
        let text = render(samples, &self.labels, self.naming);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        let text = self.text.lock();
        text.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The samples under the names of `naming` as Prometheus reads them, each with the labels
/// `everywhere` too.
fn render(samples: &[Sample], everywhere: &Labels, naming: SeriesNaming) -> String {
    prometheus_samples(samples.iter().map(|sample| {
        let (name, own) = naming(sample);
        let labels = own
            .iter()
            .fold(everywhere.clone(), |all, (key, value)| all.with(key, value));
        Sample {
            name,
            labels,
            ..sample.clone()
        }
    }))
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
    let socket = match address {
        PageAddress::Tcp(address) => StreamListener::tcp(*address),
        PageAddress::Unix(path) => StreamListener::unix(path),
    };
    let socket = socket.map_err(PageError::Listen)?;
    scope
        .worker(place, "page", move |token| async move {
            let (listener, _file) = (socket.socket.watched()?, socket.file);
            let accept = || std::future::poll_fn(|context| listener.poll_accept(context));
            answer_all(&page, accept, &token).await
        })
        .map_err(PageError::Thread)
}

/// Answers one connection after the other until the run is over.
async fn answer_all(
    page: &Page,
    accept: impl AsyncFn() -> std::io::Result<Stream>,
    token: &Token,
) -> Result<(), PartError> {
    let mut pause = PAUSE_FIRST;
    loop {
        let accepted = tokio::select! {
            // Both are cancel-safe.
            biased;
            () = token.cancelled() => return Ok(()),
            accepted = accept() => accepted,
        };
        let Ok(stream) = accepted else {
            // A connection that has gone is its scraper's loss; but where no
            // descriptor is left the next try fails at once.
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_LONGEST);
            continue;
        };
        pause = PAUSE_FIRST;
        tokio::select! {
            // What is cut off here is one answer, when the run is over.
            () = token.cancelled() => return Ok(()),
            answered = timeout(SCRAPE_MAX, answer(page, stream)) => answered.unwrap_or_default(),
        }
    }
}

/// Answers one request with the page.
async fn answer(page: &Page, mut stream: Stream) {
    let (mut server, mut buffer) = (PageServer::new(page), PlainReader.begin());
    drive(&mut server, &PlainReader, &mut buffer, &mut stream).await;
}

impl Pages for &Page {
    fn page(&mut self, _: &PageRequest) -> server::Page {
        let headers = vec![CONTENT_TYPE, ("connection", "close")];
        last_page(200, headers, self.text().into_bytes())
    }

    fn malformed(&mut self) -> Option<server::Page> {
        Some(last_page(400, vec![("connection", "close")], Vec::new()))
    }
}

/// A response that is the last of its connection.
const fn last_page(
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
) -> server::Page {
    server::Page {
        status,
        headers,
        body,
        is_head: false,
        is_last: true,
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Kind, SeriesName, Value, catalogue as metric};

    use super::*;

    /// Another tool's name of what a sink received, and a label of the subject's totals.
    fn renamed(sample: &Sample) -> (SeriesName, Labels) {
        if sample.name.as_str() == metric::MESSAGES_RECEIVED.name {
            let name = SeriesName::recorded("requests_received".to_owned());
            (name, sample.labels.clone().with("component", "blackhole"))
        } else if sample.name.as_str() == metric::SUBJECT_RSS.name {
            (
                sample.name.clone(),
                sample.labels.clone().with("focus", "target"),
            )
        } else {
            (sample.name.clone(), sample.labels.clone())
        }
    }

    #[test]
    fn the_page_is_prometheus_text_with_other_names() {
        let labels = Labels::none()
            .with("component", "sink")
            .with("component_name", "http")
            .with("id", "a\"b\\c");
        let scraped = Sample {
            name: SeriesName::scraped("up.time-s"),
            kind: Kind::Gauge,
            labels: Labels::none(),
            value: Value::Float(f64::INFINITY),
        };
        let samples = [
            Sample::int(metric::MESSAGES_RECEIVED, &labels, 7),
            scraped,
            Sample::int(metric::SUBJECT_RSS, &Labels::none(), 4096),
        ];
        let text = render(&samples, &Labels::none().with("lab", "x"), renamed);
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

    #[tokio::test(start_paused = true)]
    async fn without_descriptors_accepting_does_not_spin() {
        let (tries, token) = (std::cell::Cell::new(0), Token::new());
        let accept = async || {
            tries.set(tries.get() + 1);
            Err(std::io::Error::from_raw_os_error(24))
        };
        let page = Page::new(Labels::none(), renamed);
        let ten_seconds = tokio::time::sleep(Duration::from_secs(10));
        tokio::select! {
            ended = answer_all(&page, accept, &token) => assert!(ended.is_err()),
            () = ten_seconds => token.cancel(),
        }
        // Pauses double from 10 ms to 1 s.
        assert!((10..20).contains(&tries.get()), "{}", tries.get());
        let ended = answer_all(&page, accept, &token).await;
        ended.unwrap();
    }
}
