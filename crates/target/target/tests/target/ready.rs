//! Readiness probes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use stillwell_plan::target::ReadyProbe;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_target::{NotReady, TargetProcess, answering_already};
use stillwell_units::Nanos;

use crate::support::{Fixture, wait_ready_blocking};

fn wait(probe: &ReadyProbe, target: &TargetProcess, longest: Nanos) -> Result<Nanos, NotReady> {
    wait_ready_blocking(probe, target, clock::now() + longest, &Token::new())
}

const LONG: Nanos = Nanos::from_secs(180);
/// Enough for an attempt on a busy machine.
const SHORT: Nanos = Nanos::from_secs(3);

#[test]
fn a_port_and_a_page_make_ready() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut scope = Scope::new(&Token::new());
    let serve = move |_: &Token| {
        for status in [503, 200] {
            let (mut stream, _) = listener.accept()?;
            let requested = stream.read(&mut [0; 1024])?;
            assert!(requested > 0);
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nok")?;
        }
        listener.accept()?;
        Ok(())
    };
    scope.thread(Place::default(), "serve", serve).unwrap();
    let url = format!("http://{address}/health");
    assert!(wait(&ReadyProbe::Http { url }, &TargetProcess::none(), LONG).is_ok());
    assert!(wait(&ReadyProbe::Tcp { address }, &TargetProcess::none(), LONG).is_ok());
    let ends = scope.close(LONG);
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
}

#[test]
fn a_probe_of_an_https_page_uses_tls() {
    const HANDSHAKE: u8 = 0x16;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/health", listener.local_addr().unwrap());
    let mut scope = Scope::new(&Token::new());
    let token = Token::new();
    let seen = token.clone();
    let serve = move |_: &Token| {
        let (mut stream, _) = listener.accept()?;
        let mut first = [0; 1];
        stream.read_exact(&mut first)?;
        assert_eq!(first, [HANDSHAKE]);
        seen.cancel();
        Ok(())
    };
    scope.thread(Place::default(), "serve", serve).unwrap();
    // A load on the machine may delay the first byte: the probe goes on until it was seen.
    let (probe, target) = (ReadyProbe::Http { url }, TargetProcess::none());
    let error = wait_ready_blocking(&probe, &target, clock::now() + LONG, &token).unwrap_err();
    assert!(matches!(error, NotReady::Cancelled { .. }), "{error}");
    let ends = scope.close(LONG);
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
}

#[test]
fn files_lines_and_time_make_ready() {
    let fixture = Fixture::new("echo it is ready >&2; touch file; while :; do sleep 0.05; done");
    let target = fixture.try_start().unwrap();
    let path = fixture.path("file").to_str().unwrap().to_owned();
    assert!(wait(&ReadyProbe::File { path }, &target, LONG).is_ok());
    let contains = "is ready".to_owned();
    assert!(wait(&ReadyProbe::LogLine { contains }, &target, LONG).is_ok());
    let length = Nanos::from_millis(30);
    assert!(wait(&ReadyProbe::Delay { length }, &target, LONG).unwrap() >= length);
    assert!(wait(&ReadyProbe::Immediately, &target, LONG).is_ok());
}

/// A killed target that was started again was ready at once, by the socket of its first process.
#[test]
fn a_unix_socket_makes_ready_while_a_program_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let streams = folder.path().join("streams");
    let datagrams = folder.path().join("datagrams");
    let probe = |path: &Path| ReadyProbe::File {
        path: path.to_str().unwrap().to_owned(),
    };
    let target = TargetProcess::none();
    let _bound = UnixDatagram::bind(&datagrams).unwrap();
    assert!(wait(&probe(&datagrams), &target, LONG).is_ok());
    let listener = UnixListener::bind(&streams).unwrap();
    assert!(wait(&probe(&streams), &target, LONG).is_ok());
    // Another test may just be starting a process, which has a copy of the socket until it executes its program.
    socket2::SockRef::from(&listener)
        .shutdown(Shutdown::Both)
        .unwrap();
    drop(listener);
    // One attempt precedes the end of a deadline that has passed.
    let error = wait(&probe(&streams), &target, Nanos::ZERO).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_target_that_is_not_ready_has_a_reason() {
    let fixture = Fixture::new("while :; do sleep 0.05; done");
    let target = fixture.try_start().unwrap();
    let no_target = ReadyProbe::Tcp {
        address: "127.0.0.1:1".to_owned(),
    };
    let error = wait(&no_target, &target, SHORT).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    let wrong = ReadyProbe::Http {
        url: "ftp://a/".to_owned(),
    };
    let error = wait(&wrong, &target, LONG).unwrap_err();
    assert!(matches!(error, NotReady::Impossible { .. }), "{error}");
    let token = Token::new();
    token.cancel();
    let error = wait_ready_blocking(&no_target, &target, clock::now() + LONG, &token).unwrap_err();
    assert!(matches!(error, NotReady::Cancelled { .. }), "{error}");
    let fixture = Fixture::new("exit 4");
    let error = wait(&no_target, &fixture.try_start().unwrap(), LONG).unwrap_err();
    assert!(
        matches!(error, NotReady::Died { exit, .. } if exit.code == Some(4)),
        "{error}"
    );
}

/// Another program on the target's port was taken for the target, which then died.
#[test]
fn an_address_that_answers_before_the_start_is_of_another_program() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tcp = ReadyProbe::Tcp {
        address: address.to_string(),
    };
    let http = ReadyProbe::Http {
        url: format!("http://{address}/health"),
    };
    let named = ReadyProbe::Tcp {
        address: format!("localhost:{}", address.port()),
    };
    for probe in [&tcp, &http, &named] {
        assert_eq!(answering_already(probe), Some(address));
    }
    // Another test may just be starting a process, which has a copy of the socket until it executes its program.
    socket2::SockRef::from(&listener)
        .shutdown(Shutdown::Both)
        .unwrap();
    drop(listener);
    for probe in [tcp, http, named, ReadyProbe::Immediately] {
        assert_eq!(answering_already(&probe), None);
    }
}
