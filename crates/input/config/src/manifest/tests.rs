use proptest::prelude::*;

use super::*;
use stillwell_text::Diagnostics;

fn read(text: &str, kind: Option<KubernetesKind>) -> (Option<Manifest>, Diagnostics) {
    let reader = Reader::new(Source::new("a.yaml", "manifest: here\n"));
    let node = Node {
        span: stillwell_text::Span { start: 10, end: 14 },
        value: Value::Scalar {
            text: text.to_owned(),
            quoted: true,
        },
    };
    let manifest = read_manifest(&reader, &node, kind);
    (manifest, reader.finish())
}

fn mistake(text: &str, kind: Option<KubernetesKind>) -> String {
    let (manifest, diagnostics) = read(text, kind);
    assert_eq!(manifest, None, "{text}");
    diagnostics.to_string()
}

#[test]
fn a_manifest_is_read_as_kubectl_reads_it() {
    let text = "---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: suite, labels: {app: 'true'}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
    - name: one
      image: busybox:1.36
      args: [sleep, '60']
      securityContext: {runAsUser: 0x10, mode: 0644, octal: 0o17, share: 0.5, none: ~}
      env: [{name: A, value: yes}, {name: B, value: 09}, {name: C, value: 1.2.3}, {name: D, value: -7}]
";
    let (manifest, diagnostics) = read(text, None);
    assert!(diagnostics.is_empty(), "{diagnostics}");
    let manifest = manifest.unwrap();
    assert_eq!(manifest.kind, KubernetesKind::Pod);
    assert_eq!(manifest.name.as_deref(), Some("web"));
    assert_eq!(manifest.namespace.as_deref(), Some("suite"));
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "suite", "labels": {"app": "true"}},
        "spec": {
            "hostNetwork": true,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "one",
                "image": "busybox:1.36",
                "args": ["sleep", "60"],
                "securityContext": {
                    "runAsUser": 16, "mode": 420, "octal": 15, "share": 0.5, "none": null,
                },
                "env": [
                    {"name": "A", "value": "yes"}, {"name": "B", "value": 9},
                    {"name": "C", "value": "1.2.3"}, {"name": "D", "value": -7},
                ],
            }],
        },
    });
    assert_eq!(manifest.object, expected);
}

#[test]
fn a_manifest_under_its_kind_needs_no_kind_key() {
    for kind in KubernetesKind::ALL {
        let (manifest, diagnostics) = read("metadata: {}", Some(kind));
        assert!(diagnostics.is_empty(), "{diagnostics}");
        assert_eq!(manifest.unwrap().kind, kind);
        let text = format!(
            "{{apiVersion: {}, kind: {}}}",
            kind.api_version(),
            kind.name()
        );
        assert_eq!(read(&text, None).0.unwrap().kind, kind);
    }
}

#[test]
fn an_invalid_manifest_is_reported_at_its_line() {
    use KubernetesKind::{Node, Pod};
    for (text, kind, message) in [
        ("kind: Service", Some(Pod), "it belongs under `service`"),
        ("kind: Job", Some(Pod), "write `kind: Pod`"),
        ("kind: Job", None, "unknown kind of object `Job`"),
        ("kind: Pods", None, "did you mean `Pod`?"),
        ("spec: {}", None, "a manifest needs `kind`"),
        ("apiVersion: v2\nkind: Pod", None, "write `v1`"),
        (
            "[]",
            Some(Pod),
            "expected a manifest, which is a map, found a list",
        ),
        ("", Some(Pod), "found nothing"),
        ("kind: Pod\nkind: Pod", None, "kind"),
        ("kind: Pod\n---\nkind: Pod", None, "a second document"),
        ("kind: [", None, "this is not YAML"),
        (
            "metadata: {name: Web}",
            Some(Pod),
            "cannot be the name of a pod",
        ),
        (
            "metadata: {name: ../x}",
            Some(Pod),
            "cannot be the name of a pod",
        ),
        (
            "metadata: {name: a, namespace: a.b}",
            Some(Pod),
            "cannot be a namespace",
        ),
        (
            "metadata: {namespace: a}",
            Some(Node),
            "a node belongs to no namespace",
        ),
    ] {
        let (_, diagnostics) = read(text, kind);
        let shown = diagnostics.to_string();
        assert!(
            diagnostics.has_errors() && shown.contains(message),
            "{text}: {shown}"
        );
        assert!(shown.contains("a.yaml (manifest at line 1):"), "{shown}");
    }
    let shown = mistake("metadata:\n  name: A b\n", Some(Pod));
    assert!(shown.contains("(manifest at line 1):2:9"), "{shown}");
}

#[test]
fn a_manifest_may_be_in_the_file_itself() {
    let reader = Reader::new(Source::new("a.yaml", "kind: Node\nmetadata: {name: 7}\n"));
    let node = reader.parse().unwrap();
    let manifest = read_manifest(&reader, &node, None).unwrap();
    assert!(reader.finish().is_empty());
    assert_eq!(
        (manifest.kind, manifest.name.as_deref()),
        (KubernetesKind::Node, Some("7"))
    );
}

proptest! {
    /// Any JSON in a manifest is read without a change, since JSON is YAML.
    #[test]
    fn json_comes_back_as_it_was(
        texts in prop::collection::vec("[ -~]{0,12}", 0..5),
        numbers in prop::collection::vec(any::<i32>(), 0..5),
        flag in any::<bool>(),
    ) {
        let spec = json!({"texts": texts, "numbers": numbers, "flag": flag, "none": null});
        let text = json!({"kind": "Pod", "spec": spec}).to_string();
        let (manifest, diagnostics) = read(&text, None);
        prop_assert!(diagnostics.is_empty(), "{diagnostics}");
        prop_assert_eq!(&manifest.unwrap().object["spec"], &spec);
    }

    /// An accepted name can be part of a path.
    #[test]
    fn accepted_names_are_valid_in_paths(name in "[-a-zA-Z0-9./%? ]{0,8}") {
        if is_name(&name, NAME_BYTES_MAX) {
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)));
            prop_assert!(!name.starts_with('.'));
        }
    }
}
