use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use stillwell_metric::TlsWish;
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, PemSource, RootSource, ServerIdentity, ServerTlsPlan, TlsIdentity,
    TlsSuites, TlsVersion, Verification,
};
use stillwell_scope::PartError;
use stillwell_wire::tls::{
    ClientTls, Greeting, Handshake, HandshakeError, HandshakeFailure, ServerTls, TlsError,
    TlsStream, read_greeting,
};
use stillwell_wire::{Connection, Stream};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::on_worker;

/// An authority with its file.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        Self::called("one authority")
    }

    fn called(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for `name` that is valid until the end of the year before
    /// `until`.
    fn identity(&self, name: &str, from: i32, until: i32) -> TlsIdentity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        TlsIdentity {
            certificates: PemSource::Text(certificate.pem()),
            key: PemSource::Text(key.serialize_pem()),
        }
    }
}

fn client(authority: &Authority) -> ClientTlsPlan {
    ClientTlsPlan {
        verification: Verification::Roots {
            extra: vec![RootSource::File(authority.file())],
            public: true,
        },
        identity: None,
        alpn: vec![],
        server_name: None,
        resumption: true,
        suites: TlsSuites::default(),
    }
}

fn server(identity: TlsIdentity) -> ServerTlsPlan {
    ServerTlsPlan {
        identity: ServerIdentity::Given(identity),
        alpn: vec![],
        client_roots: vec![],
        resumption: true,
        suites: TlsSuites::default(),
    }
}

/// Both ends of a connection to `name`, after they have tried to shake hands and
/// to say one word each.
async fn shake(
    client: &ClientTls,
    server: &ServerTls,
    name: &str,
) -> (
    Result<TlsStream, HandshakeError>,
    Result<TlsStream, HandshakeError>,
) {
    let (near, far) = UnixStream::pair().unwrap();
    let name = client.server_name(name).unwrap();
    let connect = async {
        let mut stream = client.connect(Stream::from(near), &name).await?;
        // A server that refuses a client says so after the handshake in TLS 1.3.
        let read = stream.read_exact(&mut [0; 2]).await;
        drop(read);
        Ok(stream)
    };
    let accept = async {
        let mut stream = server.accept(Stream::from(far)).await?;
        stream.write_all(b"hi").await.unwrap();
        stream.flush().await.unwrap();
        Ok(stream)
    };
    tokio::join!(connect, accept)
}

/// Results of handshakes with `name`, one after another.
fn handshakes(
    client: &ClientTlsPlan,
    server: &ServerTlsPlan,
    name: &'static str,
    count: usize,
) -> Vec<Handshake> {
    let (client, server) = (
        ClientTls::new(client).unwrap(),
        ServerTls::new(server).unwrap(),
    );
    let (results, received) = std::sync::mpsc::sync_channel(count);
    on_worker(move || async move {
        for _ in 0..count {
            let (near, far) = shake(&client, &server, name).await;
            let near = near?.handshake();
            let far = far?.handshake();
            assert_eq!((near.alpn, near.suite), (far.alpn, far.suite));
            assert!(near.ended >= near.begun);
            results.send(near)?;
        }
        Ok(())
    });
    received.iter().collect()
}

/// The failure of a handshake with `name`.
fn failure(
    client: &ClientTlsPlan,
    server: &ServerTlsPlan,
    name: &'static str,
) -> (HandshakeFailure, String) {
    let (client, server) = (
        ClientTls::new(client).unwrap(),
        ServerTls::new(server).unwrap(),
    );
    let (results, received) = std::sync::mpsc::sync_channel(1);
    on_worker(move || async move {
        let (near, _) = shake(&client, &server, name).await;
        let error = near.err().ok_or("the handshake succeeds")?;
        results.send((error.failure, error.to_string()))?;
        Ok(())
    });
    received.recv().unwrap()
}

#[test]
fn sessions_are_resumed_where_they_may_be() {
    let authority = Authority::new();
    let (mut near, mut far) = (
        client(&authority),
        server(authority.identity("a", 2000, 2999)),
    );
    let resumed = |near: &_, far: &_| {
        let all = handshakes(near, far, "a", 3);
        all.iter()
            .map(|handshake| handshake.resumed)
            .collect::<Vec<_>>()
    };
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        near.suites.version_max = Some(version);
        assert_eq!(resumed(&near, &far), [false, true, true], "{version:?}");
    }
    near.resumption = false;
    assert_eq!(resumed(&near, &far), [false; 3]);
    near.resumption = true;
    far.resumption = false;
    assert_eq!(resumed(&near, &far), [false; 3]);
}

#[test]
fn versions_suites_and_protocols_are_those_of_both_sides() {
    let authority = Authority::new();
    let (mut near, mut far) = (
        client(&authority),
        server(authority.identity("a", 2000, 2999)),
    );
    near.suites.names = vec!["ECDHE-ECDSA-AES128-GCM-SHA256".to_owned()];
    near.alpn = vec![Alpn::Http2, Alpn::Http1];
    far.alpn = vec![Alpn::Http1];
    let handshake = handshakes(&near, &far, "a", 1)[0];
    assert_eq!(handshake.version, "TLSv1.2");
    assert_eq!(handshake.suite, "ECDHE-ECDSA-AES128-GCM-SHA256");
    assert_eq!(handshake.alpn, Some(Alpn::Http1));
    assert_eq!(handshake.group, Some("X25519"));
    far.suites.version_min = Some(TlsVersion::V1_3);
    assert_eq!(
        failure(&near, &far, "a").0,
        HandshakeFailure::NothingInCommon
    );
    near.suites = TlsSuites::default();
    near.alpn = vec![Alpn::Http2];
    assert_eq!(failure(&near, &far, "a").0, HandshakeFailure::NoProtocol);
}

/// Clients offer it with a share, so the server needs no second hello to choose it.
#[test]
fn keys_are_exchanged_by_the_hybrid_group_where_both_ends_have_it() {
    let authority = Authority::new();
    let (near, far) = (
        client(&authority),
        server(authority.identity("a", 2000, 2999)),
    );
    let handshake = handshakes(&near, &far, "a", 1)[0];
    assert_eq!(handshake.version, "TLSv1.3");
    assert_eq!(handshake.group, Some("X25519MLKEM768"));
}

#[test]
fn every_failure_names_its_cause_and_remedy() {
    use HandshakeFailure::{Expired, NotYetValid, OtherName, UnknownAuthority};
    use TlsWish::{Name, Trust, Unchecked};
    let (known, unknown) = (Authority::new(), Authority::called("another"));
    let near = client(&known);
    let identity = |from, until| known.identity("a", from, until);
    for (identity, expected, expected_message, wish) in [
        (identity(2000, 2001), Expired, "renew it", Some(Unchecked)),
        (identity(2998, 2999), NotYetValid, "the clocks", None),
        (
            known.identity("b", 2000, 2999),
            OtherName,
            "for other names",
            Some(Name),
        ),
        (
            unknown.identity("a", 2000, 2999),
            UnknownAuthority,
            "from an unknown authority",
            Some(Trust),
        ),
    ] {
        let far = server(identity);
        let (failure, message) = failure(&near, &far, "a");
        assert_eq!((failure, failure.wish()), (expected, wish));
        assert!(
            message.starts_with("complete the TLS handshake with a: "),
            "{message}"
        );
        assert!(message.contains(expected_message), "{message}");
        // Commands have flags; this crate does not know which.
        assert!(!message.contains("--"), "{message}");
        let mut insecure = near.clone();
        insecure.verification = Verification::None;
        assert_eq!(handshakes(&insecure, &far, "a", 1).len(), 1);
    }
}

#[test]
fn a_name_other_than_the_targets_can_be_requested() {
    let authority = Authority::new();
    let far = server(authority.identity("sni.com", 2000, 2999));
    let mut near = client(&authority);
    near.server_name = Some("sni.com".to_owned());
    assert_eq!(handshakes(&near, &far, "127.0.0.1", 1).len(), 1);
    near.server_name = Some("not a name".to_owned());
    let error = ClientTls::new(&near).unwrap_err().to_string();
    assert!(error.contains("`not a name` is neither"), "{error}");
}

#[test]
fn clients_show_a_certificate_where_one_is_wanted() {
    let (authority, second) = (Authority::new(), Authority::new());
    let mut far = server(authority.identity("a", 2000, 2999));
    far.client_roots = vec![authority.file()];
    far.suites.version_max = Some(TlsVersion::V1_2);
    let mut near = client(&authority);
    let without = failure(&near, &far, "a").0;
    assert!(
        matches!(
            without,
            HandshakeFailure::CertificateWanted
                | HandshakeFailure::NothingInCommon
                | HandshakeFailure::CertificateRefused
        ),
        "{without:?}"
    );
    near.identity = Some(second.identity("me", 2000, 2999));
    assert_eq!(
        failure(&near, &far, "a").0,
        HandshakeFailure::CertificateRefused
    );
    near.identity = Some(authority.identity("me", 2000, 2999));
    assert_eq!(handshakes(&near, &far, "a", 1).len(), 1);
}

#[test]
fn a_peer_without_tls_has_its_own_failure() {
    let authority = Authority::new();
    let tls = ClientTls::new(&client(&authority)).unwrap();
    on_worker(move || async move {
        for (word, expected) in [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", HandshakeFailure::NotTls),
            ("", HandshakeFailure::PeerClosed),
        ] {
            let (near, mut far) = UnixStream::pair()?;
            far.write_all(word.as_bytes()).await?;
            far.shutdown().await?;
            let connected = tls
                .connect(Stream::from(near), &tls.server_name("a")?)
                .await;
            let error = connected.err().ok_or("there is no handshake")?;
            assert_eq!(error.failure, expected, "{error}");
        }
        Ok(())
    });
}

/// The first byte is read before the rest.
#[test]
fn a_greeting_names_the_server_and_loses_no_byte() {
    let authority = Authority::new();
    let near = ClientTls::new(&client(&authority)).unwrap();
    let far = ServerTls::new(&server(authority.identity("a", 2000, 2999))).unwrap();
    on_worker(move || async move {
        let (encrypted, accepted) = UnixStream::pair()?;
        let name = near.server_name("a")?;
        let connect = near.connect(Stream::from(encrypted), &name);
        let (client, served) = tokio::join!(connect, async {
            let greeting = read_greeting(Stream::from(accepted)).await?;
            let Greeting::Tls(greeting) = greeting else {
                return Err(PartError::from("the client speaks TLS"));
            };
            assert_eq!(greeting.server_name().as_deref(), Some("a"));
            Ok(far.accept_greeted(*greeting).await?)
        });
        assert_eq!(client?.handshake().suite, served?.handshake().suite);
        let (mut plain, accepted) = UnixStream::pair()?;
        plain.write_all(b"GET /").await?;
        match read_greeting(Stream::from(accepted)).await? {
            Greeting::Plain { first, mut stream } => {
                let mut rest = [0; 4];
                stream.read_exact(&mut rest).await?;
                assert_eq!((first, &rest), (b'G', b"ET /"));
            }
            Greeting::Tls(_) => return Err("the client does not speak TLS".into()),
        }
        Ok(())
    });
}

#[test]
fn files_that_are_wrong_are_named() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let roots = |path: &Path| ClientTlsPlan {
        verification: Verification::Roots {
            extra: vec![RootSource::File(path.to_path_buf())],
            public: false,
        },
        ..client(&authority)
    };
    let error = |plan: &ClientTlsPlan| ClientTls::new(plan).unwrap_err();
    let missing = error(&roots(Path::new("/nowhere/ca.pem")));
    assert!(matches!(missing, TlsError::Read { .. }));
    assert!(missing.to_string().contains("/nowhere/ca.pem"));
    let empty = error(&roots(&file("empty.pem", ""))).to_string();
    assert!(empty.contains("empty.pem holds no certificate"), "{empty}");
    let broken = error(&roots(&file(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\nab",
    )));
    assert!(
        broken.to_string().contains("broken.pem is not PEM"),
        "{broken}"
    );
    let first = authority.identity("a", 2000, 2999);
    let second = authority.identity("a", 2000, 2999);
    let mut mixed = client(&authority);
    mixed.identity = Some(TlsIdentity {
        key: second.key,
        ..first.clone()
    });
    assert!(matches!(error(&mixed), TlsError::Identity { .. }));
    mixed.identity = Some(TlsIdentity {
        key: first.certificates.clone(),
        ..first
    });
    let keyless = error(&mixed).to_string();
    assert!(keyless.contains("holds no private key"), "{keyless}");
}

/// Both directions at once, more than any buffer holds.
#[test]
fn bytes_arrive_as_they_were_sent() {
    const LENGTH: usize = 3_000_000;
    let authority = Authority::new();
    let near = ClientTls::new(&client(&authority)).unwrap();
    let far = ServerTls::new(&server(authority.identity("a", 2000, 2999))).unwrap();
    on_worker(move || async move {
        let (near, far) = shake(&near, &far, "a").await;
        let (near, far) = (Connection::from(near?), Connection::from(far?));
        let sent: Vec<u8> = (0..=250).cycle().take(LENGTH).collect();
        let exchange = |connection: Connection| {
            let sent = &sent;
            async move {
                let (mut read, mut write) = tokio::io::split(connection);
                let mut received = vec![0; LENGTH];
                let writing = async {
                    write.write_all(sent).await?;
                    write.flush().await
                };
                let (read, written) = tokio::join!(read.read_exact(&mut received), writing);
                read?;
                written?;
                assert!(received == *sent);
                // The close is read as the end.
                Ok::<_, PartError>(())
            }
        };
        let (near, far) = tokio::join!(exchange(near), exchange(far));
        near?;
        far
    });
}
