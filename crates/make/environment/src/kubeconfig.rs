//! Kubeconfigs: addresses of clusters, and credentials.
//!
//! Texts go in, [`ClusterAccess`] comes out; this module does not read the files that are named. Unsupported entries
//! are refused by name, with a remedy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stillwell_plan::tls::{PemSource, TlsIdentity};

use stillwell_text::{Node, Source, Value, parse};

use crate::kubernetes::ClusterLogin;

/// Address and credentials of a cluster. Its `Debug` shows no secret.
#[derive(Clone)]
pub(crate) struct ClusterAccess {
    /// The URL of its API.
    pub(crate) server: String,
    /// Root certificates for the cluster; the default roots if `None`.
    pub(crate) authority: Option<PemSource>,
    /// Accept any certificate of the cluster.
    pub(crate) is_unverified: bool,
    /// The name that its certificate must carry, where it is not the URL's.
    pub(crate) server_name: Option<String>,
    /// The certificate that is shown to it.
    pub(crate) identity: Option<TlsIdentity>,
    /// Bearer token for the cluster.
    pub(crate) token: ClusterToken,
    /// Program that logs in, if there is one.
    pub(crate) exec: Option<ExecLogin>,
    /// Namespace of objects that do not name one.
    pub(crate) namespace: Option<String>,
}

impl fmt::Debug for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterAccess")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A program that logs in to a cluster. Its `Debug` shows no argument: one may be a secret.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct ExecLogin {
    /// The program; one without a slash is looked up in `PATH`.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Additional environment variables.
    pub(crate) variables: Vec<(String, String)>,
    /// Version of the protocol, as `apiVersion` names it.
    pub(crate) version: String,
    /// The cluster for the program, without its authority, if the program needs it.
    pub(crate) cluster: Option<serde_json::Value>,
    /// Advice of the kubeconfig if the program is not there.
    pub(crate) hint: Option<String>,
}

impl fmt::Debug for ExecLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecLogin")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// A bearer token. Its `Debug` does not show it.
#[derive(Clone, Default)]
pub(crate) enum ClusterToken {
    /// There is none.
    #[default]
    None,
    /// A literal token.
    Text(String),
    /// The current content of this file; other programs renew it.
    File(PathBuf),
    /// That of the login by a program.
    Login(Arc<ClusterLogin>),
}

impl fmt::Debug for ClusterToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Text(_) => "Text(…)",
            Self::File(_) => "File(…)",
            Self::Login(_) => "Login(…)",
        })
    }
}

/// A problem in a kubeconfig.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is no YAML, or not of the shape.
    #[error("{path} is not a kubeconfig: {message}", path = path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        message: String,
    },
    /// No context is chosen.
    #[error(
        "{path} has no current context: choose one by `kubectl config use-context NAME`, of {known}",
        path = path.display()
    )]
    NoContext {
        /// The first file.
        path: PathBuf,
        /// Those that there are.
        known: String,
    },
    /// Something that is named is not there.
    #[error("there is no {kind} `{name}` in {path}, which has {known}", path = path.display())]
    Unknown {
        /// The first file.
        path: PathBuf,
        /// "context", "cluster" or "user".
        kind: &'static str,
        /// The missing name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Something that must be there is not.
    #[error("the {part} in {path} has no `{key}`", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The part that lacks the key.
        part: String,
        /// The missing key.
        key: &'static str,
    },
    /// A value of the wrong kind.
    #[error("`{key}` of the {part} in {path} is not {expected}", path = path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Whose.
        part: String,
        /// The key.
        key: &'static str,
        /// The expected form.
        expected: &'static str,
    },
    /// Something that Stillwell does not do.
    #[error("the {part} in {path} has `{key}`, which is not supported: {advice}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Whose.
        part: String,
        /// The unsupported key.
        key: &'static str,
        /// The remedy.
        advice: &'static str,
    },
}

/// Versions of the protocol of logins.
const LOGIN_VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// Extension of a cluster with settings for the program that logs in to it.
const LOGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

const BY_TOKEN: &str = "use a token instead, such as one from `kubectl create token ACCOUNT`, \
                        under `token`, or a certificate under `client-certificate`";

/// Unsupported keys of users and clusters, with remedies.
const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("user", "auth-provider", BY_TOKEN),
    ("user", "username", BY_TOKEN),
    ("user", "password", BY_TOKEN),
    ("user", "as", "choose a context of the other user"),
    ("user", "as-uid", "choose a context of the other user"),
    ("user", "as-groups", "choose a context of the other user"),
    (
        "user",
        "as-user-extra",
        "choose a context of the other user",
    ),
    (
        "cluster",
        "proxy-url",
        "choose a context whose cluster needs no proxy, such as that of `kubectl proxy`",
    ),
];

/// One or several kubeconfigs; of duplicate entries the first counts.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    root: Node,
}

/// One cluster, user or context.
#[derive(Clone, Debug)]
struct Part<'f> {
    file: &'f File,
    kind: &'static str,
    name: &'f str,
    node: &'f Node,
}

impl Kubeconfig {
    /// Parses the texts of files, each with its path, in order of precedence; at least one.
    ///
    /// # Errors
    /// [`KubeconfigError::Shape`] if a text is not YAML, or not a map.
    pub(crate) fn read(texts: &[(PathBuf, String)]) -> Result<Self, KubeconfigError> {
        let files = texts.iter().map(|(path, text)| File::read(path, text));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the access to the cluster of `context`, or of the current context.
    ///
    /// # Errors
    /// [`KubeconfigError`] with the missing or unsupported key.
    pub(crate) fn access(&self, context: Option<&str>) -> Result<ClusterAccess, KubeconfigError> {
        let current = self.files.iter().find_map(|file| {
            let text = text_of(file.root.entry("current-context")?)?;
            (!text.is_empty()).then_some(text)
        });
        let name = context
            .or(current)
            .ok_or_else(|| KubeconfigError::NoContext {
                path: self.path(),
                known: self.known("contexts"),
            })?;
        let context = self.part("contexts", "context", name)?;
        let cluster = self.part("clusters", "cluster", context.required("cluster")?)?;
        let user = match context.text("user")?.filter(|name| !name.is_empty()) {
            Some(name) => Some(self.part("users", "user", name)?),
            None => None,
        };
        for part in [Some(&cluster), user.as_ref()].into_iter().flatten() {
            part.refuse_unsupported()?;
        }
        let (identity, token) = match &user {
            Some(user) => (user.identity()?, user.token()?),
            None => (None, ClusterToken::None),
        };
        let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(ClusterAccess {
            server: cluster.required("server")?.to_owned(),
            authority: cluster.pem("certificate-authority", "certificate-authority-data")?,
            is_unverified: cluster.is_set("insecure-skip-tls-verify")?,
            server_name: owned(cluster.text("tls-server-name")?),
            identity,
            token,
            exec: user.map(|user| user.exec(&cluster)).transpose()?.flatten(),
            namespace: owned(context.text("namespace")?),
        })
    }

    fn path(&self) -> PathBuf {
        self.files
            .first()
            .map(|file| file.path.clone())
            .unwrap_or_default()
    }

    /// All entries of the list `list`, each with its name.
    fn entries(&self, list: &'static str) -> impl Iterator<Item = (&File, &str, &Node)> {
        self.files.iter().flat_map(move |file| {
            let items = match file.root.entry(list).map(|node| &node.value) {
                Some(Value::List(items)) => items.as_slice(),
                _ => &[],
            };
            let named = move |item| Some((file, text_of(Node::entry(item, "name")?)?, item));
            items.iter().filter_map(named)
        })
    }

    fn known(&self, list: &'static str) -> String {
        let names: Vec<String> = self
            .entries(list)
            .map(|(_, name, _)| format!("`{name}`"))
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }

    fn part(
        &self,
        list: &'static str,
        kind: &'static str,
        name: &str,
    ) -> Result<Part<'_>, KubeconfigError> {
        let mut all = self.entries(list);
        let entry = all.find(|(_, known, _)| *known == name);
        let (file, name, item) = entry.ok_or_else(|| KubeconfigError::Unknown {
            path: self.path(),
            kind,
            name: name.to_owned(),
            known: self.known(list),
        })?;
        // Nothing under the name is a map without keys.
        let node = item.entry(kind).unwrap_or(item);
        Ok(Part {
            file,
            kind,
            name,
            node,
        })
    }
}

impl File {
    fn read(path: &Path, text: &str) -> Result<Self, KubeconfigError> {
        let source: Arc<Source> = Source::new(path, text);
        let failed = |message: String| KubeconfigError::Shape {
            path: path.to_owned(),
            message,
        };
        // The message alone: the lines around it may hold a key.
        let (root, diagnostics) = parse(&source).map_err(|error| failed(error.message))?;
        if let Some(error) = diagnostics.first() {
            return Err(failed(error.message.clone()));
        }
        match root.value {
            Value::Map(_) | Value::Null => Ok(Self {
                path: path.to_owned(),
                root,
            }),
            Value::Scalar { .. } | Value::List(_) => {
                Err(failed(format!("a map was expected, not {}", root.shape())))
            }
        }
    }
}

impl<'f> Part<'f> {
    fn describe(&self) -> String {
        format!("{} `{}`", self.kind, self.name)
    }

    fn wrong(&self, key: &'static str, expected: &'static str) -> KubeconfigError {
        KubeconfigError::Value {
            path: self.file.path.clone(),
            part: self.describe(),
            key,
            expected,
        }
    }

    fn missing(&self, key: &'static str) -> KubeconfigError {
        KubeconfigError::Missing {
            path: self.file.path.clone(),
            part: self.describe(),
            key,
        }
    }

    /// The value of `key`, if it is there and not null.
    fn entry(&self, key: &'static str) -> Option<&'f Node> {
        let node = self.node.entry(key)?;
        (!matches!(node.value, Value::Null)).then_some(node)
    }

    fn text(&self, key: &'static str) -> Result<Option<&'f str>, KubeconfigError> {
        let Some(node) = self.entry(key) else {
            return Ok(None);
        };
        text_of(node)
            .map(Some)
            .ok_or_else(|| self.wrong(key, "a text"))
    }

    fn required(&self, key: &'static str) -> Result<&'f str, KubeconfigError> {
        let text = self.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.missing(key))
    }

    fn is_set(&self, key: &'static str) -> Result<bool, KubeconfigError> {
        match self.text(key)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(self.wrong(key, "`true` or `false`")),
        }
    }

    /// A path; it counts from the folder of the file.
    fn path(&self, key: &'static str) -> Result<Option<PathBuf>, KubeconfigError> {
        let text = self.text(key)?.filter(|text| !text.is_empty());
        let folder = self.file.path.parent().unwrap_or_else(|| Path::new(""));
        Ok(text.map(|text| folder.join(text)))
    }

    /// PEM, from `data` where that is there, else from a `file`.
    fn pem(
        &self,
        file: &'static str,
        data: &'static str,
    ) -> Result<Option<PemSource>, KubeconfigError> {
        let Some(text) = self.text(data)?.filter(|text| !text.is_empty()) else {
            return Ok(self.path(file)?.map(PemSource::File));
        };
        let text: String = text.split_whitespace().collect();
        let bytes = STANDARD.decode(text).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| self.wrong(data, "PEM in base 64"))?;
        Ok(Some(PemSource::Text(text)))
    }

    fn identity(&self) -> Result<Option<TlsIdentity>, KubeconfigError> {
        let certificates = self.pem("client-certificate", "client-certificate-data")?;
        let key = self.pem("client-key", "client-key-data")?;
        match (certificates, key) {
            (Some(certificates), Some(key)) => Ok(Some(TlsIdentity { certificates, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(self.missing("client-key")),
            (None, Some(_)) => Err(self.missing("client-certificate")),
        }
    }

    /// A file takes precedence over a text, as in `kubectl`.
    fn token(&self) -> Result<ClusterToken, KubeconfigError> {
        if let Some(path) = self.path("tokenFile")? {
            return Ok(ClusterToken::File(path));
        }
        let text = self.text("token")?.filter(|text| !text.is_empty());
        Ok(text.map_or(ClusterToken::None, |text| {
            ClusterToken::Text(text.to_owned())
        }))
    }

    /// The program that logs in to `cluster`.
    fn exec(&self, cluster: &Self) -> Result<Option<ExecLogin>, KubeconfigError> {
        let Some(node) = self.entry("exec") else {
            return Ok(None);
        };
        let exec = Self {
            node,
            ..self.clone()
        };
        let command = exec.required("command")?;
        // A path counts from the folder of the file, a name is looked up.
        let program = if command.contains('/') {
            exec.path("command")?.unwrap_or_default()
        } else {
            command.into()
        };
        if !matches!(
            exec.text("interactiveMode")?,
            None | Some("" | "Never" | "IfAvailable")
        ) {
            return Err(exec.wrong("interactiveMode", "`Never` or `IfAvailable`"));
        }
        let version = exec.required("apiVersion")?;
        if !LOGIN_VERSIONS.contains(&version) {
            let expected = "`client.authentication.k8s.io/v1` or `…/v1beta1`";
            return Err(exec.wrong("apiVersion", expected));
        }
        let is_informed = exec.is_set("provideClusterInfo")?;
        let arguments = exec.list("args", "a list of texts", |item| {
            text_of(item).map(str::to_owned)
        });
        let variables = exec.list("env", "a list of names and values", |item| {
            let text = |key| item.entry(key).and_then(text_of).map(str::to_owned);
            text("name").zip(text("value"))
        });
        Ok(Some(ExecLogin {
            program,
            arguments: arguments?,
            variables: variables?,
            version: version.to_owned(),
            cluster: is_informed.then(|| cluster.information()).transpose()?,
            hint: exec.text("installHint")?.map(str::to_owned),
        }))
    }

    /// The cluster as a program that logs in to it expects it, without its authority.
    fn information(&self) -> Result<serde_json::Value, KubeconfigError> {
        let is_settings =
            |item: &Node| item.entry("name").and_then(text_of) == Some(LOGIN_EXTENSION);
        if let Some(Value::List(items)) = self.entry("extensions").map(|node| &node.value)
            && items.iter().any(is_settings)
        {
            return Err(self.unsupported("extensions", BY_TOKEN));
        }
        let mut cluster = serde_json::json!({ "server": self.required("server")? });
        let name = self.text("tls-server-name")?;
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            cluster["tls-server-name"] = name.into();
        }
        if self.is_set("insecure-skip-tls-verify")? {
            cluster["insecure-skip-tls-verify"] = true.into();
        }
        Ok(cluster)
    }

    /// The items of the list `key`, each read by `read`; none if there is no list.
    fn list<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        read: impl Fn(&Node) -> Option<T>,
    ) -> Result<Vec<T>, KubeconfigError> {
        let items = match self.entry(key).map(|node| &node.value) {
            None => Some(Vec::new()),
            Some(Value::List(items)) => items.iter().map(read).collect(),
            Some(_) => None,
        };
        items.ok_or_else(|| self.wrong(key, expected))
    }

    fn unsupported(&self, key: &'static str, advice: &'static str) -> KubeconfigError {
        KubeconfigError::Unsupported {
            path: self.file.path.clone(),
            part: self.describe(),
            key,
            advice,
        }
    }

    fn refuse_unsupported(&self) -> Result<(), KubeconfigError> {
        let mut unsupported = UNSUPPORTED.iter().filter(|(kind, ..)| *kind == self.kind);
        match unsupported.find(|(_, key, _)| self.entry(key).is_some()) {
            None => Ok(()),
            Some((_, key, advice)) => Err(self.unsupported(key, advice)),
        }
    }
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar { text, .. } => Some(text),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

#[cfg(test)]
mod tests;
