//! Scrapes of the subject's own metrics pages.
//!
//! A scrape runs beside the beats, never in them: what it brings is delivered
//! with the next beat after its end. At most one per page runs at a time.

use std::cell::RefCell;
use std::rc::Rc;

use stillwell_http::{Scheme, Target};
use stillwell_metric::{Labels, Sample, SeriesName, Value, catalogue as metric};
use stillwell_plan::{ClientTlsPlan, ScrapeFormat, ScrapePlan, Verification};
use stillwell_scope::{Tasks, clock};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::Timer;
use stillwell_wire::client::{ConnectError, Endpoint, RequestError};
use stillwell_wire::tls::ClientTls;

use crate::expvar::parse_expvar;
use crate::prometheus::{Page, PageSeries, family, parse_page};

/// Most series of one page.
const SERIES_MAX: usize = 10_000;
/// Largest page.
const PAGE_MAX: ByteSize = ByteSize::mib(32);
/// What a subject is asked for.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4";

/// The pages of one subject.
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
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    is_running: bool,
    ok: u64,
    failed: u64,
    /// Lines of all pages so far that were not understood.
    malformed: u64,
    /// Series of all pages so far beyond [`SERIES_MAX`].
    surplus: u64,
    /// What the last scrape brought, until it is delivered.
    samples: Vec<Sample>,
}

/// Why a page was not had. Counted, never shown by itself.
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
            // A fetch that is given up leaves nothing but a closed connection.
            page = fetch(request) => page?,
            // Cancel-safe.
            () = timer.until(clock::now() + longest) => return Err(ScrapeFailure::Io),
        };
        let names = self.plan.names.as_deref();
        Ok(match self.plan.format {
            ScrapeFormat::Prometheus => parse_page(&page, SERIES_MAX),
            ScrapeFormat::Expvar => parse_expvar(&page, names, SERIES_MAX),
        })
    }

    fn samples(&self, series: Vec<PageSeries>) -> Vec<Sample> {
        // Of variables only those that are named were read.
        let is_read = self.plan.format == ScrapeFormat::Expvar;
        let names = self.plan.names.as_ref().filter(|_| !is_read);
        let is_wanted = |name: &str| {
            names.is_none_or(|names| names.iter().any(|n| n == name || n == family(name)))
        };
        series
            .into_iter()
            .filter(|series| is_wanted(&series.name))
            .map(|series| Sample {
                name: SeriesName::scraped(&series.name),
                kind: series.kind,
                labels: self.labels(series.labels),
                value: Value::Float(series.value),
            })
            .collect()
    }

    /// The page's labels, then the plan's, then where they come from. A label
    /// `source` of the subject's own is kept as `exported_source`.
    fn labels(&self, own: Labels) -> Labels {
        let mut labels = match own.value("source").map(str::to_owned) {
            Some(source) => own.with("exported_source", source),
            None => own,
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
        let target: Target = url.parse().ok()?;
        let tls = match target.scheme() {
            Scheme::Https => Some(unverified()?),
            _ => None,
        };
        Some(Self {
            endpoint: Endpoint::of_target(&target, tls),
            target,
            accept: accept.to_owned(),
        })
    }
}

/// Subjects sign their own certificates, as a rule; nothing secret is asked for or
/// told.
fn unverified() -> Option<ClientTls> {
    let plan = ClientTlsPlan {
        verification: Verification::None,
        ..ClientTlsPlan::default()
    };
    ClientTls::new(&plan).ok()
}

const fn accept(format: &ScrapeFormat) -> &'static str {
    match format {
        ScrapeFormat::Prometheus => ACCEPT,
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
