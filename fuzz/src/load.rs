//! Input of HTTP load and its test server from each other's peers: responses, read by a
//! reader that recognizes them again, and the header that controls the response.

#[path = "../../crates/make/load/src/answer.rs"]
mod answer;
#[path = "../../crates/receive/serve/src/request.rs"]
mod request;

use std::hint::black_box;

use answer::{AnswerBody, HeadMemo, ResponseReader, ResponseSummary};
use request::RequestedResponse;
use stillwell_http::ParseError;
use stillwell_plan::serve::{
    DelayExpression, Expression, ExpressionInputs, FaultExpression, ResponseOptions,
};

/// More active requests than any server has.
const ACTIVE: [u64; 3] = [1, 1000, u64::MAX];

/// An answer is the same however it is cut, and whether or not one like it was
/// seen before. The first byte says how it is cut, and what body it may have.
pub fn load_answer(bytes: &[u8]) {
    let Some((first, answers)) = bytes.split_first() else {
        return;
    };
    let body = match first & 3 {
        0 | 1 => AnswerBody::Any,
        2 => AnswerBody::Never,
        _ => AnswerBody::UnlessTunnel,
    };
    let cut = usize::from(first >> 2) + 1;
    let cut: Vec<&[u8]> = answers.chunks(cut).collect();
    for watched in [None, Some("content-length")] {
        let read = |parts: &[&[u8]], memo: &mut HeadMemo| read(parts, body, watched, memo);
        let mut memo = HeadMemo::default();
        let alone = read(&[answers], &mut HeadMemo::default());
        for _ in 0..2 {
            for again in [read(&cut, &mut memo), read(&[answers], &mut memo)] {
                assert!(
                    again == alone || again.is_err() || alone.is_err(),
                    "{again:?} {alone:?}"
                );
            }
        }
        follow(&cut, body, &mut memo);
    }
}

/// The first answer of a connection that ends behind `parts`, the number under the header
/// that is watched, and how many headers were kept where one is; an error if bytes without a
/// request follow it in the same part. Whether that is so depends on how it was cut.
fn read(
    parts: &[&[u8]],
    body: AnswerBody,
    watched: Option<&str>,
    memo: &mut HeadMemo,
) -> Result<Option<(ResponseSummary, Option<u64>, usize)>, ParseError> {
    let mut reader = ResponseReader::new(watched).keeping_headers(watched.is_some());
    let mut whole = None;
    for part in parts {
        whole = match reader.take(part, body, memo) {
            Ok(whole) => whole,
            Err(ParseError::Unrequested) => return Err(ParseError::Unrequested),
            Err(_) => return Ok(None),
        };
        if whole.is_some() {
            break;
        }
    }
    let Some(whole) = whole.or_else(|| reader.finish()) else {
        return Ok(None);
    };
    let comparable = ResponseSummary {
        keep_alive: true,
        ..whole
    };
    Ok(Some((
        comparable,
        reader.watched(),
        reader.headers_kept().count(),
    )))
}

/// One answer after the other, for as long as the reader says that one may
/// follow.
fn follow(parts: &[&[u8]], body: AnswerBody, memo: &mut HeadMemo) {
    let mut reader = ResponseReader::new(None);
    for part in parts {
        match reader.take(part, body, memo) {
            Ok(None) => {}
            Ok(Some(whole)) if whole.keep_alive => assert!(whole.status >= 200),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    reader.finish();
}

/// A request's wishes are options or a reason why not, and can be carried out.
pub fn response_options(bytes: &[u8]) {
    let base = ResponseOptions {
        body_bytes: Some(10),
        ..ResponseOptions::default()
    };
    if let Ok(options) = ResponseOptions::from_json(bytes) {
        assert!(options.body_bytes.unwrap_or(0) <= stillwell_plan::serve::RESPONSE_BODY_BYTES_MAX);
        let merged = base.merged(options.clone());
        let (_, headers) = merged.status_and_headers(true);
        assert!(headers.len() <= merged.headers.len() + 1);
        for (active, delay) in ACTIVE
            .iter()
            .flat_map(|active| merged.delay.map(|delay| (active, delay)))
        {
            std::hint::black_box(delay.at(*active));
        }
        // What was read means the same once more.
        assert_eq!(base.merged(options), merged);
    }
    requested_response(bytes);
}

/// One line for each of the headers that say how to answer, in turn.
fn requested_response(bytes: &[u8]) {
    let known = stillwell_nighthawk::envoy::headers();
    let names = [&known.options, &known.delay].map(|name| name.as_deref().unwrap_or("").as_bytes());
    let lines = bytes.split(|byte| *byte == b'\n').take(8);
    let headers: Vec<(&[u8], &[u8])> = names.into_iter().cycle().zip(lines).collect();
    assert!(
        headers
            .iter()
            .all(|(name, value)| request::defines_response(&known, name, value))
    );
    let requested_response = RequestedResponse::of(&known, &headers, true);
    let header = requested_response
        .options
        .and_then(|options| options.echo_request_headers);
    assert_eq!(requested_response.echo.is_some(), header.unwrap_or(true));
    // Of several configurations none is taken without a word.
    assert!(headers.len() < 3 || requested_response.misunderstood.is_some());
    black_box(requested_response.delay);
}

/// A text is an expression or an error that can be shown; what it gives is a
/// time or a fault at any moment.
pub fn expression(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<Expression>() {
        Ok(expression) => {
            evaluate(|inputs, random| {
                black_box(expression.evaluate(inputs, random));
            });
            // It is what it was read from.
            assert_eq!(expression.to_string(), text);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(delay) = text.parse::<DelayExpression>() {
        evaluate(|inputs, random| {
            black_box(delay.evaluate(inputs, random));
        });
    }
    if let Ok(fault) = text.parse::<FaultExpression>() {
        evaluate(|inputs, random| {
            black_box(fault.evaluate(inputs, random));
        });
    }
}

fn evaluate(with: impl Fn(&ExpressionInputs, &mut dyn FnMut() -> f64)) {
    for (active_requests, seconds) in [(1.0, 0.0), (1000.0, 1e9), (1e18, 1e-9)] {
        let inputs = ExpressionInputs {
            active_requests,
            seconds,
        };
        for drawn in [0.0, 0.5, 1.0 - f64::EPSILON] {
            with(&inputs, &mut || drawn);
        }
    }
}
