//! Scrapes of the subject's own metrics pages.
//!
//! A scrape runs beside the beats, never in them: what it brings is delivered
//! with the next beat after its end. At most one per page runs at a time.

use std::cell::RefCell;
use std::rc::Rc;

use stillwell_http::{OneShot, OneShotError, Target};
use stillwell_metric::{Labels, Sample, SeriesName, Value, catalogue as metric};
use stillwell_plan::ScrapePlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::{Timer, dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    asked: Option<(String, Vec<u8>)>,
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
enum ScrapeFailure {
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
            asked: question(&plan.url),
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
        let (address, request) = self.asked.as_ref().ok_or(ScrapeFailure::Url)?;
        let mut timer = Timer::new().map_err(|_| ScrapeFailure::Io)?;
        let page = tokio::select! {
            // A fetch that is given up leaves nothing but a closed connection.
            page = fetch(address, request) => page?,
            // Cancel-safe.
            () = timer.until(clock::now() + longest) => return Err(ScrapeFailure::Io),
        };
        Ok(parse_page(&page, SERIES_MAX))
    }

    fn samples(&self, series: Vec<PageSeries>) -> Vec<Sample> {
        let names = self.plan.names.as_ref();
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

/// Where to ask, and what.
fn question(url: &str) -> Option<(String, Vec<u8>)> {
    let target: Target = url.parse().ok()?;
    let request = OneShot::request(&target, &[("accept", ACCEPT)]).ok()?;
    Some((target.dial_address(), request))
}

async fn fetch(address: &str, request: &[u8]) -> Result<Vec<u8>, ScrapeFailure> {
    let io = |_| ScrapeFailure::Io;
    let answer_failed = |_: OneShotError| ScrapeFailure::Answer;
    let mut stream = dial::tcp(address).await.map_err(|_| ScrapeFailure::Io)?;
    stream.write_all(request).await.map_err(io)?;
    let mut answer = OneShot::new(PAGE_MAX);
    let mut buffer = vec![0; 64 * 1024];
    let response = loop {
        let length = stream.read(&mut buffer).await.map_err(io)?;
        if length == 0 {
            break answer.finish().map_err(answer_failed)?;
        }
        if let Some(response) = answer.push(&buffer[..length]).map_err(answer_failed)? {
            break response;
        }
    };
    match response.status {
        200 => Ok(response.body),
        _ => Err(ScrapeFailure::Status),
    }
}
