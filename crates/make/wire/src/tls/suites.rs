//! Versions and cipher suites by name.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{CipherSuite, ProtocolVersion, SignatureScheme, SupportedProtocolVersion, version};
use stillwell_plan::tls::{TlsSuites, TlsVersion};

use super::TlsError;
use crate::quic::noted::noting;

/// Suites by OpenSSL's names, which are those of Envoy's statistics, too.
const NAMES: &[(CipherSuite, &str)] = &[
    (
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_128_GCM_SHA256",
    ),
    (
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        "TLS_AES_256_GCM_SHA384",
    ),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-CHACHA20-POLY1305",
    ),
];

/// The library's parts, with the requested suites, and the versions.
pub(super) fn provider(
    suites: &TlsSuites,
) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), TlsError> {
    let mut provider = aws_lc_rs::default_provider();
    if !suites.names.is_empty() {
        let wanted = suites.names.iter().map(|name| suite(name));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        let known = std::mem::take(&mut provider.cipher_suites);
        let of = |suite: &CipherSuite| known.iter().copied().find(|known| known.suite() == *suite);
        provider.cipher_suites = wanted.iter().filter_map(of).collect();
    }
    let is_requested = |version: TlsVersion| {
        suites.version_min.is_none_or(|least| least <= version)
            && suites
                .version_max
                .is_none_or(|greatest| version <= greatest)
    };
    let has_suite = |version: ProtocolVersion| {
        let mut all = provider.cipher_suites.iter();
        all.any(|suite| suite.version().version == version)
    };
    let versions = [
        (TlsVersion::V1_2, &version::TLS12),
        (TlsVersion::V1_3, &version::TLS13),
    ];
    let versions: Vec<_> = versions
        .into_iter()
        .filter(|(name, version)| is_requested(*name) && has_suite(version.version))
        .map(|(_, version)| version)
        .collect();
    if versions.is_empty() {
        return Err(TlsError::NothingLeft);
    }
    // The first use seeds the generator, which takes some ten milliseconds: now, and not in
    // the first handshake of a worker.
    let seeded = provider.secure_random.fill(&mut [0; 8]);
    seeded.map_err(|_| TlsError::Refused {
        source: rustls::Error::FailedToGetRandomBytes,
    })?;
    Ok((Arc::new(provider), versions))
}

/// The same for QUIC, which takes TLS 1.3 alone.
pub(super) fn quic_provider(
    suites: &TlsSuites,
) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), TlsError> {
    let (provider, mut versions) = match provider(suites) {
        Err(TlsError::NothingLeft) => return Err(TlsError::NoTls13),
        provider => provider?,
    };
    versions.retain(|version| version.version == ProtocolVersion::TLSv1_3);
    if versions.is_empty() {
        return Err(TlsError::NoTls13);
    }
    Ok((Arc::new(noting(&provider)), versions))
}

/// The suite that is called `name` by OpenSSL, IANA or rustls, in any case.
fn suite(name: &str) -> Result<CipherSuite, TlsError> {
    let is_called = |(suite, known): &&(CipherSuite, &str)| {
        known.eq_ignore_ascii_case(name)
            || suite
                .as_str()
                .is_some_and(|iana| iana.eq_ignore_ascii_case(name))
    };
    let suite = NAMES.iter().find(is_called).map(|(suite, _)| *suite);
    suite.ok_or_else(|| TlsError::Suite {
        name: name.to_owned(),
        accepted: NAMES
            .iter()
            .map(|(_, name)| *name)
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// OpenSSL's name of a suite.
pub(crate) fn name_of(suite: CipherSuite) -> &'static str {
    let named = NAMES.iter().find(|(known, _)| *known == suite);
    named.map_or("unknown", |(_, name)| name)
}

/// The name of a scheme in the registry of TLS, which is that of Envoy's statistics, too.
pub(crate) const fn name_of_signature(scheme: SignatureScheme) -> Option<&'static str> {
    Some(match scheme {
        SignatureScheme::RSA_PKCS1_SHA256 => "rsa_pkcs1_sha256",
        SignatureScheme::RSA_PKCS1_SHA384 => "rsa_pkcs1_sha384",
        SignatureScheme::RSA_PKCS1_SHA512 => "rsa_pkcs1_sha512",
        SignatureScheme::ECDSA_NISTP256_SHA256 => "ecdsa_secp256r1_sha256",
        SignatureScheme::ECDSA_NISTP384_SHA384 => "ecdsa_secp384r1_sha384",
        SignatureScheme::ECDSA_NISTP521_SHA512 => "ecdsa_secp521r1_sha512",
        SignatureScheme::RSA_PSS_SHA256 => "rsa_pss_rsae_sha256",
        SignatureScheme::RSA_PSS_SHA384 => "rsa_pss_rsae_sha384",
        SignatureScheme::RSA_PSS_SHA512 => "rsa_pss_rsae_sha512",
        SignatureScheme::ED25519 => "ed25519",
        SignatureScheme::ED448 => "ed448",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use stillwell_metric::HandshakePart;

    use super::*;

    #[test]
    fn every_suite_of_the_library_has_a_name() {
        for suite in aws_lc_rs::ALL_CIPHER_SUITES {
            assert_ne!(name_of(suite.suite()), "unknown", "{suite:?}");
        }
        assert_eq!(aws_lc_rs::ALL_CIPHER_SUITES.len(), NAMES.len());
    }

    #[test]
    fn every_name_of_the_library_has_a_counter() {
        let suites = NAMES.iter().map(|(_, name)| *name);
        let suites = suites.map(|name| (HandshakePart::Suite, name));
        let groups = aws_lc_rs::ALL_KX_GROUPS.iter();
        let groups = groups.filter_map(|group| group.name().as_str());
        let groups = groups.map(|name| (HandshakePart::Group, name));
        let verifier = aws_lc_rs::default_provider().signature_verification_algorithms;
        let schemes = verifier.supported_schemes().into_iter();
        let schemes = schemes.filter_map(name_of_signature);
        let schemes = schemes.map(|name| (HandshakePart::Signature, name));
        for (part, name) in suites.chain(groups).chain(schemes) {
            assert!(part.names().contains(&name), "{part:?}: {name}");
        }
    }

    fn versions_and_suites_of(
        names: &[&str],
        min: Option<TlsVersion>,
    ) -> Result<Vec<&'static str>, String> {
        let suites = TlsSuites {
            version_min: min,
            version_max: None,
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        let (provider, versions) = provider(&suites).map_err(|error| error.to_string())?;
        let mut versions_and_suites: Vec<_> =
            versions.iter().filter_map(|v| v.version.as_str()).collect();
        versions_and_suites.extend(
            provider
                .cipher_suites
                .iter()
                .map(|suite| name_of(suite.suite())),
        );
        Ok(versions_and_suites)
    }

    #[test]
    fn suites_are_taken_by_either_name_and_in_order() {
        let names = [
            "ECDHE-RSA-AES256-GCM-SHA384",
            "tls_ecdhe_rsa_with_aes_128_gcm_sha256",
        ];
        let versions_and_suites = versions_and_suites_of(&names, None).unwrap();
        let expected = [
            "TLSv1_2",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ];
        assert_eq!(versions_and_suites, expected);
        assert_eq!(
            versions_and_suites_of(&["TLS_AES_128_GCM_SHA256"], None).unwrap()[0],
            "TLSv1_3"
        );
    }

    #[test]
    fn suites_that_there_are_none_of_are_refused_by_name() {
        let error = versions_and_suites_of(&["AES128-SHA"], None).unwrap_err();
        assert!(
            error.contains("`AES128-SHA`: the accepted ones are TLS_AES_128"),
            "{error}"
        );
        let error =
            versions_and_suites_of(&["ECDHE-RSA-AES128-GCM-SHA256"], Some(TlsVersion::V1_3))
                .unwrap_err();
        assert!(error.contains("no cipher suite is left"), "{error}");
    }
}
