//! Root certificates of this host.

use rustls::RootCertStore;
use rustls_native_certs::{CertificateResult, load_native_certs};

use super::TlsError;

/// Adds the certificates in `SSL_CERT_FILE` and `SSL_CERT_DIR` to `roots`; without these
/// variables, those in the usual places of the host.
pub(super) fn add_host_roots(roots: &mut RootCertStore) -> Result<(), TlsError> {
    add_loaded(roots, load_native_certs())
}

/// Adds the certificates of `loaded`. A file that cannot be read, or a certificate that
/// rustls refuses, is an error only if no certificate remains: stores of hosts have some.
fn add_loaded(roots: &mut RootCertStore, loaded: CertificateResult) -> Result<(), TlsError> {
    let (added, _) = roots.add_parsable_certificates(loaded.certs);
    if added > 0 {
        return Ok(());
    }
    let cause = loaded.errors.first().map_or_else(
        || "no certificate is available".to_owned(),
        ToString::to_string,
    );
    Err(TlsError::HostRoots { cause })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustls_native_certs::load_certs_from_paths;

    use super::*;

    fn certificate() -> String {
        let made = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        made.cert.pem()
    }

    #[test]
    fn a_host_gives_the_certificates_of_its_file_and_folder_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("two.pem"), [certificate(), certificate()].concat()).unwrap();
        fs::write(path("empty.pem"), "").unwrap();
        fs::create_dir(path("certificates")).unwrap();
        fs::write(path("certificates/a.pem"), certificate()).unwrap();
        fs::write(path("certificates/README"), "no certificate").unwrap();
        for (file, directory, expected) in [
            (Some("two.pem"), None, Ok(2)),
            (None, Some("certificates"), Ok(1)),
            (Some("two.pem"), Some("certificates"), Ok(3)),
            (Some("missing.pem"), Some("certificates"), Ok(1)),
            (Some("missing.pem"), None, Err("missing.pem")),
            (None, Some("missing"), Err("missing")),
            (Some("empty.pem"), None, Err("no certificate is available")),
            (None, None, Err("no certificate is available")),
        ] {
            let (from, below) = (file.map(path), directory.map(path));
            let loaded = load_certs_from_paths(from.as_deref(), below.as_deref());
            let mut roots = RootCertStore::empty();
            let added = add_loaded(&mut roots, loaded).map_err(|error| error.to_string());
            match expected {
                Ok(count) => {
                    assert_eq!(added, Ok(()), "{file:?} {directory:?}");
                    assert_eq!(roots.len(), count, "{file:?} {directory:?}");
                }
                Err(cause) => {
                    let message = added.unwrap_err();
                    assert!(message.contains(cause), "{message}");
                    assert!(message.contains("SSL_CERT_FILE"), "{message}");
                }
            }
        }
    }
}
