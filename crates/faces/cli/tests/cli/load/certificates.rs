//! Certificates of every kind that TLS is spoken with, made by openssl, and those
//! that it is not spoken with any more.

use std::path::{Path, PathBuf};
use std::process::Command;

use stillwell_testkit::{Process, program_or_skip};
use tempfile::TempDir;

use super::{LONG, STILLWELL};
use crate::both_ends::ends::{Certificate, Report, Serving, load, start_on_free_ports};

/// Kinds of keys: how openssl makes one.
const KINDS: [(&str, &[&str]); 6] = [
    ("rsa-2048", &["-newkey", "rsa:2048"]),
    ("rsa-3072", &["-newkey", "rsa:3072"]),
    ("rsa-4096", &["-newkey", "rsa:4096"]),
    (
        "p-256",
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ),
    (
        "p-384",
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
    ),
    ("ed25519", &["-newkey", "ed25519"]),
];

/// A folder of certificates for this host, each its own authority.
struct Made {
    openssl: PathBuf,
    folder: TempDir,
}

impl Made {
    fn new(test: &str) -> Option<Self> {
        let openssl = program_or_skip(test, "openssl")?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self { openssl, folder })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new(&self.openssl);
        let ended = Process::start(command.args(arguments)).finish(LONG);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
    }

    /// Makes the certificate `name` with a key as `kind` says.
    fn make(&self, name: &str, kind: &[&str]) -> Shown {
        self.make_as(name, "CA:FALSE", kind)
    }

    fn make_as(&self, name: &str, whose: &str, kind: &[&str]) -> Shown {
        let (certificate, key) = (
            self.path(&format!("{name}.pem")),
            self.path(&format!("{name}.key")),
        );
        let common = [
            "req",
            "-x509",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ];
        let names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
        let whose = format!("basicConstraints=critical,{whose}");
        let entry = ["-addext", &whose];
        let files = ["-out", &certificate, "-keyout", &key];
        self.run(&[common.as_slice(), &names, &entry, &files, kind].concat());
        Shown { certificate, key }
    }
}

struct Shown {
    certificate: String,
    key: String,
}

impl Shown {
    /// The flags that show it, of either side.
    fn flags(&self) -> [String; 2] {
        [
            format!("--certificate={}", self.certificate),
            format!("--key={}", self.key),
        ]
    }

    fn trusted(&self) -> String {
        format!("--ca={}", self.certificate)
    }
}

#[test]
fn certificates_of_every_kind_of_today_are_shown_and_checked() {
    let test = "certificates_of_every_kind_of_today_are_shown_and_checked";
    let Some(made) = Made::new(test) else {
        return;
    };
    for (name, kind) in KINDS {
        let shown = made.make(name, kind);
        let [certificate, key] = shown.flags();
        let server = Serving::start(&[&certificate, &key]);
        for protocol in ["http1", "http2"] {
            let (trusted, protocol) = (shown.trusted(), format!("--protocol={protocol}"));
            load(&[&server.url, &trusted, &protocol, "-n20", "-c2"]).assert_all_well(20);
        }
        let counts = server.stop();
        assert_eq!(counts["requests"], 40, "{name}");
        assert_eq!(counts["handshakes_failed"], 0, "{name}");
    }
}

/// A company's authority is often in the stores of its hosts only.
#[test]
fn the_word_system_names_the_certificates_of_the_host() {
    let made = Certificate::new();
    let path = |name: &str| made.path(name).display().to_string();
    let shown = Shown {
        certificate: path("certificate.pem"),
        key: path("key.pem"),
    };
    let [certificate, key] = shown.flags();
    let server = Serving::start(&[&certificate, &key]);
    let load_with = |file: &str| {
        let mut command = Command::new(STILLWELL);
        command.args(["load", "--quiet", "--output-format=stillwell"]);
        command.args([server.url.as_str(), "--ca=system", "-n6", "-c2"]);
        command.env("SSL_CERT_FILE", file);
        Process::start(command.env_remove("SSL_CERT_DIR")).finish(LONG)
    };
    Report::of(load_with(&shown.certificate)).assert_all_well(6);
    let refused = load_with(&shown.key);
    let stderr = refused.stderr;
    assert_eq!(refused.code, 2, "{stderr}");
    assert!(stderr.contains("set SSL_CERT_FILE"), "{stderr}");
    server.stop();
}

/// openssl makes certificates of authorities by default: a server that shows one gets a
/// message about it.
#[test]
fn a_certificate_for_authorities_is_distinguished_from_a_servers_own() {
    let test = "a_certificate_for_authorities_is_told_from_a_servers_own";
    let Some(made) = Made::new(test) else {
        return;
    };
    let shown = made.make_as("authority", "CA:TRUE", KINDS[3].1);
    let [certificate, key] = shown.flags();
    let server = Serving::start(&[&certificate, &key]);
    let report = load(&[&server.url, &shown.trusted(), "-n6", "-c2"]);
    assert_eq!(
        report.outcome("handshake_failed"),
        6,
        "{:?}",
        report.outcomes()
    );
    let expected = "replace it by one with basicConstraints=CA:FALSE";
    assert!(
        report.findings().contains(expected),
        "{}",
        report.findings()
    );
    server.stop();
}

/// A client's certificate of every kind, and none where one is wanted.
#[test]
fn both_sides_may_show_a_certificate() {
    let Some(made) = Made::new("both_sides_may_show_a_certificate") else {
        return;
    };
    let entry = made.make("server", KINDS[3].1);
    let [certificate, key] = entry.flags();
    for (name, kind) in KINDS {
        let client = made.make(name, kind);
        let known = format!("--client-ca={}", client.certificate);
        let server = Serving::start(&[&certificate, &key, &known]);
        let [shown, with_key] = client.flags();
        let trusted = entry.trusted();
        load(&[&server.url, &trusted, &shown, &with_key, "-n6", "-c2"]).assert_all_well(6);
        let bare = load(&[&server.url, &trusted, "-n6", "-c2"]);
        assert_eq!(bare.outcome("ok"), 0, "{name}");
        assert_eq!((bare.ended(), bare.begun()), (6, 6), "{name}");
        assert_eq!(server.stop()["requests"], 6, "{name}");
    }
}

fn refused(command: &str, arguments: &[&str]) -> String {
    let mut entry = Command::new(STILLWELL);
    let ended = Process::start(entry.arg(command).args(arguments)).finish(LONG);
    assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
    ended.stderr
}

/// DSA has gone from TLS with version 1.3, and from this library before.
#[test]
fn keys_that_tls_cannot_use_are_refused_by_name() {
    let test = "keys_that_tls_cannot_use_are_refused_by_name";
    let Some(made) = Made::new(test) else {
        return;
    };
    let parameters = made.path("dsa.parameters");
    made.run(&["dsaparam", "-out", &parameters, "2048"]);
    let dsa = made.make("dsa", &["-newkey", &format!("dsa:{parameters}")]);
    let old = made.path("dsa.old");
    made.run(&["dsa", "-in", &dsa.key, "-out", &old]);
    let [certificate, key] = dsa.flags();
    let expected = "is for a DSA key, which TLS no longer supports: make one with RSA";
    let url = "https://127.0.0.1:1/";
    let rsa = made.make("rsa", KINDS[0].1);
    let [rsa_certificate, _] = rsa.flags();
    let old = format!("--key={old}");
    for (command, arguments, file) in [
        ("serve", vec![certificate.as_str(), &key], "dsa.pem"),
        ("serve", vec![&rsa_certificate, &key], "dsa.key"),
        ("serve", vec![&rsa_certificate, &old], "dsa.old"),
        ("load", vec![url, "-k", &certificate, &key], "dsa.pem"),
        ("load", vec![url, &dsa.trusted()], "dsa.pem"),
    ] {
        let output = refused(command, &arguments);
        assert!(
            output.contains(expected) && output.contains(file),
            "{arguments:?}: {output}"
        );
    }
    // Of a size or on a curve that is not taken: the files are named, too.
    let small = made.make("small", &["-newkey", "rsa:1024"]);
    let [certificate, key] = small.flags();
    let output = refused("serve", &[&certificate, &key]);
    assert!(
        output.contains("small.pem") && output.contains("small.key"),
        "{output}"
    );
    // The certificate of another key.
    let output = refused(
        "serve",
        &[&rsa_certificate, &format!("--key={}", small.key)],
    );
    assert!(
        output.contains("rsa.pem") && output.contains("small.key"),
        "{output}"
    );
}

/// A server with a DSA certificate alone has nothing in common with us.
#[test]
fn a_server_that_has_dsa_alone_is_counted_and_reported() {
    let test = "a_server_that_has_dsa_alone_is_counted_and_reported";
    let Some(made) = Made::new(test) else {
        return;
    };
    let parameters = made.path("dsa.parameters");
    made.run(&["dsaparam", "-out", &parameters, "2048"]);
    let dsa = made.make("dsa", &["-newkey", &format!("dsa:{parameters}")]);
    let report = against_openssl(&made, &["-cert", &dsa.certificate, "-key", &dsa.key], "-k");
    assert_eq!(report.ended.code, 3, "{}", report.ended.stderr);
    assert_eq!(
        report.outcome("handshake_failed"),
        6,
        "{:?}",
        report.outcomes()
    );
    assert!(
        report.findings().contains("no TLS version or cipher suite"),
        "{}",
        report.findings()
    );
}

/// Six requests to openssl's own server.
fn against_openssl(made: &Made, shows: &[&str], words: &str) -> Report {
    let (_server, [port]) = start_on_free_ports(|[port]| {
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(&made.openssl);
        command
            .args(["s_server", "-accept", &address, "-www"])
            .args(shows);
        Process::start(&mut command)
    });
    let url = format!("https://127.0.0.1:{port}/");
    let arguments = [url.as_str(), "-n6", "-c1"]
        .into_iter()
        .chain(words.split_whitespace());
    load(&arguments.collect::<Vec<_>>())
}

/// It knows one name, and ends every handshake that requests another.
#[test]
fn a_server_that_insists_on_its_name_gets_it() {
    let test = "a_server_that_insists_on_its_name_is_asked_for_it";
    let Some(made) = Made::new(test) else {
        return;
    };
    let shown = made.make("insists", KINDS[3].1);
    let shows = [
        "-cert",
        &shown.certificate,
        "-key",
        &shown.key,
        "-cert2",
        &shown.certificate,
        "-key2",
        &shown.key,
        "-servername",
        "the.name",
        "-servername_fatal",
    ];
    let report = against_openssl(&made, &shows, "-k --sni=the.name");
    report.assert_all_well(6);
    let report = against_openssl(&made, &shows, "-k --sni=another.name");
    assert_eq!(report.ended.code, 3, "{}", report.ended.stderr);
    assert_eq!(
        report.outcome("handshake_failed"),
        6,
        "{:?}",
        report.outcomes()
    );
    let findings = report.findings();
    assert!(
        findings.contains("it does not serve that host name"),
        "{findings}"
    );
    assert!(findings.contains("set the name with --sni"), "{findings}");
}

/// The keys are of a kind that needs no guess.
#[test]
fn a_certificate_in_place_of_a_key_is_distinguished() {
    let test = "a_certificate_in_place_of_a_key_is_told_apart";
    let Some(made) = Made::new(test) else {
        return;
    };
    let shown = made.make("shown", KINDS[3].1);
    let swapped = Shown {
        certificate: shown.key.clone(),
        key: shown.certificate.clone(),
    };
    let [certificate, key] = swapped.flags();
    let output = refused("serve", &[&certificate, &key]);
    let name = Path::new(&shown.key)
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(
        output.contains("holds no certificate") && output.contains(&name),
        "{output}"
    );
}
