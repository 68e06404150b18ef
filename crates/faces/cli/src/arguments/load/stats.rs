//! What a load tells others while it goes on.

use clap::Args;
use stillwell_config::requests::{PageListen, StatsLabel, StatsSink, above_zero};
use stillwell_units::Nanos;

/// Who is told counts and times while it goes on.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Stats while it goes on")]
pub(crate) struct LoadStatsArguments {
    /// Tell counts and times to a receiver, such as statsd://HOST:PORT; repeatable
    #[arg(long, value_name = "URI")]
    pub(crate) stats_sink: Vec<StatsSink>,
    /// How often stats sinks are told; in the end they are in any case
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    pub(crate) stats_flush_interval: Option<Nanos>,
    /// Offer a page of them to be scraped, at /metrics; on loopback unless a host
    /// is given
    #[arg(long, value_name = "[HOST:]PORT")]
    pub(crate) stats_listen: Option<PageListen>,
    /// Keep that page for up to TIME after the end, until somebody has seen it
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        requires = "stats_listen"
    )]
    pub(crate) stats_linger: Nanos,
    /// A label that all series carry; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) stats_label: Vec<StatsLabel>,
}
