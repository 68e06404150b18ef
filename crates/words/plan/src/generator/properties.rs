//! Properties of transports: one table for all users.

use std::path::Path;

use stillwell_units::ByteSize;

use super::{AcknowledgedBy, StreamTarget, TransportPlan};
use crate::{LoadProtocol, StampForm};

/// Properties of a transport, besides how it is carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TransportProperties<'p> {
    /// Its name in files.
    pub name: &'static str,
    /// True if the payload is what is sent; else its blocks only pace.
    pub sends_payload: bool,
    /// The largest block that it carries, if it has a limit.
    pub block_limit: Option<ByteSize>,
    /// The largest block by default.
    pub block_default: ByteSize,
    /// Events in a block at a rate of events, by default.
    pub events_default: EventsDefault,
    /// True if a block without an end arrives as one thing.
    pub is_framed: bool,
    /// The forms of stamps that it can carry.
    pub stamps: StampForms,
    /// Streams of stamped events on one connection, at least one.
    pub streams: u32,
    /// The address of its target, if it has one.
    pub target: Option<TransportTarget<'p>>,
    /// True if a target is ready once it listens there.
    pub is_ready_by_listening: bool,
}

/// Events in a block by default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventsDefault {
    /// So many.
    Count(u32),
    /// One while the rate is low; else as many as fit.
    OneAtLowRates,
}

/// Forms of stamps that a transport can carry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StampForms {
    /// In the text of events.
    pub text: bool,
    /// In the header of a request.
    pub header: bool,
    /// Before events.
    pub prefix: bool,
}

/// The address of a target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransportTarget<'p> {
    /// `host:port`, over TCP.
    Tcp(&'p str),
    /// `host:port`, over UDP.
    Udp(&'p str),
    /// A URL.
    Url(&'p str),
    /// A Unix socket.
    Unix(&'p Path),
}

impl StampForms {
    const NONE: Self = Self {
        text: false,
        header: false,
        prefix: false,
    };
    const TEXT: Self = Self {
        text: true,
        ..Self::NONE
    };
    const HEADER: Self = Self {
        header: true,
        ..Self::NONE
    };
    /// Of sockets over which nothing is said but what is sent.
    const SOCKET: Self = Self {
        prefix: true,
        ..Self::TEXT
    };
    const REQUEST: Self = Self {
        header: true,
        ..Self::TEXT
    };

    /// Returns true if stamps of `form` can be carried.
    #[must_use]
    pub const fn carries(&self, form: StampForm) -> bool {
        match form {
            StampForm::Text => self.text,
            StampForm::Header => self.header,
            StampForm::Prefix(_) => self.prefix,
        }
    }
}

impl<'p> TransportProperties<'p> {
    /// Of what has no target and no payload.
    const fn environment(name: &'static str) -> Self {
        Self {
            name,
            sends_payload: false,
            block_limit: None,
            block_default: ByteSize::kib(64),
            events_default: EventsDefault::OneAtLowRates,
            is_framed: false,
            stamps: StampForms::NONE,
            streams: 1,
            target: None,
            is_ready_by_listening: false,
        }
    }

    const fn file(name: &'static str) -> Self {
        Self {
            sends_payload: true,
            stamps: StampForms::TEXT,
            ..Self::environment(name)
        }
    }

    const fn stream(name: &'static str, target: TransportTarget<'p>) -> Self {
        Self {
            sends_payload: true,
            stamps: StampForms::SOCKET,
            target: Some(target),
            is_ready_by_listening: true,
            ..Self::environment(name)
        }
    }

    const fn datagrams(
        name: &'static str,
        target: TransportTarget<'p>,
        block_limit: ByteSize,
        block_default: ByteSize,
    ) -> Self {
        Self {
            block_limit: Some(block_limit),
            block_default,
            events_default: EventsDefault::Count(1),
            is_framed: true,
            ..Self::stream(name, target)
        }
    }

    const fn requests(name: &'static str, url: &'p str) -> Self {
        Self {
            events_default: EventsDefault::Count(100),
            stamps: StampForms::REQUEST,
            ..Self::stream(name, TransportTarget::Url(url))
        }
    }

    /// The target of a broker, which runs before the measured target.
    const fn broker(name: &'static str, address: &'p str) -> Self {
        Self {
            stamps: StampForms::TEXT,
            is_ready_by_listening: false,
            ..Self::stream(name, TransportTarget::Tcp(address))
        }
    }
}

impl TransportPlan {
    /// The properties of this transport.
    #[must_use]
    pub fn properties(&self) -> TransportProperties<'_> {
        match self {
            Self::Tcp { address } => {
                TransportProperties::stream("tcp", TransportTarget::Tcp(address))
            }
            Self::Udp { address, .. } => TransportProperties {
                is_ready_by_listening: false,
                ..TransportProperties::datagrams(
                    "udp",
                    TransportTarget::Udp(address),
                    // The largest UDP payload over IPv4: 65,535 less 20 and 8 bytes of headers.
                    ByteSize::new(65_507),
                    // What fits in one Ethernet frame, with room for a tunnel.
                    ByteSize::new(1432),
                )
            },
            Self::UnixStream { path } => {
                TransportProperties::stream("unix_stream", TransportTarget::Unix(path))
            }
            Self::UnixDatagram { path } => {
                // What a default socket buffer certainly takes.
                let largest = ByteSize::new(8192);
                let target = TransportTarget::Unix(path);
                TransportProperties::datagrams("unix_datagram", target, largest, largest)
            }
            Self::Http { url, exchange, .. } => TransportProperties {
                is_framed: true,
                streams: match exchange.protocol {
                    LoadProtocol::Http1 => 1,
                    _ => exchange.streams.max(1),
                },
                ..TransportProperties::requests("http", url)
            },
            Self::SplunkHec { url, .. } => TransportProperties::requests("splunk_hec", url),
            Self::Acknowledged(plan) => match plan.by {
                AcknowledgedBy::Status { .. } => TransportProperties::requests("http", &plan.url),
                AcknowledgedBy::SplunkHec { .. } => {
                    TransportProperties::requests("splunk_hec", &plan.url)
                }
            },
            Self::Grpc { url } => TransportProperties::requests("grpc", url),
            Self::TraceAgent { url, .. } => TransportProperties {
                stamps: StampForms::HEADER,
                ..TransportProperties::requests("trace_agent", url)
            },
            Self::Files { .. } => TransportProperties::file("file_gen"),
            Self::PassthruFile { .. } => TransportProperties::file("passthru_file"),
            Self::TcpRr { address, .. } => TransportProperties {
                sends_payload: false,
                stamps: StampForms::NONE,
                ..TransportProperties::stream("tcp_rr", TransportTarget::Tcp(address))
            },
            Self::FileTree(_) => TransportProperties::environment("file_tree"),
            Self::Tls { to, .. } => match to {
                StreamTarget::Tcp(address) => {
                    TransportProperties::stream("tcp", TransportTarget::Tcp(address))
                }
                StreamTarget::Unix(path) => {
                    TransportProperties::stream("unix_stream", TransportTarget::Unix(path))
                }
            },
            Self::ProcessTree(_) => TransportProperties::environment("process_tree"),
            Self::ProcFs(_) => TransportProperties::environment("proc_fs"),
            Self::Container(_) => TransportProperties::environment("container"),
            Self::Kubernetes(_) => TransportProperties::environment("kubernetes"),
            Self::Kafka(plan) => TransportProperties {
                events_default: EventsDefault::Count(100),
                ..TransportProperties::broker("kafka", &plan.producer.address)
            },
            Self::Nats(plan) => TransportProperties::broker("nats", &plan.producer.address),
            Self::Amqp(plan) => TransportProperties::broker("amqp", &plan.producer.address),
        }
    }

    /// The name of the transport in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.properties().name
    }

    /// Returns true if the payload is what is sent; else its blocks only pace.
    #[must_use]
    pub fn sends_payload(&self) -> bool {
        self.properties().sends_payload
    }

    /// The largest block that the transport carries, if it has a limit.
    #[must_use]
    pub fn block_limit(&self) -> Option<ByteSize> {
        self.properties().block_limit
    }

    /// The URL that requests go to, if they do.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self.properties().target {
            Some(TransportTarget::Url(url)) => Some(url),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrefixFraming;

    #[test]
    fn a_transport_carries_the_stamps_that_its_properties_name() {
        let prefix = StampForm::Prefix(PrefixFraming::Lines);
        let forms = [StampForm::Text, StampForm::Header, prefix];
        let address = || "127.0.0.1:1".to_owned();
        let url = || "http://127.0.0.1:1/".to_owned();
        for (transport, carried, target) in [
            (
                TransportPlan::Tcp { address: address() },
                [true, false, true],
                Some(TransportTarget::Tcp("127.0.0.1:1")),
            ),
            (
                TransportPlan::Grpc { url: url() },
                [true, true, false],
                Some(TransportTarget::Url("http://127.0.0.1:1/")),
            ),
            (
                TransportPlan::TraceAgent {
                    url: url(),
                    retries: 0,
                },
                [false, true, false],
                Some(TransportTarget::Url("http://127.0.0.1:1/")),
            ),
            (
                TransportPlan::PassthruFile { path: "/x".into() },
                [true, false, false],
                None,
            ),
            (
                TransportPlan::TcpRr {
                    address: address(),
                    request_bytes: 1,
                    response_bytes: 1,
                },
                [false, false, false],
                Some(TransportTarget::Tcp("127.0.0.1:1")),
            ),
        ] {
            let properties = transport.properties();
            let carries = forms.map(|form| properties.stamps.carries(form));
            assert_eq!(carries, carried, "{}", properties.name);
            assert_eq!(properties.target, target, "{}", properties.name);
        }
    }
}
