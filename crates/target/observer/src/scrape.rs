//! Scrapes of the target's metrics pages.
//!
//! Scrapes run beside the beats. Their results are delivered with the next beat after their end. At most one
//! scrape per page runs at a time.

use std::cell::RefCell;
use std::rc::Rc;

use stillwell_http::Target;
use stillwell_metric::{Labels, Sample, SeriesName, Value, catalogue as metric};
use stillwell_plan::observer::{ScrapeFormat, ScrapePlan};
use stillwell_scope::{Tasks, clock};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::Timer;
use stillwell_wire::client::{ConnectError, Endpoint, RequestError};

use crate::expvar::parse_expvar;
use crate::prometheus::{Page, PageSeries, parse_dotted, parse_page};

/// Largest number of requested series of one page.
const SERIES_MAX: usize = 10_000;
/// Largest page.
const PAGE_MAX: ByteSize = ByteSize::mib(32);
/// Value of `Accept` in a scrape.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4";

/// The metrics pages of one target.
#[derive(Debug)]
pub(crate) struct Scraper {
    pages: Vec<Rc<ScrapedPage>>,
    tasks: Tasks,
    longest: Nanos,
}

#[derive(Debug)]
struct ScrapedPage {
    plan: ScrapePlan,
    /// `None` if the URL is none, which counts as a failure each time.
    request: Option<PageRequest>,
    state: RefCell<ScrapeState>,
}

#[derive(Debug, Default)]
struct ScrapeState {
    is_running: bool,
    ok: u64,
    failed: u64,
    /// Number of malformed lines of all pages so far.
    malformed: u64,
    /// Number of series beyond [`SERIES_MAX`] of all pages so far.
    surplus: u64,
    /// Results of the last scrape, until they are delivered.
    samples: Vec<Sample>,
}

/// A failed scrape; failures are counted.
#[derive(Debug)]
pub(crate) enum ScrapeFailure {
    Url,
    Io,
    Answer,
    Status,
}

impl Scraper {
    /// Scrapes `plans`, each for at most `longest`.
    pub(crate) fn new(plans: &[ScrapePlan], longest: Nanos) -> Self {
        let page = |plan: &ScrapePlan| ScrapedPage {
            plan: plan.clone(),
            request: PageRequest::new(&plan.url, accept(&plan.format)),
            state: RefCell::default(),
        };
        Self {
            pages: plans.iter().map(|plan| Rc::new(page(plan))).collect(),
            tasks: Tasks::new(plans.len().max(1)),
            longest,
        }
    }

    /// Starts a scrape of every page that none runs of.
    pub(crate) fn begin(&mut self) {
        for page in &self.pages {
            if page.state.borrow().is_running || !self.tasks.has_room() {
                continue;
            }
            page.state.borrow_mut().is_running = true;
            let (page, longest) = (Rc::clone(page), self.longest);
            self.tasks.spawn(async move {
                let scraped = page.scrape(longest).await;
                let mut state = page.state.borrow_mut();
                state.is_running = false;
                match scraped {
                    Ok(scraped) => {
                        state.ok += 1;
                        state.malformed += scraped.malformed;
                        state.surplus += scraped.surplus;
                        state.samples = page.samples(scraped.series);
                    }
                    Err(_) => state.failed += 1,
                }
            });
        }
    }

    /// Forgets tasks that have ended. Cancel-safe; never ends by itself.
    pub(crate) async fn tidy(&mut self) {
        loop {
            if self.tasks.is_empty() {
                std::future::pending::<()>().await;
            }
            self.tasks.next_end().await;
        }
    }

    /// Adds what was scraped since the last call.
    pub(crate) fn take(&self, samples: &mut Vec<Sample>) {
        for page in &self.pages {
            let mut state = page.state.borrow_mut();
            let labels = Labels::none().with("url", page.plan.url.as_str());
            samples.extend([
                Sample::int(metric::SCRAPE_OK, &labels, state.ok),
                Sample::int(metric::SCRAPE_FAILED, &labels, state.failed),
                Sample::int(metric::SCRAPE_MALFORMED, &labels, state.malformed),
                Sample::int(metric::SCRAPE_SURPLUS, &labels, state.surplus),
            ]);
            samples.append(&mut state.samples);
        }
    }
}

impl ScrapedPage {
    async fn scrape(&self, longest: Nanos) -> Result<Page, ScrapeFailure> {
        let request = self.request.as_ref().ok_or(ScrapeFailure::Url)?;
        let mut timer = Timer::new().map_err(|_| ScrapeFailure::Io)?;
        let page = tokio::select! {
            // A cancelled scrape leaves only a closed connection.
            page = fetch(request) => page?,
            // Cancel-safe.
            () = timer.until(clock::now() + longest) => return Err(ScrapeFailure::Io),
        };
        let names = self.plan.names.as_deref();
        Ok(match self.plan.format {
            ScrapeFormat::Prometheus => parse_page(&page, names, SERIES_MAX),
            ScrapeFormat::DottedPrometheus => parse_dotted(&page, names, SERIES_MAX),
            ScrapeFormat::Expvar => parse_expvar(&page, names, SERIES_MAX),
        })
    }

    fn samples(&self, series: Vec<PageSeries>) -> Vec<Sample> {
        series
            .into_iter()
            .map(|series| Sample {
                name: SeriesName::scraped(&series.name),
                kind: series.kind,
                labels: self.labels(series.labels),
                value: Value::Float(series.value),
            })
            .collect()
    }

    /// Merges the page's labels, the plan's labels and the source. The target's label `source` is kept as
    /// `exported_source`.
    fn labels(&self, page_labels: Labels) -> Labels {
        let mut labels = match page_labels.value("source").map(str::to_owned) {
            Some(source) => page_labels.with("exported_source", source),
            None => page_labels,
        };
        for (key, value) in &self.plan.labels {
            labels = labels.with(key, value.as_str());
        }
        labels.with("source", self.plan.url.as_str())
    }
}

/// A page that is requested again and again.
#[derive(Debug)]
pub(crate) struct PageRequest {
    endpoint: Endpoint,
    target: Target,
    accept: String,
}

impl PageRequest {
    /// `None` if the URL is none.
    pub(crate) fn new(url: &str, accept: &str) -> Option<Self> {
        let target = Target::from_url(url).ok()?;
        Some(Self {
            endpoint: Endpoint::unverified(&target).ok()?,
            target,
            accept: accept.to_owned(),
        })
    }
}

const fn accept(format: &ScrapeFormat) -> &'static str {
    match format {
        ScrapeFormat::Prometheus | ScrapeFormat::DottedPrometheus => ACCEPT,
        ScrapeFormat::Expvar => "application/json",
    }
}

/// Fetches the page of `request`.
pub(crate) async fn fetch(request: &PageRequest) -> Result<Vec<u8>, ScrapeFailure> {
    let headers = [("accept", request.accept.as_str())];
    let response = request.endpoint.get(&request.target, &headers, PAGE_MAX);
    let response = response.await;
    let response = response.map_err(|error| match error {
        RequestError::Head(_) | RequestError::Connect(ConnectError::ServerName(_)) => {
            ScrapeFailure::Url
        }
        RequestError::Response(_) => ScrapeFailure::Answer,
        _ => ScrapeFailure::Io,
    })?;
    match response.status {
        200 => Ok(response.body),
        _ => Err(ScrapeFailure::Status),
    }
}
