//! Arguments of exported metrics.

use clap::Args;
use stillwell_config::requests::{PageListen, StatsLabel, StatsSink, above_zero};
use stillwell_units::Nanos;

/// Exporters of metrics during a load or during runs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Exported metrics")]
pub(crate) struct LoadStatsArguments {
    /// Export metrics to this receiver, such as statsd://HOST:PORT; repeatable
    #[arg(long, value_name = "URI")]
    pub(crate) stats_sink: Vec<StatsSink>,
    /// Interval of exports; a last export follows at the end [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    pub(crate) stats_flush_interval: Option<Nanos>,
    /// Serve metrics for Prometheus at /metrics; without IP, on 127.0.0.1
    #[arg(long, value_name = "[IP:]PORT")]
    pub(crate) stats_listen: Option<PageListen>,
    /// Keep serving for up to TIME after the end, until the last scrape
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        requires = "stats_listen"
    )]
    pub(crate) stats_linger: Nanos,
    /// Label of all series; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) stats_label: Vec<StatsLabel>,
}

impl LoadStatsArguments {
    /// Returns true if metrics are exported.
    pub(crate) fn has_exporters(&self) -> bool {
        !self.stats_sink.is_empty() || self.stats_listen.is_some()
    }
}
