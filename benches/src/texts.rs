//! Text payloads with options, as they are measured.

use serde_json::json;
use stillwell_plan::PayloadFormat;

/// Each with what it is called.
///
/// # Errors
/// When one of them is no plan.
pub fn text_payloads() -> serde_json::Result<Vec<(&'static str, PayloadFormat)>> {
    let plain = [
        ("syslog3164", json!("syslog3164")),
        (
            "splunk_hec json",
            json!({"splunk_hec": {"encoding": "json"}}),
        ),
        (
            "splunk_hec text",
            json!({"splunk_hec": {"encoding": "text"}}),
        ),
        ("loki", json!({"loki": {"streams": 100}})),
        (
            "elasticsearch",
            json!({"elasticsearch": {"index": "logs-a-b", "action": "create"}}),
        ),
        ("influx", json!({"influx": {"series": 1000}})),
        ("gelf", json!({"gelf": {"end": "null"}})),
        ("cef", json!({"cef": {"header": "syslog"}})),
        ("template, fields", json!({"template": fields()})),
        ("template, message", json!({"template": message()})),
        ("templated_json", json!({"templated_json": object()})),
    ];
    let plans = plain.into_iter();
    plans
        .map(|(name, plan)| Ok((name, serde_json::from_value(plan)?)))
        .collect()
}

/// A line of many short fields: the worst case.
fn fields() -> serde_json::Value {
    let integer = |low: i64, high: i64| json!({"integer": {"low": low, "high": high, "digits": 1}});
    plan(json!({"sequence": [
        {"time": "rfc3339"}, {"text": " "}, {"value": "host"}, {"text": " "},
        {"value": "application"}, {"text": "["}, integer(1, 65535), {"text": "]: level="},
        choice(&["debug", "info", "warn", "error"]),
        {"text": " user="}, {"value": "user"}, {"text": " from="}, {"value": "ipv4"},
        {"text": " path="}, {"value": "path"}, {"text": " status="}, integer(200, 504),
        {"text": " bytes="}, integer(0, 1_000_000), {"text": " trace="},
        {"random": {"alphabet": "hexadecimal", "count": 32}}, {"text": "\n"},
    ]}))
}

/// A log message behind a time.
fn message() -> serde_json::Value {
    plan(
        json!({"sequence": [{"time": "rfc3164"}, {"text": " "}, {"value": "message"}, {"text": "\n"}]}),
    )
}

/// A log record with variables and texts between, as people write them.
fn object() -> serde_json::Value {
    let format = |before: &str, after: &str| {
        json!({"sequence": [
            {"text": format!("\"{before}")}, {"inside": {"variable": 0}}, {"text": format!("{after}\"")},
        ]})
    };
    let mut parts = vec![json!({"text": "{\"id\":"}), json!({"variable": 0})];
    for (name, value) in [
        (
            "message",
            format(
                "10.1.2.3 - user",
                r#" [23/Apr/2026:12:34:56 +0000] \"GET /items HTTP/1.1\" 200 1234"#,
            ),
        ),
        (
            "timestamp",
            json!({"sequence": [{"text": "\""}, "clock", {"text": "\""}]}),
        ),
        ("env", choice(&["\"production\"", "\"staging\""])),
        (
            "service",
            choice(&["\"api\"", "\"auth\"", "\"billing\"", "\"search\""]),
        ),
        (
            "correlation_id",
            format("corr-", "-a1b2c3d4-e5f6-7890-abcd-ef1234567890"),
        ),
        (
            "trace_id",
            format("trace-", "-00000000000000000000000000000000"),
        ),
        (
            "raw",
            json!({"text": r#""{\"api_version\":\"v2\",\"trace_sampled\":true,\"upstream_status\":200}""#}),
        ),
        (
            "tags",
            json!({"text": r#"["env:production","service:api","region:north"]"#}),
        ),
    ] {
        parts.push(json!({"text": format!(",\"{name}\":")}));
        parts.push(value);
    }
    parts.push(json!({"text": "}\n"}));
    json!({
        "root": {"with": {
            "variables": [[0, {"integer": {"low": 1, "high": 10_000_000, "digits": 1}}]],
            "part": {"sequence": parts},
        }},
        "definitions": [],
        "variables": 1,
    })
}

fn plan(root: serde_json::Value) -> serde_json::Value {
    json!({"root": root, "definitions": [], "variables": 0})
}

fn choice(texts: &[&str]) -> serde_json::Value {
    let parts: Vec<_> = texts
        .iter()
        .map(|text| json!([1, {"text": text}]))
        .collect();
    json!({"choice": parts})
}
