//! TLS of clients as Envoy has it.

use stillwell_plan::tls::{ClientTlsPlan, RootSource, TlsSuites, TlsVersion, Verification};
use stillwell_text::{Keys, Node, Reader, code};

use super::common::{check_type, config_of, only};
use super::tls::{read_alpn, read_identity, read_roots, read_suites, with_version_3};

/// The suites that Envoy's clients offer, in its order.
const SUITES: [&str; 6] = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
];

/// Returns the default TLS of Envoy's clients: at most version 1.2, its suites in its order,
/// and certificates unchecked.
#[must_use]
pub fn upstream_tls() -> ClientTlsPlan {
    ClientTlsPlan {
        verification: Verification::None,
        identity: None,
        alpn: Vec::new(),
        server_name: None,
        resumption: true,
        suites: TlsSuites {
            version_min: None,
            version_max: Some(TlsVersion::V1_2),
            names: SUITES.map(str::to_owned).to_vec(),
        },
    }
}

/// The type of a socket decides, its name does not.
pub(super) fn read_transport_socket(reader: &Reader, node: &Node) -> Option<ClientTlsPlan> {
    let config = config_of(reader, node, "transport socket")?;
    let of = config.entry("@type").and_then(|node| reader.text(node));
    let is_quic = of.map_or_else(
        || config.entry("upstream_tls_context").is_some(),
        |of| of.ends_with(".QuicUpstreamTransport"),
    );
    if !is_quic {
        return read_context(reader, config);
    }
    let keys = Keys::new("transport socket", &["@type", "upstream_tls_context"]);
    let map = reader.map(config, &keys)?;
    check_type(reader, &map, &["QuicUpstreamTransport"]);
    read_context(reader, map.required("upstream_tls_context")?)
}

pub(super) fn read_context(reader: &Reader, node: &Node) -> Option<ClientTlsPlan> {
    let keys = ["@type", "common_tls_context", "sni", "max_session_keys"];
    let keys = Keys::new("TLS context", &keys).known(&["allow_renegotiation"]);
    let map = reader.map(node, &keys)?;
    check_type(reader, &map, &["UpstreamTlsContext"]);
    let mut plan = upstream_tls();
    let server_name = map.read("sni", |node| reader.text(node))?;
    plan.server_name = server_name.map(str::to_owned);
    if let Some(node) = map.take("max_session_keys") {
        plan.resumption = reader.whole(node, 0, u32::MAX)? > 0;
    }
    let Some(common) = map.take("common_tls_context") else {
        return Some(plan);
    };
    let keys = [
        "tls_params",
        "tls_certificates",
        "alpn_protocols",
        "validation_context",
    ];
    let map = reader.map(common, &Keys::new("TLS context", &keys))?;
    if let Some(node) = map.take("alpn_protocols") {
        // The protocol of the load decides the offered ones.
        read_alpn(reader, node)?;
    }
    if let Some(node) = map.take("tls_certificates") {
        plan.identity = Some(read_identity(reader, only(reader, node, "certificate")?)?);
    }
    if let Some(node) = map.take("tls_params") {
        let suites = read_suites(reader, node)?;
        plan.suites.version_min = suites.version_min;
        plan.suites.version_max = suites.version_max.or(Some(TlsVersion::V1_2));
        if !suites.names.is_empty() {
            plan.suites.names = suites.names;
        }
        plan.suites = with_version_3(plan.suites);
    }
    if let Some(node) = map.take("validation_context")
        && let Some(path) = read_roots(reader, node)?
    {
        plan.verification = Verification::Roots {
            extra: vec![RootSource::File(path)],
            public: false,
        };
    }
    check_versions(reader, common, &plan.suites);
    Some(plan)
}

fn check_versions(reader: &Reader, node: &Node, suites: &TlsSuites) {
    if suites.version_min > suites.version_max {
        let message = "the minimum version of TLS is above the maximum, which is 1.2 for clients";
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.help("name `tls_maximum_protocol_version: TLSv1_3` as well"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::EnvoyMessage;

    fn read(text: &str) -> Result<ClientTlsPlan, String> {
        let message = EnvoyMessage::parse("--transport-socket", text);
        let read = message.and_then(|message| message.transport_socket());
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    #[test]
    fn a_socket_is_read_in_the_shapes_of_both_versions() {
        for of in [
            "envoy.api.v2.auth.UpstreamTlsContext",
            "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        ] {
            let text = format!(
                r#"{{name:"envoy.transport_sockets.tls",typed_config:{{"@type":"type.googleapis.com/{of}",
                    common_tls_context:{{tls_params:{{cipher_suites:["-ALL:ECDHE-RSA-AES128-SHA"]}}}}}}}}"#
            );
            let plan = read(&text).unwrap();
            // The library has no suites without AEAD.
            assert_eq!(plan.suites.names, ["ECDHE-RSA-AES128-GCM-SHA256"]);
            assert_eq!(plan.suites.version_max, Some(TlsVersion::V1_2));
            assert_eq!(plan.verification, Verification::None);
        }
        let plan = read(
            "{name: tls, typed_config: {sni: a.b, max_session_keys: 0, common_tls_context: \
             {tls_params: {tls_maximum_protocol_version: TLSv1_3, cipher_suites: \
             ['[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]']}, \
             validation_context: {trusted_ca: {filename: ca.pem}}}}}",
        )
        .unwrap();
        assert_eq!(plan.server_name.as_deref(), Some("a.b"));
        assert!(!plan.resumption);
        assert_eq!(plan.suites.names.len(), 5);
        assert!(matches!(
            plan.verification,
            Verification::Roots { public: false, .. }
        ));
        let empty = "{name: tls, typed_config: {common_tls_context: {validation_context: {}}}}";
        assert_eq!(read(empty), Ok(upstream_tls()));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let in_context = |text: &str| format!("{{name: tls, typed_config: {text}}}");
        for (text, expected) in [
            ("{name: tls}".to_owned(), "`typed_config` is missing"),
            (
                in_context("{allow_renegotiation: true}"),
                "`allow_renegotiation` is not supported yet",
            ),
            (in_context("{snii: a}"), "did you mean `sni`?"),
            (
                in_context(r#"{"@type": "a.b/c.DownstreamTlsContext"}"#),
                "`a.b/c.DownstreamTlsContext` is not accepted here",
            ),
            (
                in_context(
                    "{common_tls_context: {tls_params: {tls_minimum_protocol_version: TLSv1_3}}}",
                ),
                "the minimum version of TLS is above the maximum",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{expected}:\n{error}");
        }
    }
}
