//! Loads over TLS.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use stillwell_testkit::program_or_skip;

use super::counts::TURNS;
use super::*;

/// A certificate with an RSA key, which is also its own authority, and the
/// transport socket of a server that shows it.
struct Shown {
    _folder: TempDir,
    socket: String,
}

impl Shown {
    /// `None` where there is no program to make it.
    fn new(test: &str) -> Option<Self> {
        let openssl = program_or_skip(test, "openssl")?;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let made = Command::new(openssl)
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args([
                "-subj",
                "/CN=localhost",
                "-keyout",
                &path("key.pem"),
                "-out",
                &path("cert.pem"),
            ])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let socket = format!(
            "{{ name: envoy.transport_sockets.tls, typed_config: {{ \"@type\": \
             type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, \
             common_tls_context: {{ alpn_protocols: [ h2, http/1.1 ], tls_certificates: [ \
             {{ certificate_chain: {{ filename: {} }}, private_key: {{ filename: {} }} }} ] }} }} }}",
            path("cert.pem"),
            path("key.pem")
        );
        Some(Self {
            _folder: folder,
            socket,
        })
    }

    fn start(&self) -> Origin {
        start_with(&self.socket)
    }
}

fn start_with(socket: &str) -> Origin {
    let setup = Setup {
        socket: Some(socket),
        with_admin: true,
        ..Setup::default()
    };
    setup.start()
}

const FEW: &str = "--rps 500 --duration 100 --termination-predicate benchmark.http_2xx:24";

// compat: counters of nighthawk_client | ssl.handshake | works
// compat: counters of nighthawk_client | ssl.ciphers | works
// compat: counters of nighthawk_client | ssl.curves | works
// compat: counters of nighthawk_client | ssl.sigalgs | works
// compat: counters of nighthawk_client | ssl.versions | works
#[test]
fn handshakes_are_counted_as_envoy_counts_them() {
    let Some(shown) = Shown::new("handshakes_are_counted_as_envoy_counts_them") else {
        return;
    };
    for protocol in ["http1 --connections 1", "http2 --max-active-requests 1"] {
        let origin = shown.start();
        let result = measure(&format!("--protocol {protocol} {FEW} {}", origin.url()));
        for (name, value) in [
            ("benchmark.http_2xx", 25),
            ("ssl.handshake", 1),
            ("ssl.ciphers.ECDHE-RSA-AES128-GCM-SHA256", 1),
            ("ssl.curves.X25519", 1),
            ("ssl.sigalgs.rsa_pss_rsae_sha256", 1),
            ("ssl.versions.TLSv1.2", 1),
            ("upstream_cx_total", 1),
        ] {
            assert_eq!(result.counter(name), value, "{protocol} {name}");
        }
        assert_eq!(
            result.counters("ssl.").len(),
            5,
            "{:?}",
            result.counters("ssl.")
        );
        // As many as Nighthawk prints.
        assert_eq!(result.counters("").len(), 17, "{:?}", result.counters(""));
        assert!(
            result.log.contains("[W] Certificates are not checked"),
            "{}",
            result.log
        );
        let stats = exchange(
            origin.admin.as_ref().unwrap(),
            "GET",
            "/stats?filter=downstream_rq_2xx",
        );
        assert!(
            stats.ends_with("\nhttp.ingress_http.downstream_rq_2xx: 25\n"),
            "{stats}"
        );
        assert_eq!(origin.stop(), 25);
    }
}

// compat: nighthawk_client | cipher_suites: ECDHE-RSA-AES128-SHA and others without AEAD | refused | another is offered, with a warning
// compat: nighthawk_client | --tls-context | differs | suites without ECDHE and AEAD are replaced, with a warning
// compat: nighthawk_client | --transport-socket | differs | suites without ECDHE and AEAD are replaced, with a warning
/// The seed's own example, with a suite that there is.
#[test]
fn suites_and_versions_are_those_of_the_context() {
    let Some(shown) = Shown::new("suites_and_versions_are_those_of_the_context") else {
        return;
    };
    let origin = shown.start();
    let context = |of: &str, parameters: &str| {
        let of = format!("type.googleapis.com/envoy.{of}.UpstreamTlsContext");
        let common = format!("common_tls_context:{{tls_params:{{{parameters}}}}}");
        (
            format!("{{{common}}}"),
            format!("{{\"@type\":\"{of}\",{common}}}"),
        )
    };
    let suite = "cipher_suites:[\"-ALL:ECDHE-RSA-AES256-GCM-SHA384\"]";
    let newest = "tls_maximum_protocol_version:TLSv1_3,tls_minimum_protocol_version:TLSv1_3";
    for (of, parameters, counter) in [
        (
            "api.v2.auth",
            suite,
            "ssl.ciphers.ECDHE-RSA-AES256-GCM-SHA384",
        ),
        (
            "extensions.transport_sockets.tls.v3",
            newest,
            "ssl.versions.TLSv1.3",
        ),
    ] {
        let (bare, typed) = context(of, parameters);
        let socket = format!("{{name:\"envoy.transport_sockets.tls\",typed_config:{typed}}}");
        for (flag, value) in [("--transport-socket", &socket), ("--tls-context", &bare)] {
            for protocol in ["http1 --connections 1", "http2"] {
                let line = format!("--protocol {protocol} {flag} '{value}' {FEW}");
                let result = measure(&format!("{line} {}", origin.url()));
                assert!(result.counter(counter) >= 1, "{line}");
                let is_old = result.log.contains("--tls-context is deprecated");
                assert_eq!(is_old, flag == "--tls-context");
            }
        }
    }
    let (bare, _) = context("x", "cipher_suites:[\"-ALL:ECDHE-RSA-AES128-SHA\"]");
    let result = measure(&format!("--tls-context '{bare}' {FEW} {}", origin.url()));
    assert!(result.counter("ssl.ciphers.ECDHE-RSA-AES128-GCM-SHA256") >= 1);
    let expected = "The cipher suite ECDHE-RSA-AES128-SHA is not supported, because it lacks ECDHE or AEAD; \
                ECDHE-RSA-AES128-GCM-SHA256 is offered instead.";
    assert!(result.log.contains(expected), "{}", result.log);
    // An empty context for validation checks nothing, and nothing breaks.
    let empty = "{common_tls_context:{validation_context:{}}}";
    let line = format!("--connections 1 --tls-context '{empty}' {FEW}");
    let result = measure(&format!("{line} {}", origin.url()));
    assert_eq!(result.counter("benchmark.http_2xx"), 25);
}

/// A server with a certificate of its own making, its URL, and that certificate.
fn self_signed(folder: &Path) -> (Process, String, PathBuf) {
    let file = folder.join("cert.pem");
    let mut command = Command::new(STILLWELL);
    command.args([
        "serve",
        "--address=127.0.0.1:0",
        "--format=json",
        "--tls=self-signed",
    ]);
    let server = Process::start(command.arg("--tls-certificate-out").arg(&file));
    assert!(wait_until(LONG, || server.stdout().contains("https://")));
    let output = server.stdout();
    let mut words = output.split('"');
    let url = words.find(|word| word.starts_with("https")).unwrap();
    (server, url.to_owned(), file)
}

// compat: nighthawk_client | --tls-context | differs | suites without ECDHE and AEAD are replaced, with a warning
// compat: nighthawk_client | --transport-socket | differs | suites without ECDHE and AEAD are replaced, with a warning
#[test]
fn certificates_are_checked_where_an_authority_is_named() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (_server, url, entry) = self_signed(folders[0].path());
    let (_other, _, second) = self_signed(folders[1].path());
    let line = |authority: &Path| {
        let path = authority.display();
        format!(
            "--transport-socket '{{name: envoy.transport_sockets.tls, typed_config: \
             {{common_tls_context: {{validation_context: {{trusted_ca: {{filename: {path}}}}}}}}}}}' \
             --connections 1 {FEW} {url}"
        )
    };
    let result = measure(&line(&entry));
    assert_eq!(result.counter("benchmark.http_2xx"), 25);
    assert!(
        !result.log.contains("Certificates are not checked"),
        "{}",
        result.log
    );
    let ended = client(&line(&second));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("its certificate"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("--insecure"), "{}", ended.stderr);
}

// compat: nighthawk_client | --multi-target-use-https | works
#[test]
fn several_secure_targets_take_turns() {
    let Some(shown) = Shown::new("several_secure_targets_take_turns") else {
        return;
    };
    let origins = [shown.start(), shown.start(), shown.start()];
    let targets = origins
        .iter()
        .map(|value| format!("--multi-target-endpoint {}", address(value.url())));
    // One connection for each target, however long a handshake takes.
    let line = "--multi-target-path / --multi-target-use-https --connections 1";
    let line = format!("{line} {TURNS} {}", targets.collect::<Vec<_>>().join(" "));
    let result = measure(&line);
    assert_eq!(result.counter("default.total_match_count"), 3);
    assert_eq!(result.counter("ssl.handshake"), 3);
    // What the other two connections had under way is answered as well.
    let answered = result.counter("benchmark.http_2xx");
    assert!((60..=62).contains(&answered), "{answered}");
    let requests = origins.map(Origin::stop);
    assert!(requests.iter().all(|count| *count >= 5), "{requests:?}");
}

/// The first bytes of a client to a server that never answers.
fn hello(scheme: &str, flags: &str) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The failure of its connection ends the client.
    let line = "--rps 100 --connections 1 --duration 100";
    let (_named, process) = start_client(&format!("{line} {flags} {scheme}://{address}/"));
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = vec![0; 4096];
    let length = stream.read(&mut bytes).unwrap();
    bytes.truncate(length);
    drop((stream, listener));
    drop(process.finish(LONG));
    bytes
}

#[test]
fn the_requested_name_is_that_of_the_one_host_header() {
    let is_named = |bytes: &[u8]| bytes.windows(7).any(|part| part == b"sni.com");
    let is_tls = |bytes: &[u8]| bytes.first() == Some(&22);
    for flags in [
        "--request-header host:sni.com",
        "--h2 --request-header host:sni.com",
        "--h2 --request-header ':authority: sni.com'",
        "--transport-socket '{name: tls, typed_config: {sni: sni.com}}'",
    ] {
        let client_hello = hello("https", flags);
        assert!(is_tls(&client_hello) && is_named(&client_hello), "{flags}");
    }
    let client_hello = hello("https", "");
    assert!(is_tls(&client_hello) && !is_named(&client_hello));
    let client_hello = hello("http", "--request-header host:sni.com");
    assert!(!is_tls(&client_hello) && is_named(&client_hello));
    for flags in [
        "--h2 --request-header host:sni.com --request-header :authority:sni.com",
        "--request-header :authority:sni.com",
    ] {
        let client_hello = hello("https", flags);
        assert!(is_tls(&client_hello) && !is_named(&client_hello), "{flags}");
    }
}

// compat: nighthawk_client | --h2 | works
#[test]
fn http2_is_used_over_tls_with_a_server_that_chooses_no_protocol() {
    let test = "http2_is_used_over_tls_with_a_server_that_chooses_no_protocol";
    let Some(shown) = Shown::new(test) else {
        return;
    };
    let silent = shown
        .socket
        .replace("alpn_protocols: [ h2, http/1.1 ], ", "");
    assert_ne!(silent, shown.socket);
    let origin = start_with(&silent);
    let result = measure(&format!(
        "--h2 --max-active-requests 1 {FEW} {}",
        origin.url()
    ));
    assert_eq!(result.counter("benchmark.http_2xx"), 25);
    assert_eq!(result.counter("upstream_cx_http2_total"), 1);
    // A server that chooses another protocol does not speak it.
    let http1 = shown.socket.replace("[ h2, http/1.1 ]", "[ http/1.1 ]");
    let origin = start_with(&http1);
    let ended = client(&format!("--h2 {FEW} {}", origin.url()));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
}

// compat: nighthawk_test_server | filter_chain_match.server_names | works
/// Two filter chains on one port: TLS for the clients that request `sni.com`, plain HTTP for all
/// others.
#[test]
fn the_requested_name_chooses_the_filter_chain() {
    let Some(shown) = Shown::new("the_requested_name_chooses_the_filter_chain") else {
        return;
    };
    let chain = "filters:\n      - name: envoy.filters.network.http_connection_manager";
    let of_name = format!(
        "filter_chain_match: {{ server_names: [ sni.com ] }}\n      transport_socket: {}\n      {chain}",
        shown.socket
    );
    let setup = Setup {
        with_admin: true,
        ..Setup::default()
    };
    let yaml = setup.yaml();
    let (head, plain) = yaml.split_once(chain).unwrap();
    let origin = start_file(&format!("{head}{of_name}{plain}    - {chain}{plain}"), true);
    let secure = origin.url().replace("http://", "https://");
    for (protocol, header) in [
        ("", "host:sni.com"),
        ("--h2", "host:sni.com"),
        ("--h2", ":authority:sni.com"),
    ] {
        let line = format!("{protocol} --request-header {header} {FEW} {secure}");
        let result = measure(&line);
        assert!(result.counter("benchmark.http_2xx") >= 25, "{line}");
        assert!(result.counter("ssl.handshake") >= 1, "{line}");
    }
    let plain = origin.url().replace("https://", "http://");
    let result = measure(&format!("{FEW} {plain}"));
    assert!(result.counter("benchmark.http_2xx") >= 25);
    assert_eq!(result.counter("ssl.handshake"), 0);
    let both = "--h2 --request-header host:sni.com --request-header :authority:sni.com";
    for headers in ["", both] {
        let ended = client(&format!(
            "--output-format json {headers} --rps 20 --duration 100 {secure}"
        ));
        assert_eq!(ended.code, 1, "{headers}: {}", ended.stderr);
        let result = Found::read(&ended);
        assert!(result.counter("benchmark.pool_connection_failure") > 0);
    }
}
