//! Objects that a Kubernetes cluster keeps.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stillwell_units::Nanos;

/// Objects of one manifest that come and go in a cluster.
///
/// How the cluster is reached is not part of it: a plan is written into every capture, and
/// the content of a kubeconfig is secret.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct KubernetesPlan {
    /// Their kind.
    pub kind: KubernetesKind,
    /// Their name, followed by a number if there are several.
    pub name: String,
    /// Their namespace; the kubeconfig's if none. Always none for objects that belong
    /// to the whole cluster.
    pub namespace: Option<String>,
    /// The manifest: a map, in which kind and version of the API are optional.
    pub manifest: Value,
    /// After this long an object goes and another one comes; never if none.
    pub lifetime: Option<Nanos>,
    /// Objects at a time; at least one.
    pub count: u32,
    /// The file that says where the cluster is; found as `kubectl` finds it if none.
    pub kubeconfig: Option<PathBuf>,
    /// The used context of that file; its current one if none.
    pub context: Option<String>,
}

/// Kind of an object in a cluster.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KubernetesKind {
    /// A machine of the cluster.
    Node,
    /// A name space.
    Namespace,
    /// Containers that run together.
    Pod,
    /// Pods that are kept up.
    Deployment,
    /// A name for pods in the network.
    Service,
}

impl KubernetesKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Node,
        Self::Namespace,
        Self::Pod,
        Self::Deployment,
        Self::Service,
    ];

    /// The word in manifests, as `Pod`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::Pod => "Pod",
            Self::Deployment => "Deployment",
            Self::Service => "Service",
        }
    }

    /// The word in sentences and on the command line of `kubectl`, as `pod`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Namespace => "namespace",
            Self::Pod => "pod",
            Self::Deployment => "deployment",
            Self::Service => "service",
        }
    }

    /// The word in paths of the API, as `pods`.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Namespace => "namespaces",
            Self::Pod => "pods",
            Self::Deployment => "deployments",
            Self::Service => "services",
        }
    }

    /// Group and version of its API, as manifests have them.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment => "apps/v1",
            Self::Node | Self::Namespace | Self::Pod | Self::Service => "v1",
        }
    }

    /// Returns true if it belongs to a namespace, and not to the whole cluster.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Pod | Self::Deployment | Self::Service => true,
            Self::Node | Self::Namespace => false,
        }
    }
}
