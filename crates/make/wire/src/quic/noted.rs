//! Results of a handshake that the library does not expose.
//!
//! QUIC keeps its TLS private, and the library the scheme of a signature. So the parts that TLS is
//! made of note their use, on the thread that uses them. After each datagram or record that a
//! connection takes, its caller reads the notes.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{cipher_suite, kx_group};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Suite};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CipherSuite, DigitallySignedStruct, Error, NamedGroup, ProtocolVersion, SignatureAlgorithm,
    SignatureScheme, SupportedCipherSuite, Tls13CipherSuite,
};

/// Notes on one handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// The suite whose keys were made last.
    pub(super) suite: Option<CipherSuite>,
    /// The group whose key exchange was completed last.
    pub(super) group: Option<NamedGroup>,
    /// The scheme of the server's signature.
    pub(crate) signature: Option<SignatureScheme>,
    /// True if a certificate was checked or shown: no session was resumed.
    pub(super) is_full: bool,
    /// Reason for which the peer's certificate was refused.
    pub(super) failure: Option<Error>,
}

thread_local! {
    static NOTED: RefCell<Noted> = RefCell::default();
}

impl Noted {
    /// Takes the notes since the last call.
    pub(crate) fn take() -> Self {
        NOTED.take()
    }

    /// Adds what was noted since.
    pub(super) fn update(&mut self) {
        let new = Self::take();
        self.suite = new.suite.or(self.suite);
        self.group = new.group.or(self.group);
        self.signature = new.signature.or(self.signature);
        self.is_full |= new.is_full;
        self.failure = new.failure.or_else(|| self.failure.take());
    }
}

fn note(change: impl FnOnce(&mut Noted)) {
    NOTED.with_borrow_mut(change);
}

/// The same suites and groups, which note that they are used.
pub(crate) fn noting(provider: &CryptoProvider) -> CryptoProvider {
    let noting_suite = |suite: &SupportedCipherSuite| {
        let suite = SUITES
            .iter()
            .find(|noting| noting.common.suite == suite.suite());
        suite.map(SupportedCipherSuite::Tls13)
    };
    let group = |group: &&'static dyn SupportedKxGroup| {
        let noting = GROUPS.iter().find(|noting| noting.0.name() == group.name());
        noting.map_or(*group, |noting| noting as &'static dyn SupportedKxGroup)
    };
    CryptoProvider {
        cipher_suites: provider
            .cipher_suites
            .iter()
            .filter_map(noting_suite)
            .collect(),
        kx_groups: provider.kx_groups.iter().map(group).collect(),
        ..provider.clone()
    }
}

/// The suite of packets before there are keys (RFC 9001, 5.2).
pub(super) fn initial_suite() -> Option<Suite> {
    match cipher_suite::TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => suite.quic_suite(),
        SupportedCipherSuite::Tls12(_) => None,
    }
}

static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
    let all = NOTING.iter();
    let suites = all.filter_map(|algorithm| match algorithm.whole {
        SupportedCipherSuite::Tls13(suite) => Some(Tls13CipherSuite {
            quic: suite.quic.map(|_| algorithm as &'static dyn Algorithm),
            common: rustls::crypto::CipherSuiteCommon {
                suite: suite.common.suite,
                hash_provider: suite.common.hash_provider,
                confidentiality_limit: suite.common.confidentiality_limit,
            },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: suite.aead_alg,
        }),
        SupportedCipherSuite::Tls12(_) => None,
    });
    suites.collect()
});

static NOTING: [NotingAlgorithm; 3] = [
    NotingAlgorithm {
        whole: cipher_suite::TLS13_AES_256_GCM_SHA384,
    },
    NotingAlgorithm {
        whole: cipher_suite::TLS13_AES_128_GCM_SHA256,
    },
    NotingAlgorithm {
        whole: cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    },
];

struct NotingAlgorithm {
    whole: SupportedCipherSuite,
}

impl NotingAlgorithm {
    fn algorithm(&self) -> &'static dyn Algorithm {
        let algorithm = match self.whole {
            SupportedCipherSuite::Tls13(suite) => suite.quic,
            SupportedCipherSuite::Tls12(_) => None,
        };
        algorithm.expect("all suites of TLS 1.3 in this library have their part for QUIC")
    }
}

impl Algorithm for NotingAlgorithm {
    fn packet_key(
        &self,
        key: rustls::crypto::cipher::AeadKey,
        iv: rustls::crypto::cipher::Iv,
    ) -> Box<dyn PacketKey> {
        note(|noted| noted.suite = Some(self.whole.suite()));
        self.algorithm().packet_key(key, iv)
    }

    fn header_protection_key(
        &self,
        key: rustls::crypto::cipher::AeadKey,
    ) -> Box<dyn HeaderProtectionKey> {
        self.algorithm().header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.algorithm().aead_key_len()
    }
}

static GROUPS: [NotingGroup; 4] = [
    NotingGroup(kx_group::X25519MLKEM768),
    NotingGroup(kx_group::X25519),
    NotingGroup(kx_group::SECP256R1),
    NotingGroup(kx_group::SECP384R1),
];

#[derive(Debug)]
struct NotingGroup(&'static dyn SupportedKxGroup);

impl SupportedKxGroup for NotingGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(NotingExchange(self.0.start()?)))
    }

    // A server encapsulates for the client's key: it does not start an exchange.
    fn start_and_complete(&self, peer_pub_key: &[u8]) -> Result<CompletedKeyExchange, Error> {
        note(|noted| noted.group = Some(self.0.name()));
        self.0.start_and_complete(peer_pub_key)
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.0.usable_for_version(version)
    }
}

/// An exchange of a client, which may end with one component of the offered hybrid.
struct NotingExchange(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for NotingExchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        note(|noted| noted.group = Some(self.0.group()));
        self.0.complete(peer_pub_key)
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        self.0.hybrid_component()
    }

    fn complete_hybrid_component(
        self: Box<Self>,
        peer_pub_key: &[u8],
    ) -> Result<SharedSecret, Error> {
        let component = self.0.hybrid_component().map(|(group, _)| group);
        note(|noted| noted.group = component);
        self.0.complete_hybrid_component(peer_pub_key)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}

/// Checks certificates as `0` does, and notes the result.
#[derive(Debug)]
pub(crate) struct NotingVerifier(pub(crate) Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for NotingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.0
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        note(|noted| {
            noted.is_full = true;
            noted.failure = verified.as_ref().err().cloned();
        });
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        note(|noted| noted.signature = Some(signature.scheme));
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        note(|noted| noted.signature = Some(signature.scheme));
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// The scheme that RSA keys use where the client accepts it.
const USUAL: SignatureScheme = SignatureScheme::RSA_PSS_SHA256;

/// `certified`, which notes that it was shown.
pub(crate) fn noting_key(certified: CertifiedKey) -> CertifiedKey {
    CertifiedKey {
        key: Arc::new(NotingKey(certified.key)),
        ..certified
    }
}

#[derive(Debug)]
struct NotingKey(Arc<dyn SigningKey>);

impl SigningKey for NotingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        note(|noted| noted.is_full = true);
        // The library begins with SHA-512, other servers with SHA-256.
        let usual = offered.contains(&USUAL).then_some([USUAL]);
        let usual = usual.and_then(|usual| self.0.choose_scheme(&usual));
        usual.or_else(|| self.0.choose_scheme(offered))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}
