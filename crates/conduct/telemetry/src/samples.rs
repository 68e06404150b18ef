//! A page with the newest samples of a run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillwell_metric::{Labels, Sample, SeriesName};
use stillwell_plan::ObserverPlan;
use stillwell_scope::{Place, Scope, clock};
use stillwell_wire::ListenError;
use stillwell_wire::server::StreamListener;

use crate::format::prometheus::prometheus_samples;
use crate::newest::NewestSamples;
use crate::server::{PageService, PageText};

/// One connection at a time: a scraper comes once in seconds.
const SERVICE: PageService = PageService {
    path: None,
    connections_max: 1,
    connection_time_max: Duration::from_secs(2),
    keeps_alive: false,
};

/// The name and labels of the series that a sample belongs to.
pub type SeriesNaming = fn(&Sample) -> (SeriesName, Labels);

/// A page with the newest value of every series, as a Prometheus server scrapes it.
/// Histograms are left out.
#[derive(Clone, Debug)]
pub struct PagePlan {
    /// The address that serves it.
    pub address: PageAddress,
    /// Labels of every series.
    pub labels: Labels,
    /// Names and labels of the series.
    pub naming: SeriesNaming,
}

/// The address of a page, which is the same at every path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PageAddress {
    /// Over TCP.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

/// A handle to the newest values of a run; all clones show the same.
#[derive(Clone, Debug)]
pub struct SamplePage {
    labels: Labels,
    naming: SeriesNaming,
    newest: Arc<Mutex<NewestSamples>>,
    text: Arc<Mutex<String>>,
}

impl SamplePage {
    /// An empty page of a run that `observer` watches.
    #[must_use]
    pub fn new(plan: &PagePlan, observer: &ObserverPlan) -> Self {
        Self {
            labels: plan.labels.clone(),
            naming: plan.naming,
            newest: Arc::new(Mutex::new(NewestSamples::new(observer))),
            text: Arc::default(),
        }
    }

    /// Shows the samples of a beat in place of earlier ones of their series.
    pub fn show(&self, samples: &[Sample]) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.add(clock::now(), samples);
        let text = render(newest.iter(), &self.labels, self.naming);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Serves the page at `address` until the scope ends.
    ///
    /// # Errors
    /// [`PageError`] if the address or a thread is not available.
    pub fn serve(
        self,
        address: &PageAddress,
        scope: &mut Scope,
        place: Place,
    ) -> Result<(), PageError> {
        let listener = match address {
            PageAddress::Tcp(address) => StreamListener::tcp(*address),
            PageAddress::Unix(path) => StreamListener::unix(path),
        };
        let listener = listener.map_err(PageError::Listen)?;
        scope
            .worker(place, "page", move |token| async move {
                let (listener, _file) = (listener.socket.watched()?, listener.file);
                let accept = || std::future::poll_fn(|context| listener.poll_accept(context));
                let serving = SERVICE.serve(accept, || self.clone());
                token.run_until_cancelled(serving).await;
                Ok(())
            })
            .map_err(PageError::Thread)
    }
}

impl PageText for SamplePage {
    fn text(&mut self) -> String {
        let text = self.text.lock();
        text.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Renders samples under the names of `naming`, each with the labels `everywhere` too.
fn render<'s>(
    samples: impl IntoIterator<Item = &'s Sample>,
    everywhere: &Labels,
    naming: SeriesNaming,
) -> String {
    prometheus_samples(samples.into_iter().map(|sample| {
        let (name, labels) = naming(sample);
        let labels = labels
            .iter()
            .fold(everywhere.clone(), |all, (key, value)| all.with(key, value));
        Sample {
            name,
            labels,
            ..sample.clone()
        }
    }))
}

/// A failure to serve a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The address is not available.
    #[error("serve the page for Prometheus")]
    Listen(#[source] ListenError),
    /// The kernel starts no more threads.
    #[error("serve the page for Prometheus")]
    Thread(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Kind, SeriesName, Value, catalogue as metric};

    use super::*;

    /// Renames the messages of a sink, and adds a label to the target's totals.
    fn renamed(sample: &Sample) -> (SeriesName, Labels) {
        if sample.name.as_str() == metric::MESSAGES_RECEIVED.name {
            let name = SeriesName::recorded("requests_received".to_owned());
            (name, sample.labels.clone().with("component", "blackhole"))
        } else if sample.name.as_str() == metric::TARGET_RSS.name {
            (
                sample.name.clone(),
                sample.labels.clone().with("focus", "target"),
            )
        } else {
            (sample.name.clone(), sample.labels.clone())
        }
    }

    #[test]
    fn the_page_has_the_newest_value_of_every_series() {
        let plan = PagePlan {
            address: PageAddress::Unix(PathBuf::new()),
            labels: Labels::none(),
            naming: renamed,
        };
        let mut page = SamplePage::new(&plan, &ObserverPlan::default());
        let none = Labels::none();
        // Details are not in every beat.
        page.show(&[
            Sample::int(metric::TARGET_THREADS, &none, 1),
            Sample::int(metric::TARGET_PSS, &none, 4096),
        ]);
        page.show(&[Sample::int(metric::TARGET_THREADS, &none, 2)]);
        let text = page.text();
        for line in ["target_threads 2", "total_pss_bytes 4096"] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
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
            Sample::int(metric::TARGET_RSS, &Labels::none(), 4096),
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
}
