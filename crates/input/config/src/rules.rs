//! Rules that hold for runs of every format.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::generator::TransportTarget;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, SinkPlan, SinkProtocol, SuitePlan, TransportPlan, VariantPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, Reader, Span, check_address, check_any_url, code};
use stillwell_units::Nanos;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// Names that are in use among things of one kind.
#[derive(Debug, Default)]
pub struct UsedNames {
    names: BTreeSet<String>,
    /// The next number to try, by the name before it.
    next: BTreeMap<String, u64>,
}

impl UsedNames {
    /// No name is in use.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            names: BTreeSet::new(),
            next: BTreeMap::new(),
        }
    }

    /// Marks `name` as used; false if it was used before.
    pub fn insert(&mut self, name: &str) -> bool {
        self.names.insert(name.to_owned())
    }

    /// Returns the first free name of `kind`, `kind-2` and so on, and marks it as used.
    pub fn free(&mut self, kind: &str) -> String {
        // Names are never given back, so no number is tried twice.
        let next = self.next.entry(kind.to_owned()).or_insert(1);
        loop {
            let name = match *next {
                1 => kind.to_owned(),
                count => format!("{kind}-{count}"),
            };
            *next = next.saturating_add(1);
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Gives out names that are unique among things of one kind.
#[derive(Debug)]
pub struct Ids<'r> {
    reader: &'r Reader,
    what: &'static str,
    names: UsedNames,
    given: BTreeMap<String, Span>,
}

impl<'r> Ids<'r> {
    /// None given out yet; `what` is "generator" or "sink".
    #[must_use]
    pub const fn new(reader: &'r Reader, what: &'static str) -> Self {
        Self {
            reader,
            what,
            names: UsedNames::new(),
            given: BTreeMap::new(),
        }
    }

    /// Reserves the ids that were `given`; a second one of a name is reported.
    pub fn reserve<'i>(&mut self, given: impl Iterator<Item = (&'i str, Span)>) {
        for (id, span) in given {
            if self.names.insert(id) {
                self.given.insert(id.to_owned(), span);
            } else if let Some(first) = self.given.get(id) {
                let message = format!("two {}s are called `{id}`", self.what);
                self.reader.report(
                    self.reader
                        .error(code::SAME_NAME, span, message)
                        .label("the second")
                        .context(self.reader.place(*first), "the first"),
                );
            }
        }
    }

    /// A name for a thing without one: `kind`, or `kind-2` and so on.
    pub fn free(&mut self, kind: &str) -> String {
        self.names.free(kind)
    }
}

/// Reports sinks that listen at the same place.
pub fn check_sink_addresses(reader: &Reader, sinks: &[Placed<SinkPlan>]) {
    let mut places = BTreeMap::new();
    for sink in sinks {
        match places.entry(listening_place(&sink.value.protocol)) {
            Entry::Vacant(place) => {
                place.insert(sink.span);
            }
            Entry::Occupied(first) => {
                let message = format!("two sinks listen on {}", first.key().1);
                reader.report(
                    reader
                        .error(code::SAME_ADDRESS, sink.span, message)
                        .label("the second")
                        .context(reader.place(*first.get()), "the first"),
                );
            }
        }
    }
}

/// Returns the address that a socket of `protocol` occupies.
#[must_use]
pub fn listening_place(protocol: &SinkProtocol) -> (&'static str, String) {
    match protocol {
        SinkProtocol::Tcp { address }
        | SinkProtocol::Http { address, .. }
        | SinkProtocol::Intake { address, .. }
        | SinkProtocol::TcpRr { address, .. } => ("tcp", address.to_string()),
        SinkProtocol::Udp { address } => ("udp", address.to_string()),
        SinkProtocol::UnixStream { path } | SinkProtocol::UnixDatagram { path } => {
            ("unix", path.display().to_string())
        }
        SinkProtocol::File { path } => ("file", path.display().to_string()),
    }
}

/// Warns of generators that send directly to a sink of the same run and bypass the target.
pub fn check_bypasses_target(
    reader: &Reader,
    generators: &[Placed<GeneratorPlan>],
    sinks: &[Placed<SinkPlan>],
) {
    for generator in generators {
        let Some(target) = target_place(&generator.value.transport) else {
            continue;
        };
        let sink = sinks
            .iter()
            .find(|sink| same_place(&target, &listening_place(&sink.value.protocol)));
        if let Some(sink) = sink {
            let message = format!(
                "generator `{}` sends directly to sink `{}`, past the target",
                generator.value.id, sink.value.id
            );
            reader.report(
                reader
                    .warning(code::PAST_TARGET, generator.span, message)
                    .label(format!("goes to {}", target.1))
                    .context(reader.place(sink.span), "listens there"),
            );
        }
    }
}

fn target_place(transport: &TransportPlan) -> Option<(&'static str, String)> {
    Some(match transport.properties().target? {
        TransportTarget::Tcp(address) => ("tcp", address.to_owned()),
        TransportTarget::Udp(address) => ("udp", address.to_owned()),
        TransportTarget::Url(url) => ("tcp", check_any_url(url).ok()?),
        TransportTarget::Unix(path) => ("unix", path.display().to_string()),
    })
}

fn same_place(target: &(&str, String), sink: &(&str, String)) -> bool {
    let address = |text: &str| match check_address(text) {
        Ok(("localhost", port)) => format!("127.0.0.1:{port}").parse().ok(),
        _ => text.parse::<SocketAddr>().ok(),
    };
    // A sink on all addresses is at those of this machine.
    let is_reached = |target: SocketAddr, sink: SocketAddr| {
        let is_here = target.ip().is_loopback() || target.ip().is_unspecified();
        target == sink || (sink.ip().is_unspecified() && is_here && target.port() == sink.port())
    };
    target.0 == sink.0
        && match (address(&target.1), address(&sink.1)) {
            (Some(target), Some(sink)) => is_reached(target, sink),
            _ => target.1 == sink.1,
        }
}

/// Ready probe of a target that `generators` load, where none is configured: it accepts a
/// connection where the first of them connects that sends to no sink.
#[must_use]
pub fn ready_probe_of<'s>(
    generators: &[GeneratorPlan],
    sinks: impl Iterator<Item = &'s SinkPlan> + Clone,
) -> ReadyProbe {
    let loads_target = |generator: &&GeneratorPlan| {
        let place = target_place(&generator.transport);
        !place.is_some_and(|place| {
            sinks
                .clone()
                .any(|sink| same_place(&place, &listening_place(&sink.protocol)))
        })
    };
    let probe = |generator: &GeneratorPlan| {
        let properties = generator.transport.properties();
        let target = properties
            .target
            .filter(|_| properties.is_ready_by_listening);
        Some(match target? {
            TransportTarget::Tcp(address) | TransportTarget::Udp(address) => ReadyProbe::Tcp {
                address: address.to_owned(),
            },
            TransportTarget::Url(url) => ReadyProbe::Tcp {
                address: check_any_url(url).ok()?,
            },
            TransportTarget::Unix(path) => file_probe(path),
        })
    };
    let mut of_target = generators.iter().filter(loads_target);
    of_target.find_map(probe).unwrap_or({
        if generators.is_empty() {
            ReadyProbe::Immediately
        } else {
            // No probe shows from outside that a UDP socket is bound or a file is looked for.
            ReadyProbe::Delay {
                length: Nanos::SECOND,
            }
        }
    })
}

/// Returns true if a variant is built from a revision.
pub(crate) const fn is_built(variant: &VariantPlan) -> bool {
    matches!(variant.binary, BinarySource::Git(_))
}

/// Returns the reason if several builds of each variant are requested and nothing is built.
#[must_use]
pub fn builds_problem(plan: &ExperimentPlan) -> Option<&'static str> {
    (plan.builds > 1 && !plan.variants.iter().any(is_built))
        .then_some("no variant comes from a revision: use `git:` variants, or remove `builds`")
}

/// Returns the reason if the variants of `plan` cannot share the machine as its design requires. Two variants share it,
/// not three: with more, each would meet the baseline in another company.
#[must_use]
pub fn variants_problem(plan: &ExperimentPlan) -> Option<String> {
    let (design, variants) = (plan.design, plan.variants.len());
    (design != DesignPlan::Paired && variants != 2).then(|| {
        format!(
            "`design: {}` needs two variants, and `{}` has {variants}: use `design: paired`",
            design.name(),
            plan.name
        )
    })
}

/// Reports experiments whose variants cannot share the machine as their design requires. Commands that replace the
/// variants do not check it.
#[must_use]
pub fn check_designs(plan: &SuitePlan) -> Diagnostics {
    let problems = plan.experiments.iter().filter_map(variants_problem);
    let errors = problems.map(|problem| Diagnostic::error(code::COURSE, problem));
    errors.collect()
}

fn file_probe(path: &Path) -> ReadyProbe {
    ReadyProbe::File {
        path: path.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_text::Source;

    use super::*;

    #[test]
    fn a_free_name_is_the_first_that_is_not_used() {
        let mut names = UsedNames::new();
        assert!(names.insert("tcp-2") && names.insert("udp"));
        assert!(!names.insert("udp"));
        let free = ["tcp", "tcp", "udp", "tcp", "tcp-2"].map(|kind| names.free(kind));
        assert_eq!(free, ["tcp", "tcp-3", "udp-2", "tcp-4", "tcp-2-2"]);
    }

    /// A time in the square of their number would be minutes.
    #[test]
    fn many_things_without_a_name_are_named_in_order() {
        let mut names = UsedNames::new();
        for count in 1..=100_000 {
            let name = names.free("tcp");
            assert!(count == 1 || name == format!("tcp-{count}"), "{name}");
        }
    }

    #[test]
    fn a_second_id_is_reported_with_the_place_of_the_first() {
        let reader = Reader::new(Source::new("a.yaml", "one one\n"));
        let span = |start: usize| Span {
            start,
            end: start + 3,
        };
        let mut ids = Ids::new(&reader, "sink");
        ids.reserve([("one", span(0)), ("one", span(4))].into_iter());
        assert_eq!(ids.free("one"), "one-2");
        let diagnostics = reader.finish();
        let error = diagnostics.iter().next().unwrap();
        assert_eq!(error.code, code::SAME_NAME);
        assert_eq!(error.place.as_ref().unwrap().span, span(4));
        assert_eq!(error.context[0].0.span, span(0));
    }
}
