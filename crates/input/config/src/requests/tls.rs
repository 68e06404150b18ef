//! TLS settings for targets.

use std::path::PathBuf;

use stillwell_plan::tls::{
    ClientTlsPlan, PemSource, RootSource, TlsIdentity, TlsSuites, Verification,
};

use super::TlsSpec;

/// The protocol sets the names for ALPN.
pub(crate) fn plan(spec: &TlsSpec) -> ClientTlsPlan {
    let file = |path: &PathBuf| PemSource::File(path.clone());
    ClientTlsPlan {
        verification: if spec.insecure {
            Verification::None
        } else {
            Verification::Roots {
                extra: spec.ca.iter().cloned().map(RootSource::from).collect(),
                public: true,
            }
        },
        identity: match (&spec.certificate, &spec.key) {
            (Some(certificates), Some(key)) => Some(TlsIdentity {
                certificates: file(certificates),
                key: file(key),
            }),
            _ => None,
        },
        alpn: Vec::new(),
        server_name: spec.sni.clone(),
        resumption: !spec.no_resumption,
        suites: TlsSuites {
            names: spec.cipher_suites.clone(),
            ..TlsSuites::default()
        },
    }
}
