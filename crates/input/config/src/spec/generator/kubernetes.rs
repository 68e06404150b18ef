//! Generators of objects in a cluster.

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::KubernetesPlan;
use stillwell_plan::placement::{IsolationPlan, Wanted};
use stillwell_text::{Node, Reader, code};
use stillwell_units::Nanos;

use super::{GeneratorSpec, ReadContext};
use crate::element::{DURATION, Element, Shape, optional, required};
use crate::manifest::read_manifest;

pub(super) const KUBERNETES: Element = Element::new(
    "kubernetes generator",
    "Objects of a Kubernetes cluster that are created and deleted; has no payload.",
    &[
        required(
            "manifest",
            Shape::Any(&[Shape::Text, Shape::Map(&Shape::Free)]),
            "The manifest of a Node, Namespace, Pod, Deployment or Service: a map, or text in \
             YAML. With a `count` above 1, a number is appended to the name.",
        ),
        optional(
            "lifetime",
            DURATION,
            "Time after which an object is deleted and created again.",
        ),
        optional("count", Shape::Whole, "Objects at a time; 1 by default."),
        optional(
            "kubeconfig",
            Shape::Text,
            "The kubeconfig; by default `KUBECONFIG`, `~/.kube/config`, or the \
             service account of the pod that Stillwell runs in.",
        ),
        optional(
            "context",
            Shape::Text,
            "Context of the kubeconfig; its current one by default.",
        ),
    ],
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = reader.map(node, &KUBERNETES.keys())?;
    let manifest = map
        .required("manifest")
        .and_then(|node| read_manifest(reader, node, None));
    let lifetime = map.read("lifetime", |node| reader.parsed::<Nanos>(node));
    let count = map.read_or("count", 1, |node| reader.whole(node, 1, 10_000));
    let kubeconfig = map.read("kubeconfig", |node| context.path(node));
    let context = map.read("context", |node| context.filled(node).map(str::to_owned));
    let manifest = manifest?;
    let word = manifest.kind.word();
    Some(TransportPlan::Kubernetes(Box::new(KubernetesPlan {
        kind: manifest.kind,
        name: manifest.name.unwrap_or_else(|| format!("stillwell-{word}")),
        namespace: manifest.namespace,
        manifest: manifest.object,
        lifetime: lifetime?,
        count: count?,
        kubeconfig: kubeconfig?,
        context: context?,
    })))
}

/// A cluster is never in a network of the run's own: such a run has none.
pub(super) fn stay_with_cluster(
    reader: &Reader,
    generators: &[GeneratorSpec],
    isolation: &mut IsolationPlan,
) {
    let is_one =
        |spec: &&GeneratorSpec| matches!(spec.plan.value.transport, TransportPlan::Kubernetes(_));
    let Some(spec) = generators.iter().find(is_one) else {
        return;
    };
    let id = &spec.plan.value.id;
    if isolation.links.is_some() || isolation.network == Wanted::Required {
        let message = format!("generator `{id}` cannot reach its cluster from a separate network");
        let error = reader.error(code::BAD_VALUE, spec.plan.span, message);
        let help = "leave `network` out, and write `isolation: {network: no}`";
        reader.report(error.help(help));
    } else if isolation.network == Wanted::IfPossible {
        let message = format!(
            "the run stays in the network of the host, where generator `{id}` finds its cluster"
        );
        let note = reader.note(code::MEANING, spec.plan.span, message);
        reader.report(note.help("write `isolation: {network: no}` to state it in the file"));
        isolation.network = Wanted::No;
    }
}
