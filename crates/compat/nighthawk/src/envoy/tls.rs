//! TLS as Envoy has it.

use std::path::PathBuf;

use stillwell_plan::tls::{
    Alpn, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites, TlsVersion,
};
use stillwell_text::{Keys, Node, Reader, code};

use super::common::{check_type, config_of, only, warn_unused};

const VERSIONS: &[(&str, Option<TlsVersion>)] = &[
    ("TLS_AUTO", None),
    ("TLSv1_2", Some(TlsVersion::V1_2)),
    ("TLSv1_3", Some(TlsVersion::V1_3)),
];

/// Reads a transport socket of TLS, or of QUIC if `is_quic`.
pub(super) fn read_transport_socket(
    reader: &Reader,
    node: &Node,
    is_quic: bool,
) -> Option<ServerTlsPlan> {
    let config = config_of(reader, node, "transport socket")?;
    if !is_quic {
        return read_context(reader, config);
    }
    let keys = ["@type", "downstream_tls_context", "enable_early_data"];
    let map = reader.map(config, &Keys::new("QUIC transport", &keys))?;
    check_type(reader, &map, &["QuicDownstreamTransport"]);
    warn_unused(reader, &map, &["enable_early_data"]);
    Some(ServerTlsPlan {
        alpn: vec![Alpn::Http3],
        ..read_context(reader, map.required("downstream_tls_context")?)?
    })
}

pub(super) fn read_context(reader: &Reader, node: &Node) -> Option<ServerTlsPlan> {
    let keys = ["@type", "common_tls_context", "require_client_certificate"];
    let map = reader.map(node, &Keys::new("TLS context", &keys))?;
    check_type(reader, &map, &["DownstreamTlsContext"]);
    let is_client_certificate_required = map.take("require_client_certificate");
    let is_client_certificate_required =
        is_client_certificate_required.is_some_and(|node| reader.boolean(node) == Some(true));
    let common = map.required("common_tls_context")?;
    let keys = [
        "tls_params",
        "tls_certificates",
        "alpn_protocols",
        "validation_context",
    ];
    let map = reader.map(common, &Keys::new("TLS context", &keys))?;
    let identity = map.required("tls_certificates");
    let identity = identity.and_then(|node| only(reader, node, "certificate"));
    let identity = identity.and_then(|node| read_identity(reader, node));
    let alpn = map.read_or("alpn_protocols", Vec::new(), |node| read_alpn(reader, node));
    let suites = map.read("tls_params", |node| read_suites(reader, node));
    let roots = map.read_or("validation_context", None, |node| read_roots(reader, node));
    let client_roots: Vec<PathBuf> = roots?.into_iter().collect();
    if is_client_certificate_required && client_roots.is_empty() {
        let message = "a client certificate is required, but no certificate authority is named";
        let error = reader.error(code::MISSING_KEY, common.span, message);
        reader.report(error.help("name one in `validation_context: {trusted_ca: {filename: …}}`"));
    }
    Some(ServerTlsPlan {
        identity: ServerIdentity::Given(identity?),
        alpn: alpn?,
        client_roots: if is_client_certificate_required {
            client_roots
        } else {
            Vec::new()
        },
        resumption: true,
        suites: with_version_3(suites?.unwrap_or_default()),
    })
}

pub(super) fn read_identity(reader: &Reader, node: &Node) -> Option<TlsIdentity> {
    let keys = ["certificate_chain", "private_key"];
    let map = reader.map(node, &Keys::new("certificate", &keys))?;
    let certificates = map.required("certificate_chain");
    let key = map.required("private_key");
    let certificates = certificates.and_then(|node| read_source(reader, node));
    let key = key.and_then(|node| read_source(reader, node));
    Some(TlsIdentity {
        certificates: certificates?,
        key: key?,
    })
}

fn read_source(reader: &Reader, node: &Node) -> Option<PemSource> {
    let keys = ["filename", "inline_string"];
    let map = reader.map(node, &Keys::new("data source", &keys))?;
    let (key, node) = map.one_of(&keys)?;
    let text = reader.text(node)?;
    Some(match key {
        "filename" => PemSource::File(text.into()),
        _ => PemSource::Text(text.to_owned()),
    })
}

pub(super) fn read_alpn(reader: &Reader, node: &Node) -> Option<Vec<Alpn>> {
    let words = [
        ("h2", Alpn::Http2),
        ("http/1.1", Alpn::Http1),
        ("h3", Alpn::Http3),
    ];
    let items = reader.list(node)?;
    items
        .iter()
        .map(|item| reader.word(item, "protocol", &words))
        .collect()
}

pub(super) fn read_suites(reader: &Reader, node: &Node) -> Option<TlsSuites> {
    let keys = [
        "tls_minimum_protocol_version",
        "tls_maximum_protocol_version",
        "cipher_suites",
    ];
    let map = reader.map(node, &Keys::new("TLS parameters", &keys))?;
    let version = |key| map.read_or(key, None, |node| reader.word(node, "version", VERSIONS));
    let (min, max) = (version(keys[0]), version(keys[1]));
    let names = map.take("cipher_suites").map(|node| reader.texts(node));
    let mut suites: Vec<String> = Vec::new();
    for list in names.unwrap_or_default() {
        for name in suite_names(&list) {
            let name = replacement(name).unwrap_or(name);
            if !suites.iter().any(|suite| suite == name) {
                suites.push(name.to_owned());
            }
        }
        for (old, new) in replaced_suites(&list) {
            let message = format!("`{old}` is not supported; `{new}` is used instead");
            reader.report(reader.warning(code::NO_EFFECT, node.span, message));
        }
    }
    Some(TlsSuites {
        version_min: min?,
        version_max: max?,
        names: suites,
    })
}

/// Suites without ECDHE or AEAD, and the nearest ones that have both.
const REPLACEMENTS: [(&str, &str); 10] = [
    ("ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("ECDHE-RSA-AES256-SHA", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("AES128-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("AES256-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("AES128-SHA", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("AES256-SHA", "ECDHE-RSA-AES256-GCM-SHA384"),
];

/// Returns the suites in `text` that are not built, each with the one that takes its place.
#[must_use]
pub fn replaced_suites(text: &str) -> Vec<(&str, &'static str)> {
    let pair = |name| Some((name, replacement(name)?));
    suite_names(text).filter_map(pair).collect()
}

fn replacement(name: &str) -> Option<&'static str> {
    let mut all = REPLACEMENTS.iter();
    all.find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// Returns the names in OpenSSL's lists: suites of equal rank are in brackets. After `-ALL` only
/// named suites remain.
fn suite_names(list: &str) -> impl Iterator<Item = &str> {
    let names = list.split([':', '|', '[', ']', '{', '}', '"', '\'', ',', ' ']);
    names.filter(|name| !matches!(*name, "" | "ALL" | "-ALL" | "!ALL"))
}

/// Reads the file of authorities. There is none where untrusted certificates are accepted.
pub(super) fn read_roots(reader: &Reader, node: &Node) -> Option<Option<PathBuf>> {
    let keys = ["trusted_ca", "trust_chain_verification"];
    let map = reader.map(node, &Keys::new("validation context", &keys))?;
    let verifies = map.read_or("trust_chain_verification", true, |node| {
        let words = [("VERIFY_TRUST_CHAIN", true), ("ACCEPT_UNTRUSTED", false)];
        reader.word(node, "verification", &words)
    })?;
    let Some(node) = map.take("trusted_ca") else {
        return Some(None);
    };
    let map = reader.map(node, &Keys::new("data source", &["filename"]))?;
    let path = reader.text(map.required("filename")?)?;
    Some(verifies.then(|| path.into()))
}

/// Lists of suites are about version 1.2; of version 1.3 there are always all.
pub(super) fn with_version_3(mut suites: TlsSuites) -> TlsSuites {
    const OF_VERSION_3: [&str; 3] = [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    ];
    let has_version_3 = suites.version_max != Some(TlsVersion::V1_2);
    if has_version_3 && !suites.names.is_empty() {
        suites.names.extend(OF_VERSION_3.map(str::to_owned));
    }
    suites
}
