//! lading's generator of objects in a cluster.

use stillwell_config::manifest::{Manifest, read_manifest};
use stillwell_plan::generator::{Concurrency, KubernetesKind, KubernetesPlan};
use stillwell_plan::{GeneratorPlan, PayloadPlan, RatePlan, TransportPlan};
use stillwell_text::{Keys, Node, Reader, code};
use stillwell_units::{Nanos, Seed};

/// lading's value for an unlimited lifetime.
const FOREVER_SECONDS: u32 = u32::MAX;

pub(super) fn read(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = [
        "manifest",
        "max_instance_lifetime_seconds",
        "concurrent_instances",
    ];
    let map = reader.map(node, &Keys::new("kubernetes generator", &accepted))?;
    let manifest = map
        .required("manifest")
        .and_then(|node| read_under_kind(reader, node));
    let lifetime = map.read_or("max_instance_lifetime_seconds", FOREVER_SECONDS, |node| {
        reader.whole(node, 1, FOREVER_SECONDS)
    });
    let count = map.read_or("concurrent_instances", 1, |node| {
        reader.whole(node, 1, 10_000_u32)
    });
    let (manifest, lifetime, count) = (manifest?, lifetime?, count?);
    let seconds = (lifetime != FOREVER_SECONDS).then_some(lifetime);
    if seconds.is_some() {
        let message = "each object is replaced at the end of its own lifetime; lading replaces one each \
                       second or more, in turn";
        let span = map.key_span("max_instance_lifetime_seconds");
        let span = span.unwrap_or_else(|| map.span());
        reader.report(reader.note(code::MEANING, span, message));
    }
    let message = "the run stays in the network of the host, where the cluster is";
    reader.report(reader.note(code::MEANING, map.span(), message));
    let kind = manifest.kind;
    let objects = KubernetesPlan {
        kind,
        name: manifest
            .name
            .unwrap_or_else(|| format!("lading-{}", kind.word())),
        namespace: manifest.namespace,
        manifest: manifest.object,
        lifetime: seconds.map(|seconds| Nanos::from_secs(seconds.into())),
        count,
        kubeconfig: None,
        context: None,
    };
    Some(GeneratorPlan {
        id: String::new(),
        transport: TransportPlan::Kubernetes(Box::new(objects)),
        payload: PayloadPlan::PACE,
        rate: RatePlan::MAX,
        concurrency: Concurrency::ONE,
        seed: Seed::from_number(0),
        stamps: None,
    })
}

/// `{pod: "…"}`.
fn read_under_kind(reader: &Reader, node: &Node) -> Option<Manifest> {
    let words = KubernetesKind::ALL.map(KubernetesKind::word);
    let map = reader.map(node, &Keys::new("manifest", &words))?;
    let (word, text) = map.one_of(&words)?;
    let kind = KubernetesKind::ALL
        .into_iter()
        .find(|kind| kind.word() == word);
    reader.text(text)?;
    read_manifest(reader, text, kind)
}
