//! Properties of transports: one table for all users.

use std::path::Path;

use stillwell_units::ByteSize;

use super::{
    AcknowledgedBy, ExchangePlan, KafkaAcks, NatsAcks, RequestsPlan, StreamTarget, TransportPlan,
};
use crate::WorkUnit;
use crate::load::LoadProtocol;
use crate::stamp::StampForm;

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
    /// True if a search can vary its number of connections.
    pub has_variable_connections: bool,
    /// True if it can run on several machines, none of which runs the target.
    pub is_relocatable: bool,
    /// Unit of its work: events, unless it sends requests or starts users.
    pub unit: WorkUnit,
    /// Metrics that it records, besides those of all transports.
    pub records: TransportRecords,
}

/// Metrics that some transports record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TransportRecords {
    /// Times of the responses to its sends.
    pub response_times: bool,
    /// Statuses of responses, and the times of their first bytes.
    pub statuses: bool,
    /// Bytes of the messages of responses.
    pub response_bytes: bool,
    /// Events that the receiver acknowledged.
    pub acknowledged_events: bool,
    /// Events that the receiver refused permanently.
    pub refused_events: bool,
    /// Requests that were resent.
    pub resends: bool,
    /// Polls for acknowledgements, and their results.
    pub polls: bool,
    /// Maximum number of requests in flight.
    pub requests_max: bool,
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

impl TransportRecords {
    const NONE: Self = Self {
        response_times: false,
        statuses: false,
        response_bytes: false,
        acknowledged_events: false,
        refused_events: false,
        resends: false,
        polls: false,
        requests_max: false,
    };
    const RESPONSES: Self = Self {
        response_times: true,
        ..Self::NONE
    };
    const ACKNOWLEDGED: Self = Self {
        acknowledged_events: true,
        refused_events: true,
        ..Self::RESPONSES
    };
}

impl TransportProperties<'static> {
    const TCP: Self = Self {
        is_relocatable: true,
        ..Self::stream("tcp")
    };
    const UDP: Self = Self {
        is_ready_by_listening: false,
        is_relocatable: true,
        ..Self::datagrams(
            "udp",
            // The largest UDP payload over IPv4: 65,535 less 20 and 8 bytes of headers.
            ByteSize::new(65_507),
            // The content of one Ethernet frame, with room for a tunnel.
            ByteSize::new(1432),
        )
    };
    const UNIX_STREAM: Self = Self::stream("unix_stream");
    // The kernel's default buffers (208 KiB) and those of sinks have room for the largest block.
    const UNIX_DATAGRAM: Self =
        Self::datagrams("unix_datagram", ByteSize::kib(128), ByteSize::new(8192));
    const HTTP: Self = Self {
        is_relocatable: true,
        records: TransportRecords {
            statuses: true,
            ..TransportRecords::RESPONSES
        },
        ..Self::requests("http")
    };
    const REQUESTS: Self = Self {
        name: "requests",
        sends_payload: false,
        events_default: EventsDefault::Count(1),
        stamps: StampForms::NONE,
        has_variable_connections: false,
        unit: WorkUnit::Requests,
        ..Self::HTTP
    };
    const SCENARIO: Self = Self {
        name: "scenario",
        is_relocatable: false,
        unit: WorkUnit::Users,
        ..Self::REQUESTS
    };
    const SPLUNK_HEC: Self = Self {
        records: TransportRecords {
            refused_events: true,
            resends: true,
            requests_max: true,
            ..TransportRecords::RESPONSES
        },
        ..Self::requests("splunk_hec")
    };
    /// Of a collector that is polled for acknowledgements.
    const SPLUNK_HEC_POLLED: Self = Self {
        records: TransportRecords {
            acknowledged_events: true,
            polls: true,
            ..Self::SPLUNK_HEC.records
        },
        ..Self::SPLUNK_HEC
    };
    /// Of requests that are acknowledged by their statuses.
    const HTTP_ACKNOWLEDGED: Self = Self {
        is_relocatable: false,
        records: TransportRecords {
            resends: true,
            ..TransportRecords::ACKNOWLEDGED
        },
        ..Self::HTTP
    };
    const GRPC: Self = Self {
        is_relocatable: true,
        records: TransportRecords {
            response_bytes: true,
            ..TransportRecords::RESPONSES
        },
        ..Self::requests("grpc")
    };
    const TRACE_AGENT: Self = Self {
        stamps: StampForms::HEADER,
        is_relocatable: true,
        records: TransportRecords {
            resends: true,
            ..TransportRecords::RESPONSES
        },
        ..Self::requests("trace_agent")
    };
    const FILE_GEN: Self = Self::file("file_gen");
    const PASSTHRU_FILE: Self = Self::file("passthru_file");
    const TCP_RR: Self = Self {
        sends_payload: false,
        stamps: StampForms::NONE,
        has_variable_connections: false,
        is_relocatable: true,
        records: TransportRecords::RESPONSES,
        ..Self::stream("tcp_rr")
    };
    const FILE_TREE: Self = Self::environment("file_tree");
    const PROCESS_TREE: Self = Self::answering_environment("process_tree");
    const PROC_FS: Self = Self::environment("proc_fs");
    const CONTAINER: Self = Self::answering_environment("container");
    const KUBERNETES: Self = Self::answering_environment("kubernetes");
    const KAFKA: Self = Self {
        events_default: EventsDefault::Count(100),
        ..Self::broker("kafka")
    };
    const NATS: Self = Self::broker("nats");
    const AMQP: Self = Self::broker("amqp");

    /// All transports, as they are without a plan.
    pub(super) const ALL: [Self; 21] = [
        Self::TCP,
        Self::UDP,
        Self::UNIX_STREAM,
        Self::UNIX_DATAGRAM,
        Self::HTTP,
        Self::REQUESTS,
        Self::SCENARIO,
        Self::SPLUNK_HEC,
        Self::GRPC,
        Self::TRACE_AGENT,
        Self::FILE_GEN,
        Self::PASSTHRU_FILE,
        Self::TCP_RR,
        Self::FILE_TREE,
        Self::PROCESS_TREE,
        Self::PROC_FS,
        Self::CONTAINER,
        Self::KUBERNETES,
        Self::KAFKA,
        Self::NATS,
        Self::AMQP,
    ];

    /// The names of the transports that carry stamps of `form`.
    pub fn carriers(form: StampForm) -> impl Iterator<Item = &'static str> {
        let all = Self::ALL.into_iter();
        all.filter(move |transport| transport.stamps.carries(form))
            .map(|transport| transport.name)
    }

    /// Of a simulated environment, which has no target and no payload.
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
            has_variable_connections: false,
            is_relocatable: false,
            unit: WorkUnit::Events,
            records: TransportRecords::NONE,
        }
    }

    /// Of a simulated environment that reports when its work is done.
    const fn answering_environment(name: &'static str) -> Self {
        Self {
            records: TransportRecords::RESPONSES,
            ..Self::environment(name)
        }
    }

    const fn file(name: &'static str) -> Self {
        Self {
            sends_payload: true,
            stamps: StampForms::TEXT,
            ..Self::environment(name)
        }
    }

    const fn stream(name: &'static str) -> Self {
        Self {
            sends_payload: true,
            stamps: StampForms::SOCKET,
            is_ready_by_listening: true,
            has_variable_connections: true,
            ..Self::environment(name)
        }
    }

    const fn datagrams(name: &'static str, block_limit: ByteSize, block_default: ByteSize) -> Self {
        Self {
            block_limit: Some(block_limit),
            block_default,
            events_default: EventsDefault::Count(1),
            is_framed: true,
            has_variable_connections: false,
            ..Self::stream(name)
        }
    }

    const fn requests(name: &'static str) -> Self {
        Self {
            events_default: EventsDefault::Count(100),
            stamps: StampForms::REQUEST,
            records: TransportRecords::RESPONSES,
            ..Self::stream(name)
        }
    }

    /// Of a broker, which runs before the measured target.
    const fn broker(name: &'static str) -> Self {
        Self {
            stamps: StampForms::TEXT,
            is_ready_by_listening: false,
            has_variable_connections: false,
            ..Self::stream(name)
        }
    }

    /// The same of a broker that confirms events, if `is_confirmed`.
    const fn confirmed_if(self, is_confirmed: bool) -> Self {
        let records = if is_confirmed {
            TransportRecords::ACKNOWLEDGED
        } else {
            TransportRecords::NONE
        };
        Self { records, ..self }
    }

    /// Of requests with blocks over the connections of `exchange`.
    fn http(exchange: &ExchangePlan) -> Self {
        Self {
            is_framed: true,
            streams: match exchange.protocol {
                LoadProtocol::Http1 => 1,
                _ => exchange.streams.max(1),
            },
            ..Self::HTTP
        }
    }

    /// Of the requests of `plan`.
    fn of_requests(plan: &RequestsPlan) -> Self {
        Self {
            // HTTP/3 has no TCP port.
            is_ready_by_listening: plan.client().connecting.protocol != LoadProtocol::Http3,
            ..Self::REQUESTS
        }
    }

    /// Of requests that are sent until they are acknowledged in this way.
    const fn acknowledged(by: &AcknowledgedBy) -> Self {
        match by {
            AcknowledgedBy::Status { .. } => Self::HTTP_ACKNOWLEDGED,
            AcknowledgedBy::SplunkHec { .. } => Self::SPLUNK_HEC_POLLED,
        }
    }
}

impl TransportPlan {
    /// The properties of this transport.
    #[must_use]
    pub fn properties(&self) -> TransportProperties<'_> {
        use TransportProperties as Of;
        use TransportTarget::{Tcp, Udp, Unix, Url};
        let (properties, target) = match self {
            Self::Tcp { address } => (Of::TCP, Some(Tcp(address))),
            Self::Udp { address, .. } => (Of::UDP, Some(Udp(address))),
            Self::UnixStream { path } => (Of::UNIX_STREAM, Some(Unix(path))),
            Self::UnixDatagram { path } => (Of::UNIX_DATAGRAM, Some(Unix(path))),
            Self::Http { url, exchange, .. } => (Of::http(exchange), Some(Url(url))),
            Self::Requests(plan) => (Of::of_requests(plan), Some(Url(plan.url()))),
            Self::Scenario(plan) => (Of::SCENARIO, Some(Url(&plan.url))),
            Self::SplunkHec {
                url,
                acknowledgements,
                ..
            } => {
                let properties = match acknowledgements {
                    Some(_) => Of::SPLUNK_HEC_POLLED,
                    None => Of::SPLUNK_HEC,
                };
                (properties, Some(Url(url)))
            }
            Self::Acknowledged(plan) => (Of::acknowledged(&plan.by), Some(Url(&plan.url))),
            Self::Grpc { url } => (Of::GRPC, Some(Url(url))),
            Self::TraceAgent { url, .. } => (Of::TRACE_AGENT, Some(Url(url))),
            Self::Files { .. } => (Of::FILE_GEN, None),
            Self::PassthruFile { .. } => (Of::PASSTHRU_FILE, None),
            Self::TcpRr { address, .. } => (Of::TCP_RR, Some(Tcp(address))),
            Self::FileTree(_) => (Of::FILE_TREE, None),
            Self::Tls { to, .. } => {
                let (stream, target) = match to {
                    StreamTarget::Tcp(address) => (Of::TCP, Tcp(address)),
                    StreamTarget::Unix(path) => (Of::UNIX_STREAM, Unix(path)),
                };
                let tls = TransportProperties {
                    has_variable_connections: false,
                    ..stream
                };
                (tls, Some(target))
            }
            Self::ProcessTree(_) => (Of::PROCESS_TREE, None),
            Self::ProcFs(_) => (Of::PROC_FS, None),
            Self::Container(_) => (Of::CONTAINER, None),
            Self::Kubernetes(_) => (Of::KUBERNETES, None),
            Self::Kafka(plan) => (
                Of::KAFKA.confirmed_if(plan.acks != KafkaAcks::None),
                Some(Tcp(&plan.producer.address)),
            ),
            Self::Nats(plan) => (
                Of::NATS.confirmed_if(plan.acks != NatsAcks::None),
                Some(Tcp(&plan.producer.address)),
            ),
            Self::Amqp(plan) => (
                Of::AMQP.confirmed_if(plan.confirms),
                Some(Tcp(&plan.producer.address)),
            ),
        };
        TransportProperties {
            target,
            ..properties
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
    use crate::generator::MessageLength;
    use crate::stamp::PrefixFraming;

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
                    request_bytes: MessageLength::MIN,
                    response_bytes: MessageLength::MIN,
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
