//! Pages of the admin interface.

use std::net::SocketAddr;

use serde_json::json;
use stillwell_plan::serve::ServeAdminPlan;
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

/// Sources of the pages.
#[derive(Debug)]
pub(super) struct AdminPages {
    pub(super) counter: ServeCounter,
    pub(super) listeners: Vec<SocketAddr>,
    pub(super) plan: ServeAdminPlan,
}

/// One answer.
#[derive(Debug)]
pub(super) struct AdminPage {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
    /// True if the server is to end.
    pub(super) ends_server: bool,
}

/// One count.
struct Stat {
    name: String,
    value: u64,
    /// Prometheus name without its prefix, and a label where several counts share it.
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
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if path == "/quitquitquit" {
            return AdminPage {
                ends_server: method == "POST",
                ..match method {
                    "POST" => AdminPage::text(200, "OK\n"),
                    _ => AdminPage::text(405, "Method Not Allowed: use POST\n"),
                }
            };
        }
        if !matches!(method, "GET" | "HEAD" | "POST") {
            return AdminPage::text(405, "Method Not Allowed\n");
        }
        match (path, parameter("format")) {
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
                AdminPage::text(200, self.prometheus(uptime, parameter("filter")))
            }
            ("/stats", Some("json")) => {
                let stats = self.stats(uptime, parameter("filter")).into_iter();
                let stats = stats.map(|stat| json!({ "name": stat.name, "value": stat.value }));
                AdminPage::json(&json!({ "stats": stats.collect::<Vec<_>>() }))
            }
            ("/stats", _) => {
                let stats = self.stats(uptime, parameter("filter")).into_iter();
                let lines = stats.map(|stat| format!("{}: {}\n", stat.name, stat.value));
                AdminPage::text(200, lines.collect::<String>())
            }
            _ => AdminPage::text(404, format!("unknown path {path}; the pages are:\n{HELP}")),
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
        let prefix = &self.plan.prometheus_prefix;
        for Stat {
            value,
            family,
            label,
            ..
        } in self.stats(uptime, filter)
        {
            if family != last {
                text.push_str(&format!("# TYPE {prefix}_{family} counter\n"));
                last = family;
            }
            let mut labels = Vec::new();
            if let Some((name, value)) = label {
                labels.push(format!("{prefix}_{name}=\"{value}\""));
            }
            if family.starts_with("http_") {
                let manager = &self.plan.stat_prefix;
                labels.push(format!("{prefix}_http_conn_manager_prefix=\"{manager}\""));
            }
            let labels = labels.join(",");
            text.push_str(&format!("{prefix}_{family}{{{labels}}} {value}\n"));
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
                "listener_manager_total_listeners_active",
            ),
            (
                "server.concurrency",
                self.counter.workers(),
                "server_concurrency",
            ),
            ("server.live", 1, "server_live"),
            (
                "server.uptime",
                uptime.as_u64() / 1_000_000_000,
                "server_uptime",
            ),
            (
                "ssl.connection_error",
                counts.handshakes_failed,
                "ssl_connection_error",
            ),
            ("ssl.handshake", counts.handshakes, "ssl_handshake"),
            ("ssl.session_reused", counts.resumed, "ssl_session_reused"),
        ];
        stats.extend(plain.map(|(name, value, family)| Stat {
            name: name.to_owned(),
            value,
            family,
            label: None,
        }));
        stats.retain(|stat| filter.is_none_or(|text| stat.name.contains(text)));
        stats
    }

    fn http(&self, counts: &ServeCounts) -> Vec<Stat> {
        let named = |name: &str, value, family, label| Stat {
            name: format!("http.{}.{name}", self.plan.stat_prefix),
            value,
            family,
            label,
        };
        let class = |hundreds: u16| {
            let matching = counts.statuses.iter();
            let matching = matching.filter(|(status, _)| **status / 100 == hundreds);
            matching.map(|(_, count)| count).sum::<u64>()
        };
        let mut stats = vec![
            named(
                "downstream_cx_protocol_error",
                counts.malformed,
                "http_downstream_cx_protocol_error",
                None,
            ),
            named(
                "downstream_cx_rx_bytes_total",
                counts.received_bytes,
                "http_downstream_cx_rx_bytes_total",
                None,
            ),
            named(
                "downstream_cx_total",
                counts.connections,
                "http_downstream_cx_total",
                None,
            ),
            named(
                "downstream_cx_tx_bytes_total",
                counts.sent_bytes,
                "http_downstream_cx_tx_bytes_total",
                None,
            ),
            named(
                "downstream_rq_total",
                counts.requests,
                "http_downstream_rq_total",
                None,
            ),
            named(
                "fault.response_faults_injected",
                counts.faults.values().sum(),
                "http_fault_response_faults_injected",
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
                "http_downstream_rq_xx",
                Some(("response_code_class", digit)),
            ));
        }
        stats
    }
}
