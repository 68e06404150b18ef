//! Series of the kernel's own figures, under the names that lading gives them. Their
//! names follow from what the kernel calls them, and all of them are gauges.

use crate::catalogue::Kind;
use crate::sample::{Labels, Sample, SeriesName, Value};

/// Memory that the target touched since the last sample, summed over its processes, in bytes.
#[must_use]
pub fn working_set(bytes: u64) -> Sample {
    let labels = Labels::none().with("focus", "target");
    gauge("total_wss_bytes".to_owned(), labels, Value::Int(bytes))
}

/// A size of `/proc/PID/status`, such as `VmPeak`, in bytes.
#[must_use]
pub fn status(field: &str, labels: &Labels, bytes: u64) -> Sample {
    let name = format!("status.{}_bytes", field.to_ascii_lowercase());
    gauge(name, labels.clone(), Value::Int(bytes))
}

/// CPU time of one process since the last time, in thousandths of a core (total, user,
/// system), of which `granted` are its group's or the machine's: as it is, and in
/// hundredths of what is granted.
#[must_use]
pub fn cpu(labels: &Labels, used: [f64; 3], granted: f64) -> Vec<Sample> {
    let shares = cpu_shares(used, granted).into_iter();
    let modes =
        cpu_modes(used).map(|(mode, value)| (format!("{mode}_cpu_usage_millicores"), value));
    shares
        .chain(modes)
        .chain([("cpu_limit_millicores".to_owned(), granted)])
        .map(|(name, value)| gauge(format!("stat.{name}"), labels.clone(), Value::Float(value)))
        .collect()
}

/// The same of the whole target.
#[must_use]
pub fn total_cpu(used: [f64; 3], granted: f64) -> Vec<Sample> {
    let labels = Labels::none().with("focus", "target");
    let shares = cpu_shares(used, granted).into_iter();
    let modes =
        cpu_modes(used).map(|(mode, value)| (format!("{mode}_cpu_usage_millicores"), value));
    shares
        .chain(modes)
        .chain([("cpu_limit_millicores".to_owned(), granted)])
        .map(|(name, value)| gauge(name, labels.clone(), Value::Float(value)))
        .collect()
}

/// Time in the kernel has two names in lading.
const fn cpu_modes([total, user, system]: [f64; 3]) -> [(&'static str, f64); 4] {
    [
        ("total", total),
        ("user", user),
        ("kernel", system),
        ("system", system),
    ]
}

/// The total has two names as well.
fn cpu_shares(used: [f64; 3], granted: f64) -> Vec<(String, f64)> {
    let share = |value: f64| {
        if granted > 0.0 {
            value * 100.0 / granted
        } else {
            0.0
        }
    };
    let [total, ..] = used;
    let modes =
        cpu_modes(used).map(|(mode, value)| (format!("{mode}_cpu_percentage"), share(value)));
    modes
        .into_iter()
        .chain([("cpu_percentage".to_owned(), share(total))])
        .collect()
}

/// A size of `/proc/PID/smaps_rollup`, in bytes.
#[must_use]
pub fn smaps_rollup(field: &str, labels: &Labels, bytes: u64) -> Sample {
    let name = format!("smaps_rollup.{}", field.to_ascii_lowercase());
    gauge(name, labels.clone(), Value::Int(bytes))
}

/// A size of `/proc/PID/smaps`, summed over what is mapped from `pathname`, in bytes.
#[must_use]
pub fn smaps(field: &str, labels: &Labels, pathname: &str, bytes: u64) -> Sample {
    let name = format!("smaps.{}.by_pathname", snake(field));
    gauge(
        name,
        labels.clone().with("pathname", pathname),
        Value::Int(bytes),
    )
}

/// 1 if `/proc/PID/smaps` is longer than the limit of reading: then none of it is
/// reported.
#[must_use]
pub fn smaps_too_long(labels: &Labels) -> Sample {
    gauge("smaps.too_long".to_owned(), labels.clone(), Value::Int(1))
}

/// A number of a file of a control group, version 2.
#[must_use]
pub fn cgroup(file: &str, keys: &[&str], labels: &Labels, value: f64) -> Sample {
    let mut name = format!("cgroup.v2.{file}");
    for key in keys {
        name.push('.');
        name.push_str(key);
    }
    gauge(name, labels.clone(), Value::Float(value))
}

/// A number of `/proc/vmstat`.
#[must_use]
pub fn vmstat(key: &str, value: u64) -> Sample {
    gauge(format!("vmstat.{key}"), Labels::none(), Value::Int(value))
}

fn gauge(name: String, labels: Labels, value: Value) -> Sample {
    Sample {
        name: SeriesName::recorded(name),
        kind: Kind::Gauge,
        labels,
        value,
    }
}

/// `LazyFree` as `lazy_free`, `Shared_Clean` as `shared_clean`.
fn snake(field: &str) -> String {
    let mut text = String::with_capacity(field.len() + 4);
    for letter in field.chars() {
        let is_first = text.is_empty() || text.ends_with('_');
        if letter.is_ascii_uppercase() && !is_first {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel_files() {
        let none = Labels::none();
        let names = [
            status("VmPeak", &none, 1),
            smaps_rollup("Shared_Clean", &none, 1),
            smaps("LazyFree", &none, "/lib/x.so", 1),
            smaps("Private_Dirty", &none, "[heap]", 1),
            cgroup("cpu.pressure", &["some", "avg10"], &none, 0.5),
            cgroup("memory.current", &[], &none, 1.0),
            vmstat("pgfault", 1),
            working_set(1),
        ];
        let names: Vec<&str> = names.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "status.vmpeak_bytes",
                "smaps_rollup.shared_clean",
                "smaps.lazy_free.by_pathname",
                "smaps.private_dirty.by_pathname",
                "cgroup.v2.cpu.pressure.some.avg10",
                "cgroup.v2.memory.current",
                "vmstat.pgfault",
                "total_wss_bytes",
            ]
        );
        let names = |samples: Vec<Sample>| -> Vec<String> {
            samples
                .iter()
                .map(|sample| sample.name.as_str().to_owned())
                .collect()
        };
        assert_eq!(
            names(cpu(&none, [250.0, 200.0, 50.0], 1000.0)),
            [
                "stat.total_cpu_percentage",
                "stat.user_cpu_percentage",
                "stat.kernel_cpu_percentage",
                "stat.system_cpu_percentage",
                "stat.cpu_percentage",
                "stat.total_cpu_usage_millicores",
                "stat.user_cpu_usage_millicores",
                "stat.kernel_cpu_usage_millicores",
                "stat.system_cpu_usage_millicores",
                "stat.cpu_limit_millicores",
            ]
        );
        assert_eq!(
            names(total_cpu([250.0, 200.0, 50.0], 1000.0)),
            [
                "total_cpu_percentage",
                "user_cpu_percentage",
                "kernel_cpu_percentage",
                "system_cpu_percentage",
                "cpu_percentage",
                "total_cpu_usage_millicores",
                "user_cpu_usage_millicores",
                "kernel_cpu_usage_millicores",
                "system_cpu_usage_millicores",
                "cpu_limit_millicores",
            ]
        );
    }
}
