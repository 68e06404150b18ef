//! Requests to pages.

mod edit;
mod start;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use maud::html;
use stillwell_report::{FullReport, page_style};
use tokio::time::timeout;

use crate::answer::{self, Answer};
use crate::fields::Fields;
use crate::guard::{Admission, Guard, RequestFacts};
use crate::jobs::Jobs;
use crate::pages::{self, Chrome, CompareChoice, Section};
use crate::program::{Program, Refusal};
use crate::work_queue::{WorkKind, WorkQueue};
use stillwell_experiment::library::{
    Library, PlaceBelow, PlaceError, ResultKind, ResultListing, ResultRoots,
};

/// Maximum size of the body of a request.
const BODY_MAX: usize = 1 << 20;
/// Maximum time for a response, without the events after its head.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(120);
/// Maximum size of a stored page.
const STORED_MAX: u64 = 64 << 20;

/// Style sheet of pages.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let ours = concat!(
        include_str!("assets/bar.css"),
        include_str!("assets/ui.css")
    );
    format!("{}{ours}", page_style())
});

/// The state that all requests share.
pub(crate) struct Shared {
    pub(crate) guard: Guard,
    pub(crate) roots: ResultRoots,
    pub(crate) stores: Vec<PathBuf>,
    pub(crate) program: Box<dyn Program>,
    pub(crate) library: Library,
    pub(crate) jobs: Jobs,
    pub(crate) work_queue: WorkQueue,
}

type Server = State<Arc<Shared>>;

/// Returns the service of all pages.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(results))
        .route(
            "/ui.css",
            get(|| async { answer::asset("text/css; charset=utf-8", STYLE.clone()) }),
        )
        .route("/ui.js", get(script))
        .route("/favicon.ico", get(|| async { answer::nothing() }))
        .route("/report/{*place}", get(report))
        .route("/stored/{*place}", get(stored))
        .route("/compare", get(compare))
        .route("/history", get(history))
        .route("/start", get(start::form))
        .route("/start/{command}", post(start::submit))
        .route("/commands/{id}", get(start::job))
        .route("/commands/{id}/events", get(start::events))
        .route("/commands/{id}/stop", post(start::stop))
        .route("/cluster", get(cluster))
        .route("/files", get(edit::files))
        .route("/edit/{*place}", get(edit::open).post(edit::save))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(Arc::clone(&shared), admit))
        .with_state(shared)
}

/// Answers requests that the guard admits.
async fn admit(State(shared): Server, request: Request, next: Next) -> Answer {
    let fields = Fields::parse(request.uri().query().unwrap_or_default().as_bytes());
    let headers = request.headers();
    let cookies = cookies(headers);
    let token = Some(fields.text("token")).filter(|token| !token.is_empty());
    let facts = RequestFacts {
        is_reading: matches!(*request.method(), Method::GET | Method::HEAD),
        host: only(headers, &HOST),
        origin: header(headers, &ORIGIN),
        fetch_site: header(headers, &HeaderName::from_static("sec-fetch-site")),
        cookies: Some(cookies.as_str()),
        token,
    };
    match shared.guard.judge(&facts) {
        Admission::Refused(reason) => answer::page(StatusCode::FORBIDDEN, pages::refused(reason)),
        Admission::Greeted => {
            let page = pages::greeting(request.uri().path());
            let mut greeting = answer::page(StatusCode::OK, page);
            if let Ok(cookie) = HeaderValue::from_str(&shared.guard.set_cookie()) {
                greeting.headers_mut().insert(SET_COOKIE, cookie);
            }
            greeting
        }
        Admission::Admitted => match timeout(RESPONSE_TIME_MAX, next.run(request)).await {
            Ok(response) => response,
            Err(_) => refused(
                &shared,
                StatusCode::GATEWAY_TIMEOUT,
                "The response took too long.",
            ),
        },
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let value = headers.get(name)?;
    // A header that is no text equals none that is expected.
    Some(value.to_str().unwrap_or("?"))
}

/// Returns a header that may occur once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let is_single = headers.get_all(name).iter().count() == 1;
    header(headers, name).filter(|_| is_single)
}

fn cookies(headers: &HeaderMap) -> String {
    let all = headers.get_all(COOKIE).iter();
    let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
    all.join(";")
}

impl Shared {
    fn chrome(&self) -> Chrome<'_> {
        let folder = self.roots.folders().first().and_then(|path| path.to_str());
        Chrome {
            unfinished: self.jobs.unfinished(),
            folder: folder.unwrap_or_default(),
            has_cluster: !self.stores.is_empty(),
        }
    }

    /// Does work that blocks, as [`WorkQueue::run`].
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        kind: WorkKind,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Answer> {
        let shared = Arc::clone(self);
        let done = self.work_queue.run(kind, move || work(&shared)).await;
        done.map_err(|error| refused(self, StatusCode::SERVICE_UNAVAILABLE, &error.to_string()))
    }

    /// Returns everything below the roots.
    async fn listing(self: &Arc<Self>) -> Result<ResultListing, Answer> {
        let survey = |shared: &Self| shared.library.survey(&shared.roots);
        self.work(WorkKind::Read, survey).await
    }
}

/// Returns the page of a request that cannot be answered.
fn refused(shared: &Shared, status: StatusCode, message: &str) -> Answer {
    refused_with(shared, status, &Refusal::new(message))
}

fn refused_with(shared: &Shared, status: StatusCode, refusal: &Refusal) -> Answer {
    let title = status.canonical_reason().unwrap_or("Refused");
    answer::page(status, pages::message(title, refusal, shared.chrome()))
}

fn misplaced(shared: &Shared, error: &PlaceError) -> Answer {
    let status = match error {
        PlaceError::Open { .. } | PlaceError::Shape(_) => StatusCode::NOT_FOUND,
        PlaceError::Link(_) => StatusCode::FORBIDDEN,
        PlaceError::Large { .. } | PlaceError::Encoding(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    refused(shared, status, &error.to_string())
}

async fn unknown(State(shared): Server) -> Answer {
    refused(&shared, StatusCode::NOT_FOUND, "There is no such page.")
}

async fn script() -> Answer {
    let script = include_str!("assets/ui.js");
    answer::asset("text/javascript; charset=utf-8", script.to_owned())
}

async fn results(State(shared): Server) -> Result<Answer, Answer> {
    let listing = shared.listing().await?;
    let page = pages::results(&listing, shared.chrome());
    Ok(answer::page(StatusCode::OK, page))
}

/// A report, or the page around one that was stored.
async fn report(State(shared): Server, Path(place): Path<String>) -> Result<Answer, Answer> {
    let read = move |shared: &Shared| {
        let place = PlaceBelow::parse(&place)?;
        let path = shared.roots.path(&place)?;
        let entry = shared.library.result(&path, &place);
        let kind = entry.map(|entry| entry.kind);
        let report = match kind {
            Some(kind) if kind.has_stored_page_only() => None,
            _ => Some(shared.program.report(&path)),
        };
        Ok((place, kind, report))
    };
    let (place, kind, report) = shared
        .work(WorkKind::Read, read)
        .await?
        .map_err(|error| misplaced(&shared, &error))?;
    let chrome = shared.chrome();
    match (report, kind) {
        (Some(Ok(report)), _) => {
            let title = place.shown();
            Ok(rendered(
                &report,
                Section::Results,
                &title,
                &html! {},
                chrome,
            ))
        }
        (Some(Err(refusal)), _) => Err(refused_with(
            &shared,
            StatusCode::UNPROCESSABLE_ENTITY,
            &refusal,
        )),
        (None, _) => Ok(answer::page(StatusCode::OK, pages::stored(&place, chrome))),
    }
}

fn rendered(
    report: &FullReport,
    section: Section,
    title: &str,
    around: &maud::Markup,
    chrome: Chrome<'_>,
) -> Answer {
    let header = pages::report_header(section, title, around, chrome);
    answer::report(report.html_below(&header))
}

async fn stored(State(shared): Server, Path(place): Path<String>) -> Result<Answer, Answer> {
    let read = move |shared: &Shared| {
        let place = PlaceBelow::parse(&place)?;
        let is_page = place
            .names
            .last()
            .is_some_and(|name| name.ends_with(".html"));
        match is_page {
            true => shared.roots.read_text(&place, STORED_MAX),
            false => Err(PlaceError::Shape(place.shown())),
        }
    };
    let text = shared.work(WorkKind::Read, read).await?;
    text.map(answer::stored)
        .map_err(|error| misplaced(&shared, &error))
}

async fn compare(State(shared): Server, RawQuery(query): RawQuery) -> Result<Answer, Answer> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let (a, b) = (fields.line("a").to_owned(), fields.line("b").to_owned());
    let compare = move |shared: &Shared| {
        let listing = shared.library.survey(&shared.roots);
        if a.is_empty() || b.is_empty() {
            return (listing, None);
        }
        let path = |text: &str| {
            let place = PlaceBelow::parse(text).and_then(|place| shared.roots.path(&place));
            place.map_err(|error| Refusal::new(error.to_string()))
        };
        let report = path(&a).and_then(|a| shared.program.compare(&a, &path(&b)?));
        (listing, Some(report))
    };
    let (listing, report) = shared.work(WorkKind::Read, compare).await?;
    let choice = CompareChoice {
        a: fields.line("a"),
        b: fields.line("b"),
    };
    let chrome = shared.chrome();
    Ok(match report {
        Some(Ok(report)) => {
            let around = pages::choices(&listing, choice);
            rendered(&report, Section::Results, "", &around, chrome)
        }
        Some(Err(refusal)) => {
            let page = pages::compare(&listing, choice, Some(&refusal), chrome);
            answer::page(StatusCode::UNPROCESSABLE_ENTITY, page)
        }
        None => {
            let note = Refusal::new("Choose two results.");
            let is_started = !(choice.a.is_empty() && choice.b.is_empty());
            let page = pages::compare(&listing, choice, is_started.then_some(&note), chrome);
            answer::page(StatusCode::OK, page)
        }
    })
}

async fn history(State(shared): Server, RawQuery(query): RawQuery) -> Result<Answer, Answer> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let only = fields.line("only").to_owned();
    let read = move |shared: &Shared| {
        let listing = shared.library.survey(&shared.roots);
        let suites = listing
            .results
            .iter()
            .filter(|entry| entry.kind == ResultKind::Suite);
        let suites = suites.filter_map(|entry| shared.roots.path(&entry.place).ok());
        let mut folders: Vec<PathBuf> = suites.collect();
        folders.reverse();
        if folders.is_empty() {
            let refusal = Refusal {
                message: "There are no results of `stillwell run` in this folder yet.".to_owned(),
                hint: Some(
                    "A history needs several of them: one for each night, or for each commit."
                        .to_owned(),
                ),
            };
            return (listing.is_cut, Err(refusal));
        }
        (listing.is_cut, shared.program.history(&folders, &only))
    };
    let (is_cut, report) = shared.work(WorkKind::Read, read).await?;
    let chrome = shared.chrome();
    let only = fields.line("only");
    Ok(match report {
        Ok(report) => {
            let around = pages::only(only, is_cut);
            rendered(&report, Section::History, "", &around, chrome)
        }
        Err(refusal) => {
            let page = pages::history(only, is_cut, &refusal, chrome);
            answer::page(StatusCode::OK, page)
        }
    })
}

async fn cluster(State(shared): Server) -> Result<Answer, Answer> {
    let read = |shared: &Shared| {
        let stores = shared.stores.iter();
        let stores = stores.map(|store| {
            let jobs = shared.program.cluster_jobs(store);
            (store.display().to_string(), jobs)
        });
        stores.collect::<Vec<_>>()
    };
    let stores = shared.work(WorkKind::Read, read).await?;
    let page = pages::cluster(&stores, shared.chrome());
    Ok(answer::page(StatusCode::OK, page))
}

/// A body that is not read further.
type Sent = axum::body::Bytes;
