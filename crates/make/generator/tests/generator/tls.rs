//! Streams over TLS.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use stillwell_metric::Outcome;
use stillwell_plan::TransportPlan;
use stillwell_plan::generator::StreamTarget;
use stillwell_plan::tls::{
    ClientTlsPlan, RootSource, ServerIdentity, ServerTlsPlan, TlsSuites, Verification,
};
use stillwell_scope::PartError;
use stillwell_testkit::{free_port, program_or_skip};
use stillwell_wire::Stream;
use stillwell_wire::tls::ServerTls;
use tokio::io::AsyncReadExt;

use crate::{Fixture, LONG, blocks, is_whole_walk, lines, plan, wait_until};

fn unverified(to: StreamTarget) -> TransportPlan {
    let tls = Box::new(ClientTlsPlan {
        verification: Verification::None,
        ..ClientTlsPlan::default()
    });
    TransportPlan::Tls { to, tls }
}

/// All that one client says, once it has said `length` bytes and was stopped.
fn take_all(
    length: usize,
    stop: &stillwell_scope::Token,
    accept: impl FnOnce() -> std::io::Result<Stream>,
) -> Result<Vec<u8>, PartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let tls = ServerTls::new(&ServerTlsPlan {
            identity: ServerIdentity::SelfSigned {
                names: vec!["localhost".to_owned()],
            },
            alpn: Vec::new(),
            client_roots: Vec::new(),
            resumption: true,
            suites: TlsSuites::default(),
        })?;
        let mut stream = tls.accept(accept()?).await?;
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await?;
        stop.cancel();
        stream.read_to_end(&mut bytes).await?;
        Ok(bytes)
    })
}

#[test]
fn what_leaves_over_tls_arrives_to_the_last_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let plan = plan(unverified(StreamTarget::Tcp(address)));
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        take_all(3_000_000, &stop, || {
            let (peer, _) = listener.accept()?;
            peer.set_nonblocking(true)?;
            Ok(tokio::net::TcpStream::from_std(peer)?.into())
        })
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(received.len() as u64, shards[0].bytes.total());
    assert_eq!(lines(&received), shards[0].events.total());
    assert!(is_whole_walk(&blocks(&plan, 0), 0, &received));
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), 1);
}

#[test]
fn a_unix_stream_may_use_tls_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let plan = plan(unverified(StreamTarget::Unix(path)));
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        take_all(1_000_000, &stop, || {
            let (peer, _) = listener.accept()?;
            peer.set_nonblocking(true)?;
            Ok(tokio::net::UnixStream::from_std(peer)?.into())
        })
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(received.len() as u64, shards[0].bytes.total());
    assert!(is_whole_walk(&blocks(&plan, 0), 0, &received));
}

#[test]
fn an_unsigned_certificate_is_refused_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let plan = plan(TransportPlan::Tls {
        to: StreamTarget::Tcp(address),
        tls: Box::default(),
    });
    let mut fixture = Fixture::start(&plan);
    let refused = fixture.beside("peer", move |stop| {
        Ok(take_all(1, &stop, || {
            let (peer, _) = listener.accept()?;
            peer.set_nonblocking(true)?;
            Ok(tokio::net::TcpStream::from_std(peer)?.into())
        })
        .is_err())
    });
    assert!(refused.recv_timeout(LONG).unwrap());
    wait_until(|| fixture.outcomes(Outcome::ConnectFailed) > 0);
    let shards = fixture.finish();
    assert_eq!(shards[0].bytes.total(), 0);
}

/// OpenSSL's server, which prints in plain text what it received.
#[test]
fn openssl_reads_the_request() {
    let test = "openssl_reads_the_request";
    let Some(openssl) = program_or_skip(test, "openssl") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let request = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x \
                   -addext subjectAltName=DNS:stillwell.test -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new(&openssl)
        .args(request.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let port = free_port();
    let words =
        format!("s_server -accept 127.0.0.1:{port} -cert cert.pem -key key.pem -quiet -naccept 1");
    let mut server = Command::new(&openssl)
        .args(words.split_whitespace())
        .current_dir(folder.path())
        // At the end of its input it would end.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let tls = Box::new(ClientTlsPlan {
        verification: Verification::Roots {
            extra: vec![RootSource::File(folder.path().join("cert.pem"))],
            public: false,
        },
        server_name: Some("stillwell.test".to_owned()),
        ..ClientTlsPlan::default()
    });
    let to = StreamTarget::Tcp(format!("127.0.0.1:{port}"));
    let plan = plan(TransportPlan::Tls { to, tls });
    let mut fixture = Fixture::start(&plan);
    let mut output = server.stdout.take().unwrap();
    let received = fixture.beside("peer", move |stop| {
        let mut bytes = vec![0; 500_000];
        output.read_exact(&mut bytes)?;
        stop.cancel();
        output.read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    server.wait().unwrap();
    assert_eq!(received.len() as u64, shards[0].bytes.total());
    assert!(is_whole_walk(&blocks(&plan, 0), 0, &received));
}
