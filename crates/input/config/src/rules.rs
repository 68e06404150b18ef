//! Rules that hold for runs of every format.

use std::net::SocketAddr;
use std::path::Path;

use stillwell_plan::generator::TransportTarget;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::{GeneratorPlan, SinkPlan, SinkProtocol, TransportPlan};
use stillwell_text::{Reader, Span, check_address, check_any_url, code};
use stillwell_units::Nanos;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// Gives out names that are unique among things of one kind.
#[derive(Debug)]
pub struct Ids<'r> {
    reader: &'r Reader,
    what: &'static str,
    taken: Vec<(String, Option<Span>)>,
}

impl<'r> Ids<'r> {
    /// None given out yet; `what` is "generator" or "sink".
    #[must_use]
    pub const fn new(reader: &'r Reader, what: &'static str) -> Self {
        Self {
            reader,
            what,
            taken: Vec::new(),
        }
    }

    /// Reserves the ids that were `given`; a second one of a name is reported.
    pub fn reserve<'i>(&mut self, given: impl Iterator<Item = (&'i str, Span)>) {
        for (id, span) in given {
            let first = self.taken.iter().find(|(taken, _)| taken == id);
            if let Some((_, Some(first))) = first {
                let message = format!("two {}s are called `{id}`", self.what);
                self.reader.report(
                    self.reader
                        .error(code::SAME_NAME, span, message)
                        .label("the second")
                        .context(self.reader.place(*first), "the first"),
                );
            }
            self.taken.push((id.to_owned(), Some(span)));
        }
    }

    /// A name for a thing without one: `kind`, or `kind-2` and so on.
    pub fn free(&mut self, kind: &str) -> String {
        let mut id = kind.to_owned();
        let mut count = 1;
        while self.taken.iter().any(|(taken, _)| *taken == id) {
            count += 1;
            id = format!("{kind}-{count}");
        }
        self.taken.push((id.clone(), None));
        id
    }
}

/// Reports sinks that listen at the same place.
pub fn check_sink_addresses(reader: &Reader, sinks: &[Placed<SinkPlan>]) {
    for (index, sink) in sinks.iter().enumerate() {
        let place = listening_place(&sink.value.protocol);
        let first = sinks[..index]
            .iter()
            .find(|earlier| listening_place(&earlier.value.protocol) == place);
        if let Some(first) = first {
            let message = format!("two sinks listen on {}", place.1);
            reader.report(
                reader
                    .error(code::SAME_ADDRESS, sink.span, message)
                    .label("the second")
                    .context(reader.place(first.span), "the first"),
            );
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

fn file_probe(path: &Path) -> ReadyProbe {
    ReadyProbe::File {
        path: path.to_string_lossy().into_owned(),
    }
}
