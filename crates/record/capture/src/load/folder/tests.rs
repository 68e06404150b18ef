use stillwell_metric::{
    HandshakeCount, HandshakePart, LoadCounts, Sizes, Trouble, empty_histogram,
};
use stillwell_plan::LoadPlan;
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{BodyPlan, EndpointPlan, LoadPlanParts, RequestPlan, Reuse};
use stillwell_units::Seed;

use super::*;
use crate::load::{HostCpu, LoadEnd, LoadWorker, SinkFound, TelemetryResult};

fn plan() -> LoadPlan {
    let endpoint = EndpointPlan {
        address: "127.0.0.1:1".to_owned(),
        tls_host: None,
        weight: 1,
        requests: vec![RequestPlan {
            method: "GET".to_owned(),
            path: "/?token=abc".to_owned(),
            authority: "a".to_owned(),
            is_authority_stated: false,
            headers: vec![("X-Api-Key".to_owned(), "abc".to_owned())],
            body: BodyPlan::Bytes(b"body".to_vec()),
        }],
    };
    let exchange = ExchangePlan {
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        reuse: Reuse::Mru,
        ..ExchangePlan::default()
    };
    let mut client = exchange.client();
    client.connecting.connections = 2;
    let mut parts = LoadPlanParts::closed(vec![endpoint], client, Seed::from_number(7));
    parts.workers = 2;
    LoadPlan::try_new(parts).unwrap()
}

fn worker(number: u64) -> LoadWorker {
    let mut counts = LoadCounts {
        begun: 10 + number,
        body_sizes: Sizes {
            count: 2,
            sum: 9,
            squares: u128::MAX / 3,
            smallest: 4,
            largest: 5,
        },
        answer_trouble: Some(Trouble::plain("why".to_owned())),
        handshakes: vec![HandshakeCount {
            part: HandshakePart::Suite,
            name: "a".to_owned(),
            count: 3,
        }],
        ..LoadCounts::default()
    };
    counts.outcomes[Outcome::TimedOut.index()] = u64::MAX;
    LoadWorker {
        counts,
        cpu: Nanos::from_millis(number),
        measured: Nanos::from_millis(2500),
        routes: [0, 1].map(|route| route_counts(route + number)).into(),
    }
}

fn route_counts(number: u64) -> RouteCounts {
    RouteCounts {
        name: format!("GET /{number}"),
        outcomes: [number; Outcome::ALL.len()],
        statuses: [(200, number)].into(),
    }
}

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = empty_histogram();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

pub(in crate::load) fn capture() -> LoadCapture {
    let times = |number: u64| {
        let times = LoadTime::all().map(|time| match time {
            LoadTime::Origin => None,
            _ => Some(histogram(&[number + time.index() as u64, 3_000_000_000])),
        });
        times.collect()
    };
    let second = |begin: u64, length: u64, sent: u64| LoadSecond {
        begin: Nanos::from_millis(begin),
        length: Nanos::from_millis(length),
        sent,
        outcomes: std::array::from_fn(|at| at as u64 * sent),
        service: PackedHistogram::new(&histogram(&[sent, 77])),
        ..LoadSecond::default()
    };
    LoadCapture {
        manifest: LoadManifest {
            schema: LOAD_SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: vec!["stillwell".to_owned(), "load".to_owned()],
            targets: vec!["http://a/".to_owned()],
            labels: Vec::new(),
            plan: plan(),
            fleet: None,
            started: Nanos::from_secs(1_700_000_000),
            ended: Nanos::from_secs(1_700_000_003),
            measured: Nanos::from_millis(2500),
            workers: vec![worker(0), worker(1)],
            end: LoadEnd::Failure(1),
            cpu: Nanos::from_millis(9),
            host: Some(HostCpu {
                busy: Nanos::SECOND,
                steal: Nanos::ZERO,
                cpus: 2,
            }),
            telemetry: TelemetryResult {
                sinks: vec![SinkFound {
                    name: "statsd://a".to_owned(),
                    flushes: 3,
                    failures: 1,
                    is_complete: true,
                    trouble: Some("refused".to_owned()),
                }],
                ..TelemetryResult::default()
            },
        },
        times: vec![times(1), times(2)],
        route_times: [1, 2]
            .map(|number| vec![[10, 20, 30].map(|time| histogram(&[time * number])); 2])
            .into(),
        // The second one has nothing but its length.
        seconds: vec![
            second(0, 1003, 5),
            second(1003, 997, 0),
            second(2000, 500, 1),
        ],
    }
}

#[test]
fn what_is_written_is_read_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let written = capture();
    written.write(folder.path(), Secrets::Kept).unwrap();
    let read = LoadCapture::open(folder.path()).unwrap();
    assert_eq!(read.manifest, written.manifest);
    assert_eq!(read.seconds, written.seconds);
    assert_eq!(read.times, written.times);
    assert_eq!(read.sum(|counts| counts.begun), 21);
    let first = read.workers().next().unwrap();
    assert_eq!(first.times(LoadTime::Origin).len(), 0);
    assert_eq!(first.times_of_answers(LoadTime::Service).len(), 10);
}

#[test]
fn a_capture_without_secrets_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = capture();
    written.manifest.command = vec!["--header".to_owned(), "Cookie: a=b".to_owned()];
    written.write(folder.path(), Secrets::Masked).unwrap();
    let read = LoadCapture::open(folder.path()).unwrap();
    assert_eq!(
        read.manifest,
        written.manifest.masked(Secrets::Masked).unwrap()
    );
    assert_eq!(read.manifest.command[1], "Cookie: ***");
    let request = &read.manifest.plan.endpoints[0].requests[0];
    assert_eq!(request.headers[0].1, "***");
    assert_eq!(request.path, "/?token=***");
}

#[test]
fn the_connections_of_a_plan_are_keys_of_the_plan_itself() {
    let json = serde_json::to_value(plan()).unwrap();
    for key in ["connecting", "tunnel", "tls", "timeout", "idle"] {
        assert!(json.get(key).is_some(), "{key} is missing in {json}");
    }
    assert_eq!(json["connecting"]["connections"], 2);
    assert_eq!(serde_json::from_value::<LoadPlan>(json).unwrap(), plan());
}

#[test]
fn what_is_no_capture_of_a_load_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = capture();
    "stillwell/run/v2".clone_into(&mut run.manifest.schema);
    run.write(folder.path(), Secrets::Masked).unwrap();
    let error = LoadCapture::open(folder.path()).unwrap_err();
    assert!(
        error.source.to_string().contains("stillwell/run/v2"),
        "{error:?}"
    );
    assert!(LoadCapture::open(&folder.path().join("none")).is_err());
}

#[test]
fn a_manifest_is_replaced_only_if_it_is_that_of_a_load() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(LoadCapture::can_replace(&folder.join("none")));
    assert!(LoadCapture::can_replace(folder));
    capture().write(folder, Secrets::Masked).unwrap();
    assert!(LoadCapture::can_replace(folder));
    let manifest = folder.join(MANIFEST);
    for text in [
        r#"{"name": "of another program"}"#,
        r#"{"schema": "stillwell/run/v2"}"#,
        "not JSON",
        "",
    ] {
        fs::write(&manifest, text).unwrap();
        assert!(!LoadCapture::can_replace(folder), "{text}");
    }
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    assert!(!LoadCapture::can_replace(folder));
}

#[test]
fn a_capture_is_not_read_while_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture().write(folder, Secrets::Masked).unwrap();
    // The new series is written, and the new manifest is not.
    let obstacle = folder.join(NEW_MANIFEST);
    fs::create_dir(&obstacle).unwrap();
    assert!(capture().write(folder, Secrets::Masked).is_err());
    let error = LoadCapture::open(folder).unwrap_err();
    assert_eq!(error.path, folder.join(MANIFEST));
    assert!(LoadCapture::can_replace(folder));
    fs::remove_dir(&obstacle).unwrap();
    capture().write(folder, Secrets::Masked).unwrap();
    LoadCapture::open(folder).unwrap();
}

#[test]
fn a_load_is_known_by_its_schema_even_if_its_series_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(!LoadCapture::is_load(folder));
    capture().write(folder, Secrets::Masked).unwrap();
    let series = folder.join(SERIES);
    fs::write(&series, "cut").unwrap();
    assert!(LoadCapture::is_load(folder));
    assert_eq!(LoadCapture::open(folder).unwrap_err().path, series);
    fs::write(folder.join(MANIFEST), r#"{"schema": "stillwell/run/v2"}"#).unwrap();
    assert!(!LoadCapture::is_load(folder));
}

#[test]
fn a_folder_is_prepared_only_if_it_takes_a_file() {
    let base = tempfile::tempdir().unwrap();
    let made = base.path().join("a/b");
    LoadCapture::prepare(&made).unwrap();
    assert_eq!(fs::read_dir(&made).unwrap().count(), 0);
    let file = base.path().join("file");
    fs::write(&file, "kept").unwrap();
    for unusable in [file.clone(), file.join("below")] {
        let error = LoadCapture::prepare(&unusable).unwrap_err();
        assert_eq!(error.path, unusable);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}
