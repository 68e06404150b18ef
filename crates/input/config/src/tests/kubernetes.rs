//! Objects of a cluster, and the network that a run with them stays in.

use stillwell_plan::generator::KubernetesKind;
use stillwell_plan::placement::Wanted;
use stillwell_plan::{RunPlan, TransportPlan};
use stillwell_units::Nanos;

use super::run_plan;

fn workload(generator: &str, more: &str) -> String {
    format!(
        "workload:\n  generators:\n    - kubernetes:\n        {generator}\n      rate: max\n{more}"
    )
}

fn plan_of(text: &str) -> RunPlan {
    run_plan(text)
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
        .plan
}

#[test]
fn a_manifest_is_a_map_or_a_text() {
    for manifest in [
        "manifest: {kind: Pod, metadata: {namespace: suite}, spec: {a: 1, b: '1'}}",
        "manifest: \"kind: Pod\\nmetadata: {namespace: suite}\\nspec: {a: 1, b: '1'}\"",
        "manifest: |\n          kind: Pod\n          metadata: {namespace: suite}\n          spec: {a: 1, b: '1'}",
    ] {
        let text = workload(
            &format!("{manifest}\n        lifetime: 3s\n        count: 2"),
            "",
        );
        let plan = plan_of(&text);
        let TransportPlan::Kubernetes(objects) = &plan.generators[0].transport else {
            panic!("{:?}", plan.generators[0]);
        };
        assert_eq!(objects.kind, KubernetesKind::Pod);
        assert_eq!(objects.name, "stillwell-pod");
        assert_eq!(objects.namespace.as_deref(), Some("suite"));
        let spec = objects.manifest["spec"].to_string();
        assert_eq!(spec, r#"{"a":1,"b":"1"}"#);
        assert_eq!(
            (objects.count, objects.lifetime),
            (2, Some(Nanos::from_secs(3)))
        );
        assert!(objects.kubeconfig.is_none() && objects.context.is_none());
    }
}

#[test]
fn a_run_with_a_cluster_stays_in_the_network_of_the_host() {
    let node = "manifest: {kind: Node}";
    let loaded =
        run_plan(&workload(node, "")).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert_eq!(loaded.plan.isolation.network, Wanted::No);
    let message = loaded.warnings.to_string();
    assert!(
        message.contains("the network of the host, where generator `kubernetes`"),
        "{message}"
    );
    let quiet = run_plan(&workload(node, "isolation: {network: no}\n")).unwrap();
    assert!(
        !quiet
            .warnings
            .to_string()
            .contains("the network of the host")
    );
    let refused = run_plan(&workload(node, "isolation: {network: required}\n")).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("cannot reach its cluster from a separate network"),
        "{message}"
    );
}

#[test]
fn mistakes_in_objects_of_a_cluster_are_reported() {
    for (generator, message) in [
        ("count: 1", "a kubernetes generator needs `manifest`"),
        ("manifest: {kind: Job}", "unknown kind of object `Job`"),
        ("manifest: {}", "a manifest needs `kind`"),
        ("manifest: [a]", "expected a manifest"),
        ("manifest: {kind: Node}\n        count: 0", "out of range"),
        (
            "manifest: {kind: Node}\n        lifetime: 3",
            "needs a unit",
        ),
        (
            "manifest: {kind: Node}\n        context: ''",
            "an empty text",
        ),
        (
            "manifest: {kind: Node}\n        contxt: a",
            "did you mean `context`?",
        ),
        (
            "manifest: {kind: Node}\n      connections: 2",
            "`connections` has no effect here",
        ),
        (
            "manifest: {kind: Node}\n      payload: ascii",
            "`payload` has no effect here",
        ),
    ] {
        let diagnostics = run_plan(&workload(generator, "")).unwrap_err().to_string();
        assert!(diagnostics.contains(message), "{generator}: {diagnostics}");
    }
}
