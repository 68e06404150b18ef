//! Coordinated omission: while a server stalls, requests go on being due, and
//! each one's latency counts from the time at which it was.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use serde_json::Value;
use stillwell_scope::{Place, Scope, Tasks, Token, clock};
use stillwell_testkit::Process;
use stillwell_units::{Moment, Nanos, float_from_u64};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::both_ends::ends::{LONG, STILLWELL, load};

const REQUESTS_PER_SECOND: u64 = 1000;

/// A server that answers at once, but stops for a while, once.
#[derive(Clone, Copy)]
struct Stall {
    /// After its first request.
    after: Nanos,
    length: Nanos,
}

impl Stall {
    fn serve(self, scope: &mut Scope) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move |token: Token| {
            let listener = TcpListener::from_std(listener)?;
            let first = Rc::new(Cell::new(None));
            let mut tasks = Tasks::new(100);
            loop {
                // All arms are cancel-safe.
                let stream = tokio::select! {
                    () = token.cancelled() => return Ok(()),
                    accepted = listener.accept() => accepted?.0,
                };
                let first = Rc::clone(&first);
                tasks.spawn(async move { drop(self.answer(stream, &first).await) });
            }
        };
        scope.worker(Place::default(), "stalling", serve).unwrap();
        address
    }

    async fn answer(self, mut stream: TcpStream, first: &Cell<Option<Moment>>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = [0; 4096];
        loop {
            // A connection has one short request at a time, which comes in one piece.
            if stream.read(&mut buffer).await? == 0 {
                return Ok(());
            }
            let now = clock::now();
            let first = first.get().unwrap_or_else(|| {
                first.set(Some(now));
                now
            });
            let begin = first + self.after;
            let end = begin + self.length;
            if (begin..end).contains(&now) {
                // This is the stall itself; nothing hopes that something is done by then.
                sleep(end.since(now).as_duration()).await;
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await?;
        }
    }
}

/// The 99th percentile of a time of all workers, in nanoseconds.
fn p99(report: &Value, id: &str) -> f64 {
    let statistics = report["global"]["statistics"].as_array().unwrap();
    let statistic = statistics
        .iter()
        .find(|statistic| statistic["id"] == id)
        .unwrap();
    statistic["histogram"]["p99"].as_f64().unwrap()
}

/// Of a load of `whole` of which a server stalls for `stall`, one in a hundred
/// requests waits for longer than the stall less a hundredth of the whole.
fn stalled(whole: Nanos, stall: Nanos) {
    let mut scope = Scope::new(&Token::new());
    let after = Nanos::new((whole.as_u64() - stall.as_u64()) / 2);
    let address = Stall {
        after,
        length: stall,
    }
    .serve(&mut scope);
    let url = format!("http://{address}/");
    let requests = REQUESTS_PER_SECOND * whole.as_u64() / Nanos::SECOND.as_u64();
    let (rate, count) = (format!("{REQUESTS_PER_SECOND}/s"), requests.to_string());
    let arguments = [&url, "-c4", "--rate", &rate, "--requests", &count];
    let report = load(&arguments);
    report.assert_all_well(requests);
    let expected = float_from_u64(stall.as_u64() - whole.as_u64() / 100);
    let intended = p99(&report.value, "stillwell.response_time");
    let sent = p99(&report.value, "stillwell.service_time");
    // A busy machine makes it longer, never shorter.
    assert!(intended >= 0.99 * expected, "{intended} < {expected}");
    // One request of each connection waits that long, and no other.
    assert!(sent < 0.5 * expected, "{sent}");
    show(&report.ended.stdout);
    let ends = scope.close(Nanos::from(LONG));
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
}

/// The report shows both, and why they differ.
fn show(report: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("load.json");
    std::fs::write(&file, report).unwrap();
    let mut command = Command::new(STILLWELL);
    let command = command.arg("transform").arg(&file);
    let ended = Process::start(command.arg("--format=human")).finish(LONG);
    println!("{}", ended.stdout);
    for expected in [
        "from intended time  from sent time",
        "had to wait for a connection",
        "a closed loop would have reported",
    ] {
        assert!(
            ended.stdout.contains(expected),
            "{expected}:\n{}",
            ended.stdout
        );
    }
}

#[test]
fn what_was_due_while_a_server_stalled_is_not_left_out() {
    stalled(Nanos::from_secs(4), Nanos::from_millis(800));
}
