//! Responses, each with the policy of its kind.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use hyper::body::Frame;
use stillwell_report::page_policy;
use tokio::sync::mpsc;

/// Policy of pages of this server.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src data:; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Policy of everything that is no page.
const NO_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A response without the headers that all have.
pub(crate) type Answer = Response<Body>;

/// Returns a page of this server.
pub(crate) fn page(status: StatusCode, html: String) -> Answer {
    let html_type = "text/html; charset=utf-8";
    answer(status, html_type, PAGE_POLICY, html.into())
}

/// Returns a report that was rendered now.
pub(crate) fn report(html: String) -> Answer {
    let policy = format!(
        "{}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        page_policy()
    );
    answer(
        StatusCode::OK,
        "text/html; charset=utf-8",
        &policy,
        html.into(),
    )
}

/// Returns a page that was stored earlier: it may be of another origin, so it runs apart from this server.
pub(crate) fn stored(html: String) -> Answer {
    let policy = format!(
        "{}; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts",
        page_policy()
    );
    answer(
        StatusCode::OK,
        "text/html; charset=utf-8",
        &policy,
        html.into(),
    )
}

/// Returns a file of this server, such as its style sheet.
pub(crate) fn asset(content_type: &'static str, text: String) -> Answer {
    answer(StatusCode::OK, content_type, NO_POLICY, text.into())
}

/// Returns a stream of events.
pub(crate) fn events(receiver: mpsc::Receiver<Bytes>) -> Answer {
    let body = Body::new(Events(receiver));
    answer(StatusCode::OK, "text/event-stream", NO_POLICY, body)
}

/// Returns nothing, such as in place of an icon.
pub(crate) fn nothing() -> Answer {
    answer(
        StatusCode::NO_CONTENT,
        "text/plain",
        NO_POLICY,
        Body::empty(),
    )
}

/// Returns a redirection that the browser follows with `GET`.
pub(crate) fn see(place: &str) -> Answer {
    let mut answer = answer(
        StatusCode::SEE_OTHER,
        "text/plain",
        NO_POLICY,
        Body::empty(),
    );
    if let Ok(place) = HeaderValue::from_str(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    answer
}

fn answer(status: StatusCode, content_type: &'static str, policy: &str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Forms need their `Origin`, which `no-referrer` would remove.
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Events as the body of a response.
struct Events(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = self.0.poll_recv(context);
        event.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
