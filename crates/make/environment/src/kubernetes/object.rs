//! One object: its request body and its path in the API.

use serde_json::{Value, json};
use stillwell_plan::generator::KubernetesPlan;

/// Label with the name of the generator that owns an object.
pub(super) const LABEL: &str = "stillwell.generator";

/// Grace period of a pod's processes, as in lading.
const GRACE_SECONDS: u32 = 5;

/// Longest value of a label.
const LABEL_BYTES_MAX: usize = 63;

/// An object that is made, over and over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Object {
    /// As messages call it.
    pub(super) shown: String,
    /// Path of its collection.
    pub(super) collection: String,
    /// Path of the object.
    pub(super) path: String,
    /// Body of the request that creates it.
    pub(super) body: Vec<u8>,
    /// Command that deletes it, for a message.
    pub(super) remedy: String,
    /// Its label.
    label: String,
}

impl Object {
    /// Returns object number `index` of `plan`, for the generator `id`. `namespace` applies if its kind is
    /// namespaced.
    pub(super) fn new(plan: &KubernetesPlan, id: &str, namespace: &str, index: u32) -> Self {
        let kind = plan.kind;
        let name = if plan.count > 1 {
            format!("{}-{index:05}", plan.name)
        } else {
            plan.name.clone()
        };
        let root = match kind.api_version().split_once('/') {
            Some(_) => format!("/apis/{}", kind.api_version()),
            None => format!("/api/{}", kind.api_version()),
        };
        let (within, place, option) = if kind.is_namespaced() {
            (
                format!("{root}/namespaces/{namespace}"),
                format!(" in namespace `{namespace}`"),
                format!(" --namespace {namespace}"),
            )
        } else {
            (root, String::new(), String::new())
        };
        let collection = format!("{within}/{}", kind.plural());
        let label = label_of(id);
        let mut body = plan.manifest.clone();
        fill(&mut body, plan, &name, &label);
        if kind.is_namespaced() {
            body["metadata"]["namespace"] = json!(namespace);
        }
        Self {
            shown: format!("{} `{name}`{place}", kind.word()),
            path: format!("{collection}/{name}"),
            collection,
            body: body.to_string().into_bytes(),
            remedy: format!("kubectl delete {} {name}{option}", kind.word()),
            label,
        }
    }

    /// Returns the body of a deletion by `uid`. It cannot delete a later object with the same name.
    pub(super) fn deletion(uid: &str) -> Vec<u8> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": GRACE_SECONDS,
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        });
        options.to_string().into_bytes()
    }

    /// The uid of the object that the API shows in `body`.
    pub(super) fn uid_of(body: &[u8]) -> Option<String> {
        let body: Value = serde_json::from_slice(body).ok()?;
        Some(body.get("metadata")?.get("uid")?.as_str()?.to_owned())
    }

    /// The object in `body` was made by this generator.
    pub(super) fn is_from_generator(&self, body: &[u8]) -> bool {
        let body: Option<Value> = serde_json::from_slice(body).ok();
        let label = body.as_ref().and_then(|body| {
            let labels = body.get("metadata")?.get("labels")?;
            labels.get(LABEL)?.as_str()
        });
        label == Some(self.label.as_str())
    }
}

/// Fills in the manifest's optional parts, and those that all objects share.
fn fill(body: &mut Value, plan: &KubernetesPlan, name: &str, label: &str) {
    if !body.is_object() {
        *body = json!({});
    }
    body["apiVersion"] = json!(plan.kind.api_version());
    body["kind"] = json!(plan.kind.name());
    let metadata = &mut body["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata["name"] = json!(name);
    let labels = &mut metadata["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[LABEL] = json!(label);
}

/// `id` as the value of a label.
fn label_of(id: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric();
    let replaced = id.chars().map(|letter| {
        if is_plain(letter) || "-_.".contains(letter) {
            letter
        } else {
            '-'
        }
    });
    let cut: String = replaced.take(LABEL_BYTES_MAX).collect();
    cut.trim_matches(|letter| !is_plain(letter)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stillwell_plan::generator::KubernetesKind;

    fn plan(kind: KubernetesKind, count: u32) -> KubernetesPlan {
        KubernetesPlan {
            kind,
            name: "web".to_owned(),
            namespace: None,
            manifest: json!({"metadata": {"labels": {"app": "x"}}, "spec": {"a": 1}}),
            lifetime: None,
            count,
            kubeconfig: None,
            context: None,
        }
    }

    #[test]
    fn each_kind_has_the_path_of_the_api() {
        for (kind, collection) in [
            (KubernetesKind::Node, "/api/v1/nodes"),
            (KubernetesKind::Namespace, "/api/v1/namespaces"),
            (KubernetesKind::Pod, "/api/v1/namespaces/lab/pods"),
            (
                KubernetesKind::Deployment,
                "/apis/apps/v1/namespaces/lab/deployments",
            ),
            (KubernetesKind::Service, "/api/v1/namespaces/lab/services"),
        ] {
            let object = Object::new(&plan(kind, 1), "one", "lab", 0);
            assert_eq!(object.collection, collection);
            assert_eq!(object.path, format!("{collection}/web"));
        }
    }

    #[test]
    fn an_object_is_described_with_its_own_name_and_label() {
        let object = Object::new(&plan(KubernetesKind::Pod, 3), "a b", "lab", 2);
        assert_eq!(object.shown, "pod `web-00002` in namespace `lab`");
        assert_eq!(
            object.remedy,
            "kubectl delete pod web-00002 --namespace lab"
        );
        let body: Value = serde_json::from_slice(&object.body).unwrap();
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web-00002",
                "namespace": "lab",
                "labels": {"app": "x", "stillwell.generator": "a-b"},
            },
            "spec": {"a": 1},
        });
        assert_eq!(body, expected);
        assert!(object.is_from_generator(&object.body));
        assert!(!object.is_from_generator(b"{\"metadata\":{}}") && !object.is_from_generator(b"x"));
        let node = Object::new(&plan(KubernetesKind::Node, 1), "one", "lab", 0);
        assert_eq!(node.remedy, "kubectl delete node web");
        let body: Value = serde_json::from_slice(&node.body).unwrap();
        assert_eq!(body["metadata"].get("namespace"), None);
    }

    #[test]
    fn a_uid_is_read_where_the_api_has_it() {
        let uid = |text: &str| Object::uid_of(text.as_bytes());
        assert_eq!(uid(r#"{"metadata":{"uid":"u"}}"#), Some("u".to_owned()));
        for wrong in ["{}", r#"{"metadata":{"uid":1}}"#, "<html>", ""] {
            assert_eq!(uid(wrong), None);
        }
        let deletion: Value = serde_json::from_slice(&Object::deletion("u")).unwrap();
        assert_eq!(deletion["preconditions"]["uid"], "u");
    }

    proptest! {
        #[test]
        fn every_id_becomes_a_label(id in ".{0,80}") {
            let label = label_of(&id);
            let is_plain = |letter: char| letter.is_ascii_alphanumeric();
            prop_assert!(label.len() <= LABEL_BYTES_MAX);
            prop_assert!(label.chars().all(|letter| is_plain(letter) || "-_.".contains(letter)));
            prop_assert!(label.is_empty() || label.starts_with(is_plain) && label.ends_with(is_plain));
        }
    }
}
