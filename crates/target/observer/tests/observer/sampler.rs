//! Beats as they are delivered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use stillwell_metric::{
    Kind, Labels, Sample, SinkShard, Value, catalogue as metric, sink_worker_name,
};
use stillwell_observer::{SampleBatch, SamplerHandle, TargetProbe, Watched, start};
use stillwell_plan::ObserverPlan;
use stillwell_plan::observer::{ProfilePlan, ScrapeFormat, ScrapePlan};
use stillwell_scope::{Place, Scope, Token};
use stillwell_testkit::{LONG, wait_until};
use stillwell_units::Nanos;

/// Batches for which a consumer may have no CPU before the sampler fails.
const QUEUE: usize = 10_000;

fn sampler(
    scope: &mut Scope,
    plan: &ObserverPlan,
    queue: usize,
) -> (SamplerHandle, Receiver<SampleBatch>) {
    sampler_in(scope, plan, queue, &std::env::temp_dir())
}

fn sampler_in(
    scope: &mut Scope,
    plan: &ObserverPlan,
    queue: usize,
    folder: &Path,
) -> (SamplerHandle, Receiver<SampleBatch>) {
    let (sender, receiver) = sync_channel(queue);
    let shard = SinkShard::new(Labels::none().with("id", "one"));
    shard.bytes.add(5);
    let another = SinkShard::new(Labels::none().with("id", "two"));
    another.bytes.add(7);
    let watched = Watched {
        profiles: folder.join("profiles"),
        target: None,
        shards: vec![Arc::new(shard), Arc::new(another)],
        threads: Box::new(scope.watch()),
    };
    let handle = start(scope, &Place::default(), plan, watched, sender).unwrap();
    (handle, receiver)
}

fn find<'a>(samples: &'a [Sample], name: &str) -> Option<&'a Sample> {
    samples.iter().find(|sample| sample.name.as_str() == name)
}

#[test]
fn beats_come_by_themselves_when_marked_and_at_the_end() {
    let mut scope = Scope::new(&Token::new());
    let plan = ObserverPlan {
        period: Nanos::from_secs(3600),
        ..ObserverPlan::default()
    };
    let (handle, receiver) = sampler(&mut scope, &plan, 8);
    let first = receiver.recv_timeout(LONG).unwrap();
    assert_eq!(first.beat.index, 0);
    let total = find(&first.samples, metric::TOTAL_BYTES_RECEIVED.name).unwrap();
    assert_eq!(total.value, Value::Int(12));
    for name in [
        "process_cpu",
        "host_cpu_busy",
        "host_cpu_foreign",
        "sampler_delay",
        "worker_cpu",
    ] {
        assert!(find(&first.samples, name).is_some(), "{name}");
    }
    assert_eq!(find(&first.samples, "target_cpu"), None);
    handle.watch_target(TargetProbe {
        pid: std::process::id(),
        ..TargetProbe::default()
    });
    handle.mark(true);
    let marked = receiver.recv_timeout(LONG).unwrap();
    assert!(marked.beat.moment > first.beat.moment);
    for name in ["target_cpu", "total_pss_bytes"] {
        assert!(find(&marked.samples, name).is_some(), "{name}");
    }
    let ends = scope.close(Nanos::from_secs(20));
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
    assert_eq!(receiver.recv_timeout(LONG).unwrap().beat.index, 2);
    assert!(receiver.recv_timeout(LONG).is_err());
}

/// Sinks take bytes that are left at the sender of a closed run, after they were
/// signalled to end.
#[test]
fn what_sinks_take_while_they_end_is_in_the_last_beat() {
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(8);
    let shard = Arc::new(SinkShard::new(Labels::none().with("id", "one")));
    // Number of listings of the processes by the sampler.
    let requested = Arc::new(AtomicU64::new(0));
    let (counted, looks) = (Arc::clone(&shard), Arc::clone(&requested));
    let take_late = move |token: &Token| {
        assert!(wait_until(LONG, || token.is_cancelled()));
        let before = looks.load(Ordering::SeqCst);
        assert!(wait_until(LONG, || looks.load(Ordering::SeqCst) > before));
        counted.bytes.add(7);
        Ok(())
    };
    let name = sink_worker_name("one", &0);
    scope.thread(Place::default(), &name, take_late).unwrap();
    let threads = scope.watch();
    let watched = Watched {
        profiles: std::env::temp_dir().join("profiles"),
        target: None,
        shards: vec![shard],
        threads: Box::new(move || {
            requested.fetch_add(1, Ordering::SeqCst);
            threads()
        }),
    };
    let plan = ObserverPlan {
        period: Nanos::from_secs(3600),
        ..ObserverPlan::default()
    };
    start(&mut scope, &Place::default(), &plan, watched, sender).unwrap();
    receiver.recv_timeout(LONG).unwrap();
    let ends = scope.close(Nanos::from_secs(20));
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
    let last = receiver.recv_timeout(LONG).unwrap();
    let total = find(&last.samples, metric::TOTAL_BYTES_RECEIVED.name).unwrap();
    assert_eq!(total.value, Value::Int(7));
}

#[test]
fn a_sampler_without_a_consumer_fails() {
    let mut scope = Scope::new(&Token::new());
    let plan = ObserverPlan {
        period: Nanos::from_millis(1),
        ..ObserverPlan::default()
    };
    let (_handle, receiver) = sampler(&mut scope, &plan, 1);
    let mut taken = 0;
    let mut ends = Vec::new();
    while ends.is_empty() {
        // Gives the processor away until the sampler has ended.
        std::thread::yield_now();
        ends = scope.ends();
    }
    assert!(ends[0].result.is_err(), "{ends:?}");
    taken += receiver.iter().count();
    assert_eq!(taken, 1);
}

fn end_page(serving: Scope, address: SocketAddr) {
    serving.token().cancel();
    drop(std::net::TcpStream::connect(address));
    let ends = serving.close(Nanos::from_secs(20));
    assert!(ends.iter().all(|end| end.name == "serve"), "{ends:?}");
}

/// Serves a metrics page until `scope` ends and a last connection comes.
fn serve_page(scope: &mut Scope) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move |token: &Token| {
        // The last line is broken.
        let page = "# TYPE seen__all counter\nseen__all{source=\"x\"} 4\nother 1\nbroken{\n";
        while !token.is_cancelled() {
            let (mut stream, _) = listener.accept()?;
            let mut room = [0; 4096];
            let requested = stream.read(&mut room)?;
            let page = match room {
                [b'G', b'E', b'T', b' ', b'/', b'v', ..] => "{\"a\": {\"b\": 7}, \"c\": 1}",
                [b'G', b'E', b'T', b' ', b'/', b'h', ..] => "a profile",
                _ => page,
            };
            let length = page.len();
            if requested > 0 {
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{page}"
                )?;
            }
        }
        Ok(())
    };
    scope.thread(Place::default(), "serve", serve).unwrap();
    address
}

// compat: lading, files | target_metrics: prometheus | works
#[test]
fn pages_are_scraped_beside_the_beats() {
    let mut serving = Scope::new(&Token::new());
    let address = serve_page(&mut serving);
    let scrape = |url: String| ScrapePlan {
        url,
        names: Some(vec!["seen.all".to_owned()]),
        labels: vec![("zone".to_owned(), "a".to_owned())],
        format: ScrapeFormat::DottedPrometheus,
    };
    let plan = ObserverPlan {
        period: Nanos::from_millis(50),
        scrapes: vec![
            scrape(format!("http://{address}/metrics")),
            scrape("https://no".to_owned()),
        ],
        ..ObserverPlan::default()
    };
    let mut scope = Scope::new(&Token::new());
    let (_handle, receiver) = sampler(&mut scope, &plan, QUEUE);
    let batch = loop {
        let batch = receiver.recv_timeout(LONG).unwrap();
        if find(&batch.samples, "target/seen.all").is_some() {
            break batch;
        }
    };
    let seen = find(&batch.samples, "target/seen.all").unwrap();
    assert_eq!(
        (seen.kind, &seen.value),
        (Kind::Counter, &Value::Float(4.0))
    );
    let labels: Vec<(&str, &str)> = seen.labels.iter().collect();
    let url = format!("http://{address}/metrics");
    assert_eq!(
        labels,
        [
            ("exported_source", "x"),
            ("source", url.as_str()),
            ("zone", "a")
        ]
    );
    assert_eq!(find(&batch.samples, "target/other"), None);
    let failed = batch
        .samples
        .iter()
        .filter(|sample| sample.name == metric::SCRAPE_FAILED.into());
    let failed: Vec<bool> = failed.map(|sample| sample.value != Value::Int(0)).collect();
    assert_eq!(failed, [false, true]);
    let count_of = |name| match find(&batch.samples, name).unwrap().value {
        Value::Int(count) => count,
        ref another => panic!("{another:?}"),
    };
    // One line of each page is broken.
    assert_eq!(count_of("scrape_malformed"), count_of("scrape_ok"));
    assert!(count_of("scrape_malformed") > 0);
    assert_eq!(count_of("scrape_surplus"), 0);
    drop(receiver);
    scope.close(Nanos::from_secs(20));
    end_page(serving, address);
}

// compat: lading, files | target_metrics: expvar | works
#[test]
fn variables_are_read_and_profiles_are_kept() {
    let mut serving = Scope::new(&Token::new());
    let address = serve_page(&mut serving);
    let folder = tempfile::tempdir().unwrap();
    let plan = ObserverPlan {
        period: Nanos::from_millis(20),
        scrapes: vec![ScrapePlan {
            url: format!("http://{address}/vars"),
            names: Some(vec!["/a/b".to_owned()]),
            labels: Vec::new(),
            format: ScrapeFormat::Expvar,
        }],
        profiles: vec![ProfilePlan {
            url: format!("http://{address}/heap"),
            every: Nanos::from_millis(1),
        }],
        ..ObserverPlan::default()
    };
    let mut scope = Scope::new(&Token::new());
    let (_handle, receiver) = sampler_in(&mut scope, &plan, QUEUE, folder.path());
    let second = folder.path().join("profiles/heap-0.0001.pb.gz");
    let mut value = None;
    while value.is_none() || !second.exists() {
        let batch = receiver.recv_timeout(LONG).unwrap();
        assert_eq!(find(&batch.samples, "target/c"), None);
        value = value.or_else(|| Some(find(&batch.samples, "target/a/b")?.value.clone()));
    }
    assert_eq!(value, Some(Value::Float(7.0)));
    let first = folder.path().join("profiles/heap-0.0000.pb.gz");
    assert_eq!(std::fs::read(first).unwrap(), b"a profile");
    drop(receiver);
    scope.close(Nanos::from_secs(20));
    end_page(serving, address);
}

/// A profile that was due shortly after a beat waited for the next one.
#[test]
fn profiles_do_not_wait_for_a_beat() {
    let mut serving = Scope::new(&Token::new());
    let address = serve_page(&mut serving);
    let folder = tempfile::tempdir().unwrap();
    let plan = ObserverPlan {
        period: Nanos::from_secs(3600),
        profiles: vec![ProfilePlan {
            url: format!("http://{address}/heap"),
            every: Nanos::from_millis(1),
        }],
        ..ObserverPlan::default()
    };
    let mut scope = Scope::new(&Token::new());
    let (_handle, receiver) = sampler_in(&mut scope, &plan, QUEUE, folder.path());
    let third = folder.path().join("profiles/heap-0.0002.pb.gz");
    assert!(wait_until(LONG, || third.exists()));
    drop(receiver);
    scope.close(Nanos::from_secs(20));
    end_page(serving, address);
}
