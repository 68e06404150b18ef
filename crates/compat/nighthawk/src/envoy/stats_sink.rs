//! Envoy's stats sinks: the kinds of statsd.

use stillwell_plan::load::{ReceiverPlan, StatsProtocol, StatsSinkPlan};
use stillwell_text::{Keys, Node, Reader, code};

use super::common::{check_type, named, read_address, required};

const STATSD: [&str; 2] = ["envoy.stat_sinks.statsd", "envoy.statsd"];
const DOGSTATSD: [&str; 2] = ["envoy.stat_sinks.dog_statsd", "envoy.dog_statsd"];

/// Nighthawk's sink that passes all on to one of Envoy's.
const ADAPTER: &str = "nighthawk.envoy_stats_sink_adapter";

/// Divides times by a million before they are sent.
const SCALE: &str = "scale_histogram_units_to_milliseconds";

/// Default prefix of names.
const PREFIX: &str = "envoy";

/// Reads a sink; `Some(None)` if it names a cluster, and `tcp_address` gives no address for it.
pub(super) fn read(
    reader: &Reader,
    node: &Node,
    tcp_address: Option<&str>,
) -> Option<Option<StatsSinkPlan>> {
    let names = [STATSD[0], STATSD[1], DOGSTATSD[0], DOGSTATSD[1], ADAPTER];
    let (name, config) = named(reader, node, "stats sink", (&names, &[]))?;
    let config = required(reader, node, config)?;
    if name == ADAPTER {
        let map = reader.map(config, &Keys::new("adapter", &["@type", "sink"]))?;
        check_type(reader, &map, &["EnvoyStatsSinkAdapterConfig"]);
        return read(reader, map.required("sink")?, tcp_address);
    }
    let is_tagged = DOGSTATSD.contains(&name);
    let keys: &[&'static str] = if is_tagged {
        &["@type", "address", "prefix", SCALE]
    } else {
        &["@type", "address", "tcp_cluster_name", "prefix", SCALE]
    };
    let keys = Keys::new("stats sink", keys).known(&["max_bytes_per_datagram"]);
    let map = reader.map(config, &keys)?;
    check_type(reader, &map, &["StatsdSink", "DogStatsdSink"]);
    // Times are in milliseconds in any case.
    map.ignore(SCALE);
    let prefix = map.read_or("prefix", PREFIX, |node| reader.text(node))?;
    let cluster = (!is_tagged).then(|| map.take("tcp_cluster_name")).flatten();
    let (protocol, to) = match (map.take("address"), cluster) {
        (Some(node), None) => {
            let protocol = if is_tagged {
                StatsProtocol::Dogstatsd
            } else {
                StatsProtocol::Statsd
            };
            (protocol, read_address(reader, node, "UDP")?.to_string())
        }
        (None, Some(node)) => {
            reader.text(node)?;
            let Some(to) = tcp_address else {
                return Some(None);
            };
            (StatsProtocol::StatsdTcp, to.to_owned())
        }
        _ => {
            let message = "a stats sink has either `address` or `tcp_cluster_name`";
            reader.report(reader.error(code::ONE_OF_KEYS, config.span, message));
            return None;
        }
    };
    Some(Some(StatsSinkPlan {
        name: format!("{name} at {to}"),
        protocol,
        receiver: ReceiverPlan {
            address: to,
            tls_host: None,
            authority: String::new(),
            path: String::new(),
        },
        prefix: prefix.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::EnvoyMessage;

    fn read_sink(config: &str, tcp_address: Option<&str>) -> Result<Option<StatsSinkPlan>, String> {
        let text = format!(
            r#"{{name:"envoy.stat_sinks.statsd",typed_config:
                {{"@type":"type.googleapis.com/envoy.config.metrics.v3.StatsdSink",{config}}}}}"#
        );
        let message = EnvoyMessage::parse("--stats-sinks", &text);
        let read = message.and_then(|message| message.stats_sink(tcp_address));
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    #[test]
    fn statsd_is_sent_in_datagrams_or_over_tcp() {
        let plan = read_sink(
            r#"address:{socket_address:{protocol:UDP,address:"127.0.0.1",port_value:8125}},prefix:nh"#,
            None,
        );
        let plan = plan.unwrap().unwrap();
        assert_eq!(plan.protocol, StatsProtocol::Statsd);
        assert_eq!(plan.receiver.address, "127.0.0.1:8125");
        assert_eq!(plan.prefix, "nh");
        let plan = read_sink(r#"tcp_cluster_name:"statsd""#, Some("a:1"));
        let plan = plan.unwrap().unwrap();
        assert_eq!(plan.protocol, StatsProtocol::StatsdTcp);
        assert_eq!(
            (plan.receiver.address.as_str(), plan.prefix.as_str()),
            ("a:1", "envoy")
        );
        let adapted = r#"{name:"nighthawk.envoy_stats_sink_adapter",typed_config:{
            "@type":"type.googleapis.com/nighthawk.EnvoyStatsSinkAdapterConfig",
            sink:{name:"envoy.stat_sinks.dog_statsd",typed_config:{
                scale_histogram_units_to_milliseconds:true,address:{socket_address:
                {address:"::1",port_value:1}},prefix:nh}}}}"#;
        let message = EnvoyMessage::parse("--stats-sinks", adapted).unwrap();
        let plan = message.stats_sink(None).unwrap().unwrap();
        assert_eq!(plan.protocol, StatsProtocol::Dogstatsd);
        assert_eq!(plan.receiver.address, "[::1]:1");
        assert_eq!(read_sink(r#"tcp_cluster_name:"statsd""#, None), Ok(None));
        assert!(read_sink("prefix:a", None).is_err());
    }
}
