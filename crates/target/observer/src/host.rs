//! Activity of the host.

mod cpu;
mod disk;
mod network;
pub(crate) mod pressure;

use std::path::{Path, PathBuf};

use stillwell_metric::{Labels, Metric, Sample, Value, catalogue as metric};

use crate::text;

/// Reads the host, beat after beat.
#[derive(Debug)]
pub(crate) struct HostReader {
    proc: PathBuf,
    foreign: cpu::Foreign,
    /// The same on the target's CPUs.
    foreign_of_target: cpu::Foreign,
}

impl HostReader {
    /// Creates a reader of `proc`, which is `/proc` except in tests.
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            foreign: cpu::Foreign::default(),
            foreign_of_target: cpu::Foreign::default(),
        }
    }

    /// Adds samples of the host. `self_cpu` and `target_cpu` are CPU times so far, in nanoseconds; `target_cpus`
    /// are the CPUs that only the target may use.
    pub(crate) fn sample(
        &mut self,
        self_cpu: u64,
        (target_cpu, target_cpus): (u64, &[u16]),
        buffer: &mut Vec<u8>,
        samples: &mut Vec<Sample>,
    ) {
        let none = Labels::none();
        let mut add = |metric: Metric, value: Option<u64>| {
            samples.extend(value.map(|value| Sample::int(metric, &none, value)));
        };
        let mut read = |name: &str, parse: &dyn Fn(&[u8]) -> Option<[u64; 3]>| {
            text::read(&self.proc.join(name), buffer).and_then(parse)
        };
        if let Some([busy, steal, _]) = read("stat", &cpu::parse) {
            add(metric::HOST_CPU_BUSY, Some(busy));
            add(metric::HOST_CPU_STEAL, Some(steal));
            let foreign = self
                .foreign
                .total(busy, self_cpu.saturating_add(target_cpu));
            add(metric::HOST_CPU_FOREIGN, Some(foreign));
        }
        if !target_cpus.is_empty()
            && let Some([busy, ..]) = read("stat", &|text| cpu::busy_of(text, target_cpus))
        {
            let foreign = self.foreign_of_target.total(busy, target_cpu);
            add(metric::TARGET_CPUS_FOREIGN, Some(foreign));
        }
        let available = read("meminfo", &|text| {
            let kilobytes = text::value(text, b"MemAvailable:")?;
            Some([text::scaled(kilobytes, 1024), 0, 0])
        });
        add(
            metric::HOST_MEMORY_AVAILABLE,
            available.map(|[bytes, ..]| bytes),
        );
        for (name, metric) in [
            ("pressure/cpu", metric::HOST_PRESSURE_CPU),
            ("pressure/memory", metric::HOST_PRESSURE_MEMORY),
            ("pressure/io", metric::HOST_PRESSURE_IO),
        ] {
            let waited = read(name, &|text| Some([pressure::parse(text)?, 0, 0]));
            add(metric, waited.map(|[nanos, ..]| nanos));
        }
        // Of the namespace that the sampler's own thread is in.
        if let Some([received, sent, drops]) = read("thread-self/net/dev", &network::parse_devices)
        {
            let errors = read("thread-self/net/snmp", &|t| {
                Some([network::udp_errors(t)?, 0, 0])
            });
            let errors6 = read("thread-self/net/snmp6", &|t| {
                Some([network::udp6_errors(t)?, 0, 0])
            });
            let errors = errors.map_or(0, |[e, ..]| e) + errors6.map_or(0, |[e, ..]| e);
            add(metric::HOST_NET_RECEIVE_BYTES, Some(received));
            add(metric::HOST_NET_SEND_BYTES, Some(sent));
            add(metric::HOST_NET_DROPS, Some(drops.saturating_add(errors)));
        }
        // Listing the states of connections would take milliseconds.
        if let Some([open, opened, _]) = read("thread-self/net/snmp", &network::tcp_counts) {
            add(metric::HOST_TCP_ESTABLISHED, Some(open));
            add(metric::HOST_TCP_OPENED, Some(opened));
        }
        let waiting = read("thread-self/net/sockstat", &|text| {
            Some([network::tcp_time_wait(text)?, 0, 0])
        });
        add(metric::HOST_TCP_TIME_WAIT, waiting.map(|[count, ..]| count));
        if let Some([read_bytes, written, _]) = read("diskstats", &|text| disk::parse(text)) {
            add(metric::HOST_DISK_READ_BYTES, Some(read_bytes));
            add(metric::HOST_DISK_WRITE_BYTES, Some(written));
            let flushes = read("diskstats", &|text| Some([disk::flushes(text)?, 0, 0]));
            add(metric::HOST_DISK_FLUSHES, flushes.map(|[count, ..]| count));
        }
        let load = text::read(&self.proc.join("loadavg"), buffer).and_then(parse_load);
        samples.extend(load.map(|load| Sample::new(metric::HOST_LOAD, &none, Value::Float(load))));
    }
}

/// Parses the load average over one minute.
fn parse_load(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text::words(text).next()?)
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests;
