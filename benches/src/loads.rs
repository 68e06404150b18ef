//! Our client: plans of a load from one worker on the sender's CPU.

use stillwell_metric::Outcome;
use stillwell_plan::load::{
    BodyPlan, ClientPlan, ConnectingPlan, EndpointPlan, IdleStrategy, LoadPace, LoadPlanParts,
    LoadProtocol, Overflow, RequestPlan, Reuse, Spacing, TelemetryPlan, UntilPlan,
};
use stillwell_plan::tls::{ClientTlsPlan, TlsSuites, Verification};
use stillwell_plan::{LoadPlan, RateShape, Validity};
use stillwell_run::{AddressFamily, Interrupt, LoadCapture, conduct_load};
use stillwell_units::{Nanos, Seed};

use crate::{Figure, Question, SENDER_CPU, on};

/// Loads `port` with the requests of `question`, as fast as responses arrive.
///
/// # Errors
/// When the load cannot run.
pub fn turn(question: &Question, port: u16) -> anyhow::Result<Figure> {
    let before = stillwell_scope::clock::process_cpu();
    let capture = conduct(question, port, None)?;
    Ok(Figure {
        operations: answered(&capture),
        send_cpu: stillwell_scope::clock::process_cpu().saturating_sub(before),
        ..Figure::default()
    })
}

/// Loads `port` with the requests of `question`, at a rate where one is given.
///
/// # Errors
/// When the load cannot run.
pub fn conduct(
    question: &Question,
    port: u16,
    per_second: Option<f64>,
) -> anyhow::Result<LoadCapture> {
    let plan = LoadPlan::try_new(plan(question, port, per_second))?;
    let (place, interrupt) = ([on(SENDER_CPU)], Interrupt::new());
    let capture = conduct_load(plan, AddressFamily::Any, &place, &interrupt, &mut |_| {})?;
    Ok(capture)
}

/// Number of requests with a good answer.
#[must_use]
pub fn answered(capture: &LoadCapture) -> u64 {
    capture.sum(|counts| counts.ended(Outcome::Ok))
}

fn plan(question: &Question, port: u16, per_second: Option<f64>) -> LoadPlanParts {
    let address = format!("127.0.0.1:{port}");
    let pace = per_second.map_or(LoadPace::Closed, |per_second| LoadPace::Open {
        curve: RateShape::Constant { per_second },
        spacing: Spacing::Even,
        overflow: Overflow::Wait,
    });
    LoadPlanParts {
        endpoints: vec![EndpointPlan {
            address: address.clone(),
            tls_host: question.has_tls.then(|| "127.0.0.1".to_owned()),
            weight: 1,
            requests: vec![RequestPlan {
                method: "GET".to_owned(),
                path: "/".to_owned(),
                authority: address,
                is_authority_stated: false,
                headers: Vec::new(),
                body: BodyPlan::None,
            }],
        }],
        pace,
        client: ClientPlan {
            connecting: ConnectingPlan {
                without_alpn: false,
                states_empty_length: false,
                connections: question.connections,
                protocol: if question.is_http2 {
                    LoadProtocol::Http2
                } else {
                    LoadProtocol::Http1
                },
                streams: question.streams,
                prefetch: true,
                over: Nanos::ZERO,
                reuse: Reuse::Mru,
                requests_max: None,
                timeout: Nanos::from_secs(5),
                source: None,
            },
            tunnel: None,
            tls: ClientTlsPlan {
                verification: Verification::None,
                identity: None,
                alpn: Vec::new(),
                server_name: None,
                resumption: true,
                suites: TlsSuites::default(),
            },
            timeout: Nanos::from_secs(30),
            idle: IdleStrategy::Spin,
        },
        workers: 1,
        until: UntilPlan {
            duration: Some(Nanos::from_secs(question.seconds.into())),
            ..UntilPlan::default()
        },
        warmup: Nanos::ZERO,
        first_request: false,
        latency_header: None,
        grace: Nanos::from_secs(5),
        telemetry: TelemetryPlan::default(),
        seed: Seed::from_number(1),
        validity: Validity::Normal,
        fleet: None,
    }
}
