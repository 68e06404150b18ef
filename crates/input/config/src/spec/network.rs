//! `network`: the links of a run whose target has a network namespace.

use std::net::{IpAddr, Ipv4Addr};

use stillwell_plan::generator::TransportTarget;
use stillwell_plan::link::{
    INPUT_OURS, INPUT_TARGET, LinkChange, LinkPlan, NetworkPlan, OUTPUT_SINKS,
};
use stillwell_plan::placement::{IsolationPlan, Wanted};
use stillwell_plan::step::StepAction;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{GeneratorPlan, SinkPlan, SinkProtocol, StepPlan, TargetPlan, TransportPlan};
use stillwell_text::{MapReader, Node, Reader, Span, check_any_url, code};
use stillwell_units::ByteRate;

use super::generator::GeneratorSpec;
use super::target::ready_probes;
use super::{ReadContext, timeline};
use crate::element::{DURATION, Element, Shape, optional};
use crate::rules::Placed;

const LINK: Element = Element::new(
    "link",
    "A link between the target and Stillwell, in both directions.",
    &[
        optional(
            "loss",
            Shape::Like("1%"),
            "Share of packets that are lost, at random.",
        ),
        optional(
            "rate",
            Shape::Like("10 Mbit/s"),
            "Bandwidth in each direction; `none` for no limit.",
        ),
        optional("cut", Shape::Boolean, "`true`: nothing passes."),
        optional("delay", DURATION, "Latency of each packet."),
    ],
);

pub(super) const NETWORK: Element = Element::new(
    "network",
    "Links of the target: generators send to 10.64.1.2, sinks listen on 10.64.2.2.",
    &[
        optional(
            "input",
            Shape::Element(&LINK),
            "The link from generators to the target.",
        ),
        optional(
            "output",
            Shape::Element(&LINK),
            "The link from the target to sinks.",
        ),
    ],
);

/// The links as the run finds them, if there are any.
pub(super) fn read_network(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
) -> Option<NetworkPlan> {
    let (input, output) = read_links(context, map.take("network")?)?;
    Some(NetworkPlan {
        input: LinkPlan::default().changed(&input),
        output: LinkPlan::default().changed(&output),
    })
}

/// Puts the links where a run looks for them, made for all that `timeline` does to
/// them.
pub(super) fn finish(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    links: Option<NetworkPlan>,
    timeline: &[StepPlan],
    isolation: &mut IsolationPlan,
) {
    let Some(mut links) = links else { return };
    for step in timeline {
        if let StepAction::Network { input, output } = &step.action {
            links.input = links.input.fit_for(input);
            links.output = links.output.fit_for(output);
        }
    }
    if isolation.network == Wanted::No
        && let Some(span) = map.key_span("network")
    {
        let message = "`network` needs a network namespace, which `isolation` forbids";
        let error = context.reader.error(code::TIMELINE, span, message);
        context.reader.report(error.label("remove one of them"));
    }
    isolation.network = Wanted::Required;
    isolation.links = Some(links);
}

/// Checks that all sinks and generators of a run with links are on them: other addresses are unreachable.
pub(super) fn check_ends(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    sinks: &[Placed<SinkPlan>],
    generators: &[GeneratorSpec],
) {
    if map.take("network").is_none() {
        return;
    }
    let sinks_at = Ipv4Addr::from(OUTPUT_SINKS);
    for sink in sinks {
        let (SinkProtocol::Tcp { address }
        | SinkProtocol::Udp { address }
        | SinkProtocol::Http { address, .. }
        | SinkProtocol::Intake { address, .. }
        | SinkProtocol::TcpRr { address, .. }) = &sink.value.protocol
        else {
            continue;
        };
        if address.ip() != IpAddr::from(sinks_at) {
            let message = "with `network`, the target cannot reach this sink";
            let error = reader.error(code::TIMELINE, sink.span, message);
            reader.report(error.label(format!("write `{sinks_at}:{}`", address.port())));
        }
    }
    for generator in generators {
        let plan = &generator.plan;
        let address = match plan.value.transport.properties().target {
            Some(TransportTarget::Tcp(address) | TransportTarget::Udp(address)) => {
                Some(address.to_owned())
            }
            Some(TransportTarget::Url(url)) => check_any_url(url).ok(),
            Some(TransportTarget::Unix(_)) | None => None,
        };
        if let Some(address) = address {
            check_target_host(reader, plan.span, &address);
        }
    }
}

/// Checks that the probes of all targets of a run with links connect over the link.
pub(super) fn check_probes(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    (target, compared): (&TargetPlan, &[ComparedTargetPlan]),
) {
    if map.take("network").is_none() {
        return;
    }
    for (node, ready) in ready_probes(map, target, compared) {
        let address = match ready {
            ReadyProbe::Tcp { address } => Some(address.clone()),
            ReadyProbe::Http { url } => check_any_url(url).ok(),
            _ => None,
        };
        // A probe that is not in the file connects where a generator does.
        if let (Some(probe), Some(address)) = (node.entry("ready"), address) {
            check_target_host(reader, probe.span, &address);
        }
    }
}

/// Reports an `address` (`host:port`) that is not on the link to the target.
fn check_target_host(reader: &Reader, span: Span, address: &str) {
    let target_address = Ipv4Addr::from(INPUT_TARGET).to_string();
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    if host != target_address {
        let message = "with `network`, the target has another address";
        let error = reader.error(code::TIMELINE, span, message);
        reader.report(error.label(format!("it is at {target_address}")));
    }
}

/// Binds datagrams to the link if no `bind` is given: from loopback, none arrives.
pub(super) fn send_from_link(generators: &mut [GeneratorPlan]) {
    for generator in generators {
        if let TransportPlan::Udp { bind, .. } = &mut generator.transport
            && bind.starts_with("127.")
        {
            *bind = format!("{}:0", Ipv4Addr::from(INPUT_OURS));
        }
    }
}

/// A step that changes links.
pub(super) fn read_change(context: &ReadContext<'_>, node: &Node) -> Option<StepAction> {
    let (input, output) = read_links(context, node)?;
    Some(StepAction::Network { input, output })
}

fn read_links(context: &ReadContext<'_>, node: &Node) -> Option<(LinkChange, LinkChange)> {
    let map = context.reader.map(node, &NETWORK.keys())?;
    let link = |key| map.read_or(key, LinkChange::default(), |node| read_link(context, node));
    let (input, output) = (link("input"), link("output"));
    Some((input?, output?))
}

fn read_link(context: &ReadContext<'_>, node: &Node) -> Option<LinkChange> {
    let map = context.reader.map(node, &LINK.keys())?;
    Some(LinkChange {
        loss_per_million: map.read("loss", |node| timeline::read_share(context, node))?,
        bits_per_second: map.read("rate", |node| read_rate(context, node))?,
        is_cut: map.read("cut", |node| context.reader.boolean(node))?,
        delay: map.read("delay", |node| context.reader.parsed(node))?,
    })
}

/// The slowest link: below that a packet takes longer than a run.
const BITS_PER_SECOND_MIN: u64 = 8_000;
/// The fastest link: `tc` counts the bytes of its queue, 60 ms of them, with 32 bits.
const BITS_PER_SECOND_MAX: u64 = 500_000_000_000;

/// Bits in each second; 0 for `none`.
fn read_rate(context: &ReadContext<'_>, node: &Node) -> Option<u64> {
    let text = context.reader.text(node)?.trim();
    if text == "none" {
        return Some(0);
    }
    let units = [
        ("Gbit/s", 1e9),
        ("Mbit/s", 1e6),
        ("kbit/s", 1e3),
        ("bit/s", 1.0),
    ];
    let bits = units.into_iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        (number > 0.0).then(|| stillwell_units::floor_to_u64(number * factor))
    });
    let bytes = || text.parse::<ByteRate>().ok();
    let bits = bits.or_else(|| Some(bytes()?.bytes_per_second().saturating_mul(8)));
    match bits {
        Some(bits @ BITS_PER_SECOND_MIN..=BITS_PER_SECOND_MAX) => Some(bits),
        _ => {
            let message = format!("`{text}` is not the rate of a link");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            let label = "write for example `10 Mbit/s` or `1 MiB/s`, from `8 kbit/s` to \
                         `500 Gbit/s`; or `none`";
            context.reader.report(error.label(label));
            None
        }
    }
}
