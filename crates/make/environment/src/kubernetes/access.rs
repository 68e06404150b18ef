//! ClusterAccess to the cluster, access_of as `kubectl` finds it, when the run is prepared.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::login::{ClusterLogin, ClusterLoginError};
use crate::kubeconfig::{ClusterAccess, ClusterToken, Kubeconfig, KubeconfigError};
use stillwell_http::{HeadError, TargetError};
use stillwell_plan::generator::KubernetesPlan;
use stillwell_plan::tls::PemSource;
use stillwell_wire::tls::TlsError;
use stillwell_worker::TransportError;

/// Folder with the credentials of a pod's service account.
const MOUNTED: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An error while finding a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No cluster is configured.
    #[error(
        "no cluster is configured: name a kubeconfig in KUBECONFIG, or put one at ~/.kube/config, or run in \
         a pod with an account"
    )]
    NotConfigured,
    /// A file that is named cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kubeconfig has an error.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The login by a program failed.
    #[error(transparent)]
    Login(#[from] ClusterLoginError),
    /// The cluster's URL is none.
    #[error("read the URL of the cluster")]
    Server(#[from] TargetError),
    /// TLS that cannot be configured.
    #[error("prepare TLS with the cluster at {server}")]
    Tls {
        /// Its URL.
        server: String,
        /// The TLS error.
        source: Box<TlsError>,
    },
    /// The token is not a valid header value.
    #[error("write the cluster's token as a header")]
    ClusterToken(#[source] HeadError),
}

impl From<ClusterError> for TransportError {
    fn from(source: ClusterError) -> Self {
        Self::new("find the cluster", source)
    }
}

/// Returns the access to the cluster of `plan`.
pub(super) fn find(plan: &KubernetesPlan) -> Result<ClusterAccess, ClusterError> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    find_with(plan, &variable, Path::new(MOUNTED))
}

fn find_with(
    plan: &KubernetesPlan,
    variable: &dyn Fn(&str) -> Option<OsString>,
    mounted: &Path,
) -> Result<ClusterAccess, ClusterError> {
    let context = plan.context.as_deref();
    if let Some(path) = &plan.kubeconfig {
        return read(std::slice::from_ref(path), context);
    }
    if let Some(paths) = variable("KUBECONFIG") {
        let paths: Vec<PathBuf> = env::split_paths(&paths)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        return read(&paths, context);
    }
    let home = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
    if let Some(path) = home.filter(|path| path.exists()) {
        return read(&[path], context);
    }
    match (
        variable("KUBERNETES_SERVICE_HOST"),
        variable("KUBERNETES_SERVICE_PORT"),
    ) {
        (Some(host), port) if context.is_none() => of_pod(&host, port, mounted),
        _ => Err(ClusterError::NotConfigured),
    }
}

/// Of several files those count that are there.
fn read(paths: &[PathBuf], context: Option<&str>) -> Result<ClusterAccess, ClusterError> {
    let mut texts = Vec::new();
    let mut missing = None;
    for path in paths {
        match fs::read_to_string(path) {
            Ok(text) => texts.push((path.clone(), text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.get_or_insert_with(|| (path.clone(), error));
            }
            Err(source) => {
                let path = path.clone();
                return Err(ClusterError::Read { path, source });
            }
        }
    }
    if texts.is_empty() {
        let (path, source) = missing.ok_or(ClusterError::NotConfigured)?;
        return Err(ClusterError::Read { path, source });
    }
    let mut access = Kubeconfig::read(&texts)?.access(context)?;
    // A token in the file takes precedence, as in `kubectl`.
    if let (Some(exec), ClusterToken::None) = (access.exec.take(), &access.token) {
        let (login, identity) = ClusterLogin::new(exec, access.authority.as_ref())?;
        access.identity = access.identity.or(identity);
        access.token = ClusterToken::Login(login);
    }
    Ok(access)
}

/// The cluster that this runs in.
fn of_pod(
    host: &OsString,
    port: Option<OsString>,
    mounted: &Path,
) -> Result<ClusterAccess, ClusterError> {
    let host = host.to_string_lossy();
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.into_owned()
    };
    let port = port.map_or_else(|| "443".into(), |port| port.to_string_lossy().into_owned());
    let token = mounted.join("token");
    let namespace = mounted.join("namespace");
    // Reported now, not with the first object.
    if let Err(source) = fs::metadata(&token) {
        return Err(ClusterError::Read {
            path: token,
            source,
        });
    }
    let namespace = fs::read_to_string(namespace).ok();
    let namespace = namespace.map(|text| text.trim().to_owned());
    Ok(ClusterAccess {
        server: format!("https://{host}:{port}"),
        authority: Some(PemSource::File(mounted.join("ca.crt"))),
        is_unverified: false,
        server_name: None,
        identity: None,
        token: ClusterToken::File(token),
        exec: None,
        namespace: namespace.filter(|text| !text.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillwell_plan::generator::KubernetesKind;

    fn plan() -> KubernetesPlan {
        KubernetesPlan {
            kind: KubernetesKind::Pod,
            name: "web".to_owned(),
            namespace: None,
            manifest: serde_json::json!({}),
            lifetime: None,
            count: 1,
            kubeconfig: None,
            context: None,
        }
    }

    fn kubeconfig(server: &str) -> String {
        format!(
            "current-context: c\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c}}}}, {{name: d, context: {{cluster: c}}}}]\n"
        )
    }

    #[test]
    fn a_cluster_is_looked_for_where_kubectl_looks() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("home/.kube")).unwrap();
        for (name, server) in [
            ("own", "http://own"),
            ("one", "http://one"),
            ("two", "http://two"),
            ("home/.kube/config", "http://home"),
        ] {
            fs::write(at(name), kubeconfig(server)).unwrap();
        }
        fs::create_dir(at("mounted")).unwrap();
        fs::write(at("mounted/token"), "t\n").unwrap();
        fs::write(at("mounted/namespace"), "lab\n").unwrap();
        let access_of = |plan: &KubernetesPlan, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let known = variables.iter().find(|(known, _)| *known == name)?;
                Some(
                    known
                        .1
                        .replace('@', &folder.path().to_string_lossy())
                        .into(),
                )
            };
            find_with(plan, &variable, &at("mounted"))
        };
        let server = |plan: &KubernetesPlan, variables: &[(&str, &str)]| {
            access_of(plan, variables).unwrap().server
        };
        let home = ("HOME", "@/home");
        let pod = [
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("KUBERNETES_SERVICE_PORT", "443"),
        ];
        let explicit = KubernetesPlan {
            kubeconfig: Some(at("own")),
            context: Some("d".to_owned()),
            ..plan()
        };
        assert_eq!(
            server(&explicit, &[("KUBECONFIG", "@/one"), home]),
            "http://own"
        );
        let several = ("KUBECONFIG", "@/none:@/two:@/one");
        assert_eq!(server(&plan(), &[several, home]), "http://two");
        assert_eq!(server(&plan(), &[home, pod[0], pod[1]]), "http://home");
        let empty = ("HOME", "@/nobody");
        let access = access_of(&plan(), &[empty, pod[0], pod[1]]).unwrap();
        assert_eq!(access.server, "https://10.0.0.1:443");
        assert_eq!(access.namespace.as_deref(), Some("lab"));
        assert!(matches!(access.token, ClusterToken::File(path) if path == at("mounted/token")));
        assert_eq!(
            access.authority,
            Some(PemSource::File(at("mounted/ca.crt")))
        );
        let six = access_of(&plan(), &[("KUBERNETES_SERVICE_HOST", "fd00::1")]).unwrap();
        assert_eq!(six.server, "https://[fd00::1]:443");
        let nowhere = access_of(&plan(), &[empty]).unwrap_err().to_string();
        assert!(nowhere.contains("KUBECONFIG"), "{nowhere}");
        let missing = access_of(&plan(), &[("KUBECONFIG", "@/none"), home]).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
