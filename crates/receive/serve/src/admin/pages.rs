//! What there is to be read.

use std::net::SocketAddr;

use serde_json::json;
use stillwell_units::Nanos;

use crate::counts::{ServeCounter, ServeCounts};

const TEXT: &str = "text/plain; charset=UTF-8";
const JSON: &str = "application/json";

const HELP: &str = "\
/: this page
/listeners: where the server listens; format=json
/quitquitquit (POST): ends the server
/ready: LIVE
/server_info: version and state
/stats: what was counted; format=json, format=prometheus, filter=TEXT
/stats/prometheus: the same for Prometheus
";

/// Where everything is found that is told.
#[derive(Debug)]
pub(super) struct AdminPages {
    pub(super) counter: ServeCounter,
    pub(super) listeners: Vec<SocketAddr>,
    pub(super) stat_prefix: String,
}

/// One answer.
#[derive(Debug)]
pub(super) struct AdminPage {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
    /// Whether the server is to end.
    pub(super) ends_server: bool,
}

/// One count, as Envoy calls it.
struct Stat {
    name: String,
    value: u64,
    /// As Prometheus has it: a name, and a label where several counts share it.
    family: &'static str,
    label: Option<(&'static str, &'static str)>,
}

impl AdminPage {
    pub(super) fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            kind: TEXT,
            body: body.into(),
            ends_server: false,
        }
    }

    fn json(value: &serde_json::Value) -> Self {
        Self {
            kind: JSON,
            ..Self::text(200, format!("{value}\n"))
        }
    }
}

impl AdminPages {
    /// The answer to a request for `target`, when the server has run for `uptime`.
    pub(super) fn page(&self, method: &str, target: &str, uptime: Nanos) -> AdminPage {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let asked = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if path == "/quitquitquit" {
            return AdminPage {
                ends_server: method == "POST",
                ..match method {
                    "POST" => AdminPage::text(200, "OK\n"),
                    _ => AdminPage::text(405, "Method Not Allowed: POST it\n"),
                }
            };
        }
        if !matches!(method, "GET" | "HEAD" | "POST") {
            return AdminPage::text(405, "Method Not Allowed\n");
        }
        match (path, asked("format")) {
            ("/" | "/help", _) => AdminPage::text(200, HELP),
            ("/ready", _) => AdminPage::text(200, "LIVE\n"),
            ("/server_info", _) => AdminPage::json(&json!({
                "version": format!("stillwell/{}", env!("CARGO_PKG_VERSION")),
                "state": "LIVE",
                "uptime_current_epoch": format!("{}s", uptime.as_u64() / 1_000_000_000),
                "uptime_all_epochs": format!("{}s", uptime.as_u64() / 1_000_000_000),
                "command_line_options": { "concurrency": self.counter.workers() },
            })),
            ("/listeners", Some("json")) => AdminPage::json(&self.listeners_json()),
            ("/listeners", _) => AdminPage::text(200, self.listeners_text()),
            ("/stats/prometheus", _) | ("/stats", Some("prometheus")) => {
                AdminPage::text(200, self.prometheus(uptime, asked("filter")))
            }
            ("/stats", Some("json")) => {
                let stats = self.stats(uptime, asked("filter")).into_iter();
                let stats = stats.map(|own| json!({ "name": own.name, "value": own.value }));
                AdminPage::json(&json!({ "stats": stats.collect::<Vec<_>>() }))
            }
            ("/stats", _) => {
                let stats = self.stats(uptime, asked("filter")).into_iter();
                let lines = stats.map(|own| format!("{}: {}\n", own.name, own.value));
                AdminPage::text(200, lines.collect::<String>())
            }
            _ => AdminPage::text(404, format!("there is no {path}; there are:\n{HELP}")),
        }
    }

    fn listeners_text(&self) -> String {
        let lines = self.listeners.iter().enumerate();
        lines
            .map(|(number, address)| format!("listener_{number}::{address}\n"))
            .collect()
    }

    fn listeners_json(&self) -> serde_json::Value {
        let all = self.listeners.iter().enumerate().map(|(number, address)| {
            let address =
                json!({ "address": address.ip().to_string(), "port_value": address.port() });
            json!({
                "name": format!("listener_{number}"),
                "local_address": { "socket_address": address },
            })
        });
        json!({ "listener_statuses": all.collect::<Vec<_>>() })
    }

    fn prometheus(&self, uptime: Nanos, filter: Option<&str>) -> String {
        let mut text = String::new();
        let mut last = "";
        for own in self.stats(uptime, filter) {
            if own.family != last {
                text.push_str(&format!("# TYPE {} counter\n", own.family));
                last = own.family;
            }
            let mut labels = Vec::new();
            if let Some((name, value)) = own.label {
                labels.push(format!("{name}=\"{value}\""));
            }
            if own.family.starts_with("envoy_http_") {
                let prefix = &self.stat_prefix;
                labels.push(format!("envoy_http_conn_manager_prefix=\"{prefix}\""));
            }
            let labels = labels.join(",");
            text.push_str(&format!("{}{{{labels}}} {}\n", own.family, own.value));
        }
        text
    }

    /// All counts whose name holds `filter`.
    fn stats(&self, uptime: Nanos, filter: Option<&str>) -> Vec<Stat> {
        let counts = self.counter.total();
        let mut stats = self.http(&counts);
        let plain = [
            (
                "listener_manager.total_listeners_active",
                self.listeners.len() as u64,
                "envoy_listener_manager_total_listeners_active",
            ),
            (
                "server.concurrency",
                self.counter.workers(),
                "envoy_server_concurrency",
            ),
            ("server.live", 1, "envoy_server_live"),
            (
                "server.uptime",
                uptime.as_u64() / 1_000_000_000,
                "envoy_server_uptime",
            ),
            (
                "ssl.connection_error",
                counts.handshakes_failed,
                "envoy_ssl_connection_error",
            ),
            ("ssl.handshake", counts.handshakes, "envoy_ssl_handshake"),
            (
                "ssl.session_reused",
                counts.resumed,
                "envoy_ssl_session_reused",
            ),
        ];
        stats.extend(plain.map(|(name, value, family)| Stat {
            name: name.to_owned(),
            value,
            family,
            label: None,
        }));
        stats.retain(|own| filter.is_none_or(|text| own.name.contains(text)));
        stats
    }

    fn http(&self, counts: &ServeCounts) -> Vec<Stat> {
        let named = |name: &str, value, family, label| Stat {
            name: format!("http.{}.{name}", self.stat_prefix),
            value,
            family,
            label,
        };
        let class = |hundreds: u16| {
            let own = counts.statuses.iter();
            let own = own.filter(|(status, _)| **status / 100 == hundreds);
            own.map(|(_, count)| count).sum::<u64>()
        };
        let mut stats = vec![
            named(
                "downstream_cx_protocol_error",
                counts.malformed,
                "envoy_http_downstream_cx_protocol_error",
                None,
            ),
            named(
                "downstream_cx_total",
                counts.connections,
                "envoy_http_downstream_cx_total",
                None,
            ),
            named(
                "downstream_cx_tx_bytes_total",
                counts.sent_bytes,
                "envoy_http_downstream_cx_tx_bytes_total",
                None,
            ),
            named(
                "downstream_rq_total",
                counts.requests,
                "envoy_http_downstream_rq_total",
                None,
            ),
            named(
                "fault.response_faults_injected",
                counts.faults.values().sum(),
                "envoy_http_fault_response_faults_injected",
                None,
            ),
        ];
        for (hundreds, digit, name) in [
            (2, "2", "downstream_rq_2xx"),
            (3, "3", "downstream_rq_3xx"),
            (4, "4", "downstream_rq_4xx"),
            (5, "5", "downstream_rq_5xx"),
        ] {
            stats.push(named(
                name,
                class(hundreds),
                "envoy_http_downstream_rq_xx",
                Some(("envoy_response_code_class", digit)),
            ));
        }
        stats
    }
}
