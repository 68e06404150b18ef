//! Faults of a server in TLS itself: before the handshake, in its certificate, and after
//! the handshake.

use std::io;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use stillwell_plan::tls::{Alpn, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites};
use stillwell_testkit::Process;
use stillwell_wire::tls::ServerTls;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::{PeerSession, Server};
use super::{CLOSED, Case, LONG, OPEN, REQUESTS, Report, begin_at, case};
use crate::hostile::tally;

/// A server with a certificate of its own making that speaks `alpn`.
pub(crate) fn server(alpn: &[Alpn]) -> ServerTls {
    let names = vec!["127.0.0.1".to_owned()];
    showing(ServerIdentity::SelfSigned { names }, alpn)
}

fn showing(identity: ServerIdentity, alpn: &[Alpn]) -> ServerTls {
    ServerTls::new(&plan(identity, alpn)).unwrap()
}

fn plan(identity: ServerIdentity, alpn: &[Alpn]) -> ServerTlsPlan {
    ServerTlsPlan {
        identity,
        alpn: alpn.to_vec(),
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    }
}

/// A fault of a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    Garbage,
    Http,
    CloseAtHello,
    ResetAtHello,
    CloseInHello,
    ResetInHello,
    NoAnswer,
    StallInHello,
    NothingInCommon,
    UnknownName,
    InternalError,
    Goodbye,
    EndlessAlerts,
    LongRecord,
}

/// The header of a record, and the beginning of the hello that it is to hold.
const HALF_HELLO: &[u8] = &[22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3];

/// A record with an alert of this level and number.
const fn alert(level: u8, number: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, level, number]
}

async fn shake(fault: Fault, mut session: PeerSession) -> io::Result<()> {
    let mut hello = [0; 4096];
    if session.stream.read(&mut hello).await? == 0 {
        return Ok(());
    }
    let bytes: &[u8] = match fault {
        Fault::Garbage => b"\x00\xff\xa5 220 smtp.example ESMTP\r\n\r\n",
        Fault::Http => b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
        Fault::CloseInHello | Fault::ResetInHello | Fault::StallInHello => HALF_HELLO,
        Fault::NothingInCommon => &alert(2, 40),
        Fault::UnknownName => &alert(2, 112),
        Fault::InternalError => &alert(2, 80),
        Fault::Goodbye => &alert(1, 0),
        Fault::LongRecord => &[22, 3, 3, 0xff, 0xff],
        Fault::EndlessAlerts => return session.write_endlessly(&alert(1, 100)).await,
        Fault::CloseAtHello | Fault::ResetAtHello | Fault::NoAnswer => b"",
    };
    session.stream.write_all(bytes).await?;
    match fault {
        Fault::ResetAtHello | Fault::ResetInHello => session.reset(),
        Fault::NoAnswer | Fault::StallInHello => session.fall_silent().await,
        _ => Ok(()),
    }
}

fn cases() -> Vec<Case<Fault>> {
    let failed: &[&str] = &["handshake_failed"];
    let late: &[&str] = &["connect_timed_out"];
    vec![
        case(Fault::Garbage, failed, "does not speak TLS"),
        case(Fault::Http, failed, "does not speak TLS"),
        case(Fault::CloseAtHello, failed, "it closed the connection"),
        case(Fault::ResetAtHello, failed, "it closed the connection"),
        case(Fault::CloseInHello, failed, "it closed the connection"),
        case(Fault::ResetInHello, failed, "it closed the connection"),
        case(Fault::NoAnswer, late, "TLS handshake included"),
        case(Fault::StallInHello, late, "TLS handshake included"),
        case(
            Fault::NothingInCommon,
            failed,
            "no TLS version or cipher suite",
        ),
        case(
            Fault::UnknownName,
            failed,
            "it does not serve that host name",
        ),
        case(Fault::InternalError, failed, "InternalError"),
        case(Fault::Goodbye, failed, "it closed the connection"),
        case(Fault::EndlessAlerts, failed, "complete the TLS handshake"),
        case(Fault::LongRecord, failed, "complete the TLS handshake"),
    ]
}

/// Every request has failed, since no connection was opened, and the load says why in the
/// words of its case.
fn check<F: std::fmt::Debug>(loop_words: &str, under_way: Vec<(Case<F>, Server, Process)>) {
    let tried = under_way.len();
    for (case, server, process) in under_way {
        let report = Report::of(process.finish(LONG));
        let context = format!(
            "{:?}, {loop_words}: {:?}\n{}",
            case.fault,
            report.outcomes(),
            report.findings()
        );
        assert_eq!(server.stop(), 0, "{context}");
        assert_eq!(report.ended(), report.begun(), "{context}");
        assert_eq!(report.ended(), REQUESTS, "{context}");
        let outcomes = report.outcomes();
        let is_named = |name: &String| case.ends.contains(&name.as_str());
        assert!(outcomes.keys().all(is_named), "{context}");
        assert!(report.findings().contains(case.finding), "{context}");
        assert_eq!(report.ended.code, 3, "{context}");
    }
    tally("servers with faults in TLS and certificates", tried, &[]);
}

#[test]
fn every_fault_of_a_handshake_is_counted_once() {
    for loop_words in [CLOSED, OPEN] {
        for protocol in ["http1", "http2"] {
            let words = format!("{loop_words} -c 3 --protocol={protocol} --insecure");
            let begun = cases().into_iter().map(|case| {
                let fault = case.fault;
                // A short timeout for cases that time out; the others need not hurry.
                let connect_timeout = match fault {
                    Fault::NoAnswer | Fault::StallInHello => "200ms",
                    _ => "20s",
                };
                let words = format!("{words} --connect-timeout={connect_timeout}");
                let server = Server::start(move |session| shake(fault, session));
                let process = begin_at("https", &server, &words);
                (case, server, process)
            });
            check(loop_words, begun.collect());
        }
    }
}

/// An authority, and the file that names it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn called(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// The flag by which a load accepts its certificate.
    fn trusted(&self) -> String {
        format!("--ca={}", self.folder.path().join("ca.pem").display())
    }

    /// A certificate for `name` that is valid from the one year to the other.
    fn identity(&self, name: &str, from: i32, until: i32) -> ServerIdentity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity::Given(TlsIdentity {
            certificates: PemSource::Text(certificate.pem()),
            key: PemSource::Text(key.serialize_pem()),
        })
    }
}

#[test]
fn a_certificate_or_protocol_that_is_wrong_is_counted_and_reported() {
    let (known, unknown) = (Authority::called("known"), Authority::called("unknown"));
    let here = "127.0.0.1";
    let well = || known.identity(here, 2000, 4000);
    let wrong_years = |from, until| known.identity(here, from, until);
    let http1: &[Alpn] = &[Alpn::Http1];
    let http2: &[Alpn] = &[Alpn::Http2];
    let wrong_version = "it does not support the requested version of HTTP";
    for (identity, alpn, words, finding) in [
        (wrong_years(2000, 2001), http1, "", "has expired"),
        (wrong_years(3000, 3001), http1, "", "is not valid yet"),
        (
            unknown.identity(here, 2000, 4000),
            http1,
            "",
            "comes from an unknown authority",
        ),
        (
            known.identity("other.example", 2000, 4000),
            http1,
            "",
            "is for other names",
        ),
        (well(), http1, "--sni=other.example", "is for other names"),
        (well(), http2, "", wrong_version),
        (well(), http1, "--protocol=http2", wrong_version),
        (
            well(),
            &[],
            "--protocol=http2",
            "does not speak HTTP/2 over TLS",
        ),
    ] {
        for loop_words in [CLOSED, OPEN] {
            let tls = showing(identity.clone(), alpn);
            let silent = async |session: PeerSession| session.fall_silent().await;
            let server = Server::start_over(Some(tls), silent);
            let trusted = known.trusted();
            let process = begin_at(
                "https",
                &server,
                &format!("{loop_words} -c3 {trusted} {words}"),
            );
            let case = case(words, &["handshake_failed"], finding);
            check(loop_words, vec![(case, server, process)]);
        }
    }
}

/// A fault after the handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Late {
    /// A body that ends with the connection, whose end TLS has not said: it may have been cut
    /// off on the way.
    NoGoodbye,
    /// One whose end TLS has said.
    Goodbye,
    /// A goodbye in the middle of a body that says its length.
    GoodbyeMidBody,
    /// The same without a goodbye.
    CloseMidBody,
    /// Bytes that TLS has not encrypted.
    Unencrypted,
    /// Not even an answer before the goodbye.
    GoodbyeUnanswered,
}

async fn answer(fault: Late, mut session: PeerSession) -> io::Result<()> {
    let mut request = [0; 4096];
    if session.stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    session.saw_request();
    let bytes: &[u8] = match fault {
        Late::NoGoodbye | Late::Goodbye => b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello",
        Late::GoodbyeUnanswered => b"",
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
    };
    session.stream.write_all(bytes).await?;
    session.flush().await?;
    match fault {
        Late::Goodbye | Late::GoodbyeMidBody | Late::GoodbyeUnanswered => {
            session.stream.shutdown().await
        }
        Late::NoGoodbye | Late::CloseMidBody => Ok(()),
        Late::Unencrypted => {
            let mut below = session.stream.into_stream();
            below
                .write_all(b"\x17\x03\x03\x00\x20 this is no record of TLS at all")
                .await
        }
    }
}

#[test]
fn an_end_without_a_tls_close_is_no_end_of_a_body() {
    let lost: &[&str] = &["peer_closed"];
    let none = "no request was answered";
    let cases = || {
        [
            case(Late::NoGoodbye, lost, none),
            case(Late::Goodbye, &["ok"], ""),
            case(Late::GoodbyeMidBody, lost, none),
            case(Late::CloseMidBody, lost, none),
            case(Late::Unencrypted, &["malformed", "peer_closed"], none),
            case(Late::GoodbyeUnanswered, lost, none),
        ]
    };
    for loop_words in [CLOSED, OPEN] {
        let begun = cases().into_iter().map(|case| {
            let fault = case.fault;
            let tls = server(&[Alpn::Http1]);
            let server = Server::start_over(Some(tls), move |session| answer(fault, session));
            let process = begin_at(
                "https",
                &server,
                &format!("{loop_words} -c3 --insecure --connect-timeout=20s"),
            );
            (case, server, process)
        });
        super::check(loop_words, begun.collect());
    }
}

/// Version 1.3 reports to a client only after its handshake that it should have shown a
/// certificate.
#[test]
fn requests_without_the_requested_certificate_are_counted_once() {
    let authority = Authority::called("both");
    let mut plan = plan(authority.identity("127.0.0.1", 2000, 4000), &[Alpn::Http1]);
    plan.client_roots = vec![authority.folder.path().join("ca.pem")];
    let tls = ServerTls::new(&plan).unwrap();
    let silent = async |session: PeerSession| session.fall_silent().await;
    let server = Server::start_over(Some(tls), silent);
    let words = format!("{CLOSED} -c3 {}", authority.trusted());
    let report = Report::of(begin_at("https", &server, &words).finish(LONG));
    assert_eq!(server.stop(), 0);
    assert!(report.begun() <= report.ended());
    assert_eq!(report.ended(), REQUESTS, "{:?}", report.outcomes());
    assert_eq!(report.outcome("ok"), 0);
    let output = report.findings();
    assert!(
        output.contains("it requires a client certificate"),
        "{output}"
    );
}
