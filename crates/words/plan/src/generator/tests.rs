//! Every transport, and its properties.

use std::collections::BTreeSet;

use stillwell_units::Target;

use super::*;
use crate::load::{BodyPlan, EndpointPlan, LoadProtocol, RequestPlan};

/// Every transport, at addresses of this machine, and its properties as a text.
pub(crate) fn every_transport() -> Vec<(TransportPlan, &'static str)> {
    let groups = [
        sockets(),
        services(),
        acknowledging_services(),
        broker::tests::brokers(),
        places(),
    ];
    groups.into_iter().flatten().collect()
}

/// A plan of one request to `url`.
pub(crate) fn requests_to(url: &str) -> TransportPlan {
    let target = Target::from_url(url).unwrap();
    let request = RequestPlan {
        method: "GET".to_owned(),
        path: target.path_and_query().to_owned(),
        authority: target.authority(),
        is_authority_stated: false,
        headers: Vec::new(),
        body: BodyPlan::None,
    };
    let endpoint = EndpointPlan {
        address: target.dial_address(),
        tls_host: None,
        weight: 1,
        requests: vec![request],
    };
    let client = ExchangePlan::default().client();
    let plan = RequestsPlan::try_new(url.to_owned(), endpoint, client).unwrap();
    TransportPlan::Requests(Box::new(plan))
}

fn address() -> String {
    "127.0.0.1:1".to_owned()
}

fn url() -> String {
    "http://127.0.0.1:1/".to_owned()
}

fn path() -> PathBuf {
    "/x".into()
}

fn sockets() -> Vec<(TransportPlan, &'static str)> {
    let tls = |to| TransportPlan::Tls {
        to,
        tls: Box::default(),
    };
    vec![
        (
            TransportPlan::Tcp { address: address() },
            "tcp events connections relocatable",
        ),
        (
            TransportPlan::Udp {
                address: address(),
                bind: "127.0.0.1:0".to_owned(),
            },
            "udp events relocatable",
        ),
        (
            TransportPlan::UnixStream { path: path() },
            "unix_stream events connections",
        ),
        (
            TransportPlan::UnixDatagram { path: path() },
            "unix_datagram events",
        ),
        (
            TransportPlan::TcpRr {
                address: address(),
                request_bytes: MessageLength::MIN,
                response_bytes: MessageLength::MIN,
            },
            "tcp_rr events relocatable response_times",
        ),
        (tls(StreamTarget::Tcp(address())), "tcp events relocatable"),
        (tls(StreamTarget::Unix(path())), "unix_stream events"),
    ]
}

fn services() -> Vec<(TransportPlan, &'static str)> {
    let scenario = ScenarioPlan {
        url: url(),
        address: address(),
        authority: address(),
        base: String::new(),
        tls_host: None,
        tls: ClientTlsPlan::default(),
        is_to_target: false,
        protocol: LoadProtocol::Http1,
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        variables: Vec::new(),
        rows: Vec::new(),
        columns: Vec::new(),
        flows: Vec::new(),
    };
    vec![
        (
            TransportPlan::Http {
                url: url(),
                headers: Vec::new(),
                exchange: Box::default(),
            },
            "http events connections relocatable response_times statuses",
        ),
        (
            requests_to(&url()),
            "requests requests relocatable response_times statuses",
        ),
        (
            TransportPlan::Scenario(Box::new(scenario)),
            "scenario users response_times statuses",
        ),
        (
            TransportPlan::Grpc { url: url() },
            "grpc events connections relocatable response_times response_bytes",
        ),
        (
            TransportPlan::TraceAgent {
                url: url(),
                retries: 0,
            },
            "trace_agent events connections relocatable response_times resends",
        ),
    ]
}

fn acknowledging_services() -> Vec<(TransportPlan, &'static str)> {
    let questions = HecAcknowledgements {
        every: Nanos::SECOND,
        timeout: Nanos::SECOND,
    };
    let hec = |acknowledgements| TransportPlan::SplunkHec {
        url: url(),
        token: String::new(),
        acknowledgements,
    };
    let acknowledged = |by| {
        TransportPlan::Acknowledged(Box::new(AcknowledgedPlan {
            url: url(),
            by,
            retries: 0,
            end_timeout: Nanos::SECOND,
        }))
    };
    let by_hec = AcknowledgedBy::SplunkHec {
        token: String::new(),
        questions,
    };
    let by_status = AcknowledgedBy::Status {
        headers: Vec::new(),
    };
    vec![
        (
            hec(None),
            "splunk_hec events connections response_times refused resends requests_max",
        ),
        (
            hec(Some(questions)),
            "splunk_hec events connections response_times acknowledged refused resends polls requests_max",
        ),
        (
            acknowledged(by_hec),
            "splunk_hec events connections response_times acknowledged refused resends polls requests_max",
        ),
        (
            acknowledged(by_status),
            "http events connections response_times acknowledged refused resends",
        ),
    ]
}

/// A tree of files with one of everything.
pub(crate) fn smallest_file_tree(root: PathBuf) -> FileTreePlan {
    let single = NonZeroU32::MIN;
    FileTreePlan {
        root,
        depth_max: single,
        folders_max: single,
        files_max: single,
        nodes_max: single,
        name_length: single,
        renames: RenameShare::try_new(0, single).unwrap(),
    }
}

/// Files, and simulated environments.
fn places() -> Vec<(TransportPlan, &'static str)> {
    let single = NonZeroU32::MIN;
    let tree = smallest_file_tree(path());
    let processes = ProcessTreePlan {
        depth_max: single,
        children_max: single,
        processes_max: single,
        sleep: Nanos::SECOND,
        executables: Vec::new(),
    };
    let proc_fs = ProcFsPlan {
        root: path(),
        processes: 1,
        copies: Vec::new(),
    };
    vec![
        (
            TransportPlan::Files {
                layout: FileLayout::Appended { path: path() },
                bytes_max: ByteSize::mib(1),
            },
            "file_gen events",
        ),
        (
            TransportPlan::PassthruFile { path: path() },
            "passthru_file events",
        ),
        (TransportPlan::FileTree(tree), "file_tree events"),
        (
            TransportPlan::ProcessTree(processes),
            "process_tree events response_times",
        ),
        (TransportPlan::ProcFs(proc_fs), "proc_fs events"),
        (containers(), "container events response_times"),
        (objects(), "kubernetes events response_times"),
    ]
}

fn containers() -> TransportPlan {
    TransportPlan::Container(Box::new(ContainerPlan {
        socket: path(),
        repository: String::new(),
        tag: String::new(),
        arguments: None,
        environment: Vec::new(),
        labels: Vec::new(),
        is_offline: true,
        ports: Vec::new(),
        lifetime: None,
        count: 1,
    }))
}

fn objects() -> TransportPlan {
    TransportPlan::Kubernetes(Box::new(KubernetesPlan {
        kind: KubernetesKind::Pod,
        name: String::new(),
        namespace: None,
        manifest: serde_json::Value::Null,
        lifetime: None,
        count: 1,
        kubeconfig: None,
        context: None,
    }))
}

/// The name, the unit and all properties that are true.
fn properties_text(transport: &TransportPlan) -> String {
    let properties = transport.properties();
    let records = properties.records;
    let flags = [
        (properties.has_variable_connections, "connections"),
        (properties.is_relocatable, "relocatable"),
        (records.response_times, "response_times"),
        (records.statuses, "statuses"),
        (records.response_bytes, "response_bytes"),
        (records.acknowledged_events, "acknowledged"),
        (records.refused_events, "refused"),
        (records.resends, "resends"),
        (records.polls, "polls"),
        (records.requests_max, "requests_max"),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    let mut words = vec![properties.name, properties.unit.plural()];
    words.extend(set.map(|(_, word)| word));
    words.join(" ")
}

#[test]
fn every_transport_has_the_properties_of_its_row() {
    let rows = every_transport();
    for (transport, expected) in &rows {
        assert_eq!(properties_text(transport), *expected);
    }
    let names: BTreeSet<&str> = rows.iter().map(|(transport, _)| transport.name()).collect();
    let all = TransportProperties::ALL.into_iter();
    let all: BTreeSet<&str> = all.map(|properties| properties.name).collect();
    assert_eq!(names, all);
}
