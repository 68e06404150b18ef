//! Parts of the result of a bench, be it of a program or within one process.

use hdrhistogram::Histogram;
use serde::Serialize;
use stillwell_units::{Nanos, float_from_u64};

/// Ticks in each half of the distance that is left.
const TICKS_PER_HALF: u32 = 2;

/// Events and bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Volume {
    /// Events.
    pub events: u64,
    /// Payload bytes, as they were counted.
    pub bytes: u64,
}

/// An amount that arrived in a time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BenchWindow {
    /// Length of the time.
    pub length: Nanos,
    /// Amount that arrived.
    pub volume: Volume,
}

/// A row of a table of quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantileTick {
    /// Value of the row.
    pub value: u64,
    /// Share of samples up to the value, from 0 to 1.
    pub quantile: f64,
    /// Nominal quantile of the row, from 0 to 1.
    pub quantile_to: f64,
    /// Number of samples up to the value.
    pub count: u64,
}

impl Volume {
    /// Counts one more event.
    pub const fn add(&mut self, bytes: u64) {
        self.events += 1;
        self.bytes += bytes;
    }

    /// Adds `volume`.
    pub const fn join(&mut self, volume: Self) {
        self.events += volume.events;
        self.bytes += volume.bytes;
    }
}

impl BenchWindow {
    /// Events a second; 0 where nothing was measured.
    #[must_use]
    pub fn events_per_second(&self) -> f64 {
        self.per_second(self.volume.events)
    }

    /// Bytes a second; 0 where nothing was measured.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.volume.bytes)
    }

    fn per_second(&self, count: u64) -> f64 {
        let seconds = self.length.as_secs_f64();
        if seconds > 0.0 {
            float_from_u64(count) / seconds
        } else {
            0.0
        }
    }

    /// Returns the throughput in two lines, after two empty ones.
    #[must_use]
    pub fn throughput_lines(&self) -> String {
        let bytes = self.bytes_per_second();
        let data = if bytes < 1024.0 * 1024.0 {
            format!("{:.1} KiB/s", bytes / 1024.0)
        } else {
            format!("{:.1} MiB/s", bytes / 1024.0 / 1024.0)
        };
        let events = self.events_per_second();
        let events = if events < 1000.0 {
            format!("{events:.1} events/s")
        } else {
            format!("{:.1}k events/s", events / 1000.0)
        };
        format!("\n\nThroughput   (data): {data}\nThroughput (events): {events}\n")
    }
}

/// Returns the rows of the quantiles of `histogram`.
#[must_use]
pub fn quantile_ticks(histogram: &Histogram<u64>) -> Vec<QuantileTick> {
    let mut count = 0;
    let ticks = histogram.iter_quantiles(TICKS_PER_HALF).map(|tick| {
        count += tick.count_since_last_iteration();
        QuantileTick {
            value: tick.value_iterated_to(),
            quantile: tick.quantile(),
            quantile_to: tick.quantile_iterated_to(),
            count,
        }
    });
    ticks.collect()
}

/// Returns the quantiles and moments of `histogram` in the format of `HdrHistogram`'s plotters.
#[must_use]
pub fn hdr_table(histogram: &Histogram<u64>) -> String {
    let mut text = format!(
        "{:>10} {:>7} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for tick in quantile_ticks(histogram) {
        let (value, quantile, count) = (tick.value, tick.quantile_to, tick.count);
        let inverse = if quantile < 1.0 {
            format!("{:14.2}", 1.0 / (1.0 - quantile))
        } else {
            format!("{:>14}", "inf")
        };
        text.push_str(&format!("{value:12} {quantile:1.5} {count:10} {inverse}\n"));
    }
    let (mean, deviation) = ("Mean", "StdDeviation");
    text.push_str(&format!(
        "#[{mean:10} = {:12.2}, {deviation:14} = {:12.2}]\n",
        histogram.mean(),
        histogram.stdev()
    ));
    let (max, total) = ("Max", "Total count");
    text.push_str(&format!(
        "#[{max:10} = {:12}, {total:14} = {:12}]\n",
        histogram.max(),
        histogram.len()
    ));
    let (buckets, sub_buckets) = ("Buckets", "SubBuckets");
    text.push_str(&format!(
        "#[{buckets:10} = {:12}, {sub_buckets:14} = {:12}]\n",
        histogram.buckets(),
        histogram.distinct_values()
    ));
    text
}
