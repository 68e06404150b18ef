//! The port and the readiness check of an experiment, from what was observed. Pure.

use stillwell_config::scaffold::{ProgramKind, ScaffoldInput};
use stillwell_plan::target::ReadyProbe;
use stillwell_target::{Listener, ListenerProtocol};
use stillwell_units::Nanos;

/// Ports of OpenTelemetry, over gRPC and over HTTP.
const OTLP_PORTS: [u16; 2] = [4317, 4318];
/// The first port that Linux gives to clients.
const EPHEMERAL_MIN: u16 = 32_768;
/// Call that receives logs of OpenTelemetry.
const OTLP_EXPORT: &str = "opentelemetry.proto.collector.logs.v1.LogsService/Export";
/// Shortest text that a line of a log is recognised by.
const LINE_MIN: usize = 8;

/// A listener, and its answer to an HTTP request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ObservedListener {
    pub(super) listener: Listener,
    pub(super) answer: Option<HttpAnswer>,
}

/// An answer to `GET`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct HttpAnswer {
    pub(super) is_tls: bool,
    pub(super) path: &'static str,
    pub(super) status: u16,
}

impl HttpAnswer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    const fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

/// Returns the answer that describes a port without a successful answer: the first one over HTTPS, if there is any, or
/// the first one. Servers of HTTPS answer plain requests, too, with an error.
pub(super) fn preferred(known: Option<HttpAnswer>, next: HttpAnswer) -> HttpAnswer {
    known
        .filter(|known| known.is_tls || !next.is_tls)
        .unwrap_or(next)
}

/// Port and readiness check of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) kind: ProgramKind,
    pub(super) input: ScaffoldInput,
    pub(super) ready: ReadyProbe,
    /// Sentences about what was found, and what was not.
    pub(super) remarks: Vec<String>,
}

/// Returns the kind of a program that listens like this.
pub(super) fn kind_of(observed: &[ObservedListener]) -> Option<ProgramKind> {
    let has = |wanted: &dyn Fn(&ObservedListener) -> bool| observed.iter().any(wanted);
    if has(&|entry| OTLP_PORTS.contains(&entry.listener.address.port())) {
        Some(ProgramKind::Otlp)
    } else if has(&|entry| entry.answer.is_some()) {
        Some(ProgramKind::Http)
    } else if has(&|entry| entry.listener.protocol == ListenerProtocol::Tcp) {
        Some(ProgramKind::Tcp)
    } else if has(&|entry| entry.listener.protocol == ListenerProtocol::Udp) {
        Some(ProgramKind::Udp)
    } else {
        None
    }
}

/// Returns the port and the readiness check of a program of `kind`; `None` if it has no fitting port.
pub(super) fn choose_port(
    kind: ProgramKind,
    observed: &[ObservedListener],
    lines: &[String],
) -> Option<Choice> {
    let mut fitting: Vec<&ObservedListener> = observed
        .iter()
        .filter(|entry| is_fitting(kind, entry))
        .collect();
    fitting.sort_by_key(|entry| rank(kind, entry));
    let chosen = *fitting.first()?;
    let address = chosen.listener.reachable().to_string();
    let mut remarks = Vec::new();
    let answer = chosen.answer.as_ref();
    let (input, ready) = match (kind, answer) {
        (ProgramKind::Http, answer) => {
            let scheme = answer.map_or("http", HttpAnswer::scheme);
            remarks.push(match answer {
                Some(answer) => {
                    let (path, status) = (answer.path, answer.status);
                    let advice = match answer.is_success() {
                        true => "",
                        false => "; list paths that it serves under `mix`",
                    };
                    format!("{address} answers GET {path} with status {status}{advice}")
                }
                None => format!("{address} did not answer GET / in time"),
            });
            let ready = answer.filter(|answer| answer.is_success());
            let ready = ready.map(|answer| ReadyProbe::Http {
                url: format!("{scheme}://{address}{}", answer.path),
            });
            let path = answer.filter(|answer| answer.is_success());
            let path = path.map_or("/", |answer| answer.path);
            (format!("{scheme}://{address}{path}"), ready)
        }
        (ProgramKind::Otlp, answer) => {
            let is_http = chosen.listener.address.port() == OTLP_PORTS[1] || answer.is_some();
            let input = match is_http {
                true => format!("http://{address}/v1/logs"),
                false => format!("http://{address}/{OTLP_EXPORT}"),
            };
            (input, None)
        }
        _ => (address.clone(), None),
    };
    let ready = match ready {
        Some(ready) => ready,
        None if kind == ProgramKind::Udp => by_output(lines, &mut remarks),
        None => ReadyProbe::Tcp {
            address: address.clone(),
        },
    };
    if kind != ProgramKind::Http {
        let protocol = protocol(chosen.listener.protocol);
        remarks.push(format!("it listens on {address} ({protocol})"));
    }
    let unused = observed.iter().filter(|entry| *entry != chosen);
    let unused: Vec<String> = unused.map(described).collect();
    if !unused.is_empty() {
        remarks.push(format!("it also listens on {}", unused.join(", ")));
    }
    Some(Choice {
        kind,
        input: ScaffoldInput::Address(input),
        ready,
        remarks,
    })
}

/// Returns a readiness check of a program without a port: a line of its output, or a pause.
pub(super) fn by_output(lines: &[String], remarks: &mut Vec<String>) -> ReadyProbe {
    match lines.iter().rev().find_map(|line| stable_part(line)) {
        Some(contains) => {
            remarks.push(format!("it is ready when it has written \"{contains}\""));
            ReadyProbe::LogLine { contains }
        }
        None => {
            remarks.push(
                "it wrote nothing that shows that it is ready, so runs wait for 1 s".to_owned(),
            );
            ReadyProbe::Delay {
                length: Nanos::SECOND,
            }
        }
    }
}

/// Returns the longest series of words of a line without digits: times and numbers of processes differ from start to
/// start.
fn stable_part(line: &str) -> Option<String> {
    let is_stable = |c: char| !c.is_ascii_digit() && !c.is_control() && !"\"{}".contains(c);
    let mut runs: Vec<Vec<&str>> = vec![Vec::new()];
    // One space between words is kept as it is; more would not be found again.
    for word in line.split(' ') {
        match runs.last_mut() {
            Some(run) if !word.is_empty() && word.chars().all(is_stable) => run.push(word),
            _ => runs.push(Vec::new()),
        }
    }
    let parts = runs.iter().map(|run| run.join(" "));
    let longest = parts.max_by_key(String::len)?;
    let letters = longest.chars().filter(|c| c.is_alphabetic()).count();
    (letters >= LINE_MIN).then_some(longest)
}

fn is_fitting(kind: ProgramKind, entry: &ObservedListener) -> bool {
    let protocol = match kind {
        ProgramKind::Udp => ListenerProtocol::Udp,
        _ => ListenerProtocol::Tcp,
    };
    kind.has_port() && entry.listener.protocol == protocol
}

/// Returns the key by which the best listener is first.
fn rank(kind: ProgramKind, entry: &ObservedListener) -> (u8, u16) {
    let port = entry.listener.address.port();
    let order = match kind {
        ProgramKind::Http => match &entry.answer {
            Some(answer) if answer.is_success() => 0,
            Some(answer) if answer.status < 500 => 1,
            Some(_) => 2,
            None => 3,
        },
        ProgramKind::Otlp => match OTLP_PORTS.iter().position(|known| *known == port) {
            Some(0) => 0,
            Some(_) => 1,
            None => 2,
        },
        // A page is for metrics or health, not for events.
        ProgramKind::Tcp => u8::from(entry.answer.is_some()),
        // A client's socket has such a port, too.
        _ => u8::from(port >= EPHEMERAL_MIN),
    };
    (order, port)
}

fn described(entry: &ObservedListener) -> String {
    let address = entry.listener.reachable();
    match &entry.answer {
        Some(answer) => format!("{address} (HTTP, status {})", answer.status),
        None => format!("{address} ({})", protocol(entry.listener.protocol)),
    }
}

const fn protocol(protocol: ListenerProtocol) -> &'static str {
    match protocol {
        ListenerProtocol::Tcp => "TCP",
        ListenerProtocol::Udp => "UDP",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str, status: Option<u16>) -> ObservedListener {
        ObservedListener {
            listener: Listener {
                protocol: ListenerProtocol::Tcp,
                address: address.parse().unwrap(),
            },
            answer: status.map(|status| HttpAnswer {
                is_tls: false,
                path: "/",
                status,
            }),
        }
    }

    fn udp(address: &str) -> ObservedListener {
        let mut entry = tcp(address, None);
        entry.listener.protocol = ListenerProtocol::Udp;
        entry
    }

    fn input(kind: ProgramKind, observed: &[ObservedListener]) -> Option<String> {
        match choose_port(kind, observed, &[])?.input {
            ScaffoldInput::Address(address) => Some(address),
            _ => None,
        }
    }

    #[test]
    fn the_kind_follows_from_the_ports() {
        for (observed, kind) in [
            (vec![tcp("[::]:4317", None)], Some(ProgramKind::Otlp)),
            (vec![tcp("0.0.0.0:80", Some(404))], Some(ProgramKind::Http)),
            (vec![tcp("0.0.0.0:80", None)], Some(ProgramKind::Tcp)),
            (vec![udp("0.0.0.0:514")], Some(ProgramKind::Udp)),
            (vec![], None),
        ] {
            assert_eq!(kind_of(&observed), kind, "{observed:?}");
        }
    }

    #[test]
    fn a_port_that_fits_the_kind_is_preferred() {
        let observed = [
            tcp("127.0.0.1:9000", Some(500)),
            tcp("0.0.0.0:8080", Some(200)),
            tcp("127.0.0.1:5140", None),
            udp("0.0.0.0:40000"),
            udp("0.0.0.0:9125"),
        ];
        for (kind, expected) in [
            (ProgramKind::Http, "http://127.0.0.1:8080/"),
            (ProgramKind::Tcp, "127.0.0.1:5140"),
            (ProgramKind::Udp, "127.0.0.1:9125"),
        ] {
            assert_eq!(input(kind, &observed).as_deref(), Some(expected));
        }
        let collector = [tcp("[::]:4318", Some(404)), tcp("[::]:4317", None)];
        let export = format!("http://127.0.0.1:4317/{OTLP_EXPORT}");
        assert_eq!(input(ProgramKind::Otlp, &collector), Some(export));
        assert_eq!(input(ProgramKind::Udp, &collector), None);
        assert_eq!(input(ProgramKind::Files, &collector), None);
    }

    #[test]
    fn the_first_answer_over_https_is_preferred_to_plain_ones() {
        let answer = |(is_tls, status)| HttpAnswer {
            is_tls,
            path: "/",
            status,
        };
        for (answers, expected) in [
            (vec![(false, 404), (false, 500)], (false, 404)),
            (vec![(false, 400)], (false, 400)),
            (vec![(false, 400), (true, 404)], (true, 404)),
            (
                vec![(false, 400), (false, 400), (true, 401), (true, 404)],
                (true, 401),
            ),
        ] {
            let answers = answers.iter().copied().map(answer);
            let preferred = answers.fold(None, |known, next| Some(preferred(known, next)));
            assert_eq!(preferred, Some(answer(expected)));
        }
    }

    #[test]
    fn a_page_that_fails_is_no_readiness_check() {
        for (status, is_page) in [(200, true), (204, true), (404, false), (503, false)] {
            let observed = [tcp("0.0.0.0:80", Some(status))];
            let ready = choose_port(ProgramKind::Http, &observed, &[])
                .unwrap()
                .ready;
            assert_eq!(matches!(ready, ReadyProbe::Http { .. }), is_page);
            assert_eq!(matches!(ready, ReadyProbe::Tcp { .. }), !is_page);
        }
    }

    #[test]
    fn a_line_is_recognised_by_its_part_without_numbers() {
        for (line, expected) in [
            (
                "2026-11-26T02:00:01Z INFO listening on 127.0.0.1:80",
                Some("INFO listening on"),
            ),
            ("ok", None),
            ("[123] 456", None),
        ] {
            assert_eq!(stable_part(line).as_deref(), expected, "{line}");
        }
        let lines = ["started the consumer", "1", ""].map(str::to_owned);
        let contains = "started the consumer".to_owned();
        let ready = by_output(&lines, &mut Vec::new());
        assert_eq!(ready, ReadyProbe::LogLine { contains });
        let ready = by_output(&[], &mut Vec::new());
        assert!(matches!(ready, ReadyProbe::Delay { .. }));
    }
}
