//! Stillwell's resource usage: CPU clocks of the process and its threads, in nanoseconds, and memory in bytes.

use std::path::Path;

use stillwell_metric::{Labels, Sample, catalogue as metric};
use stillwell_scope::{ThreadInfo, clock};

use crate::text;

/// Adds samples of this process and of `threads`, read under `proc`. Returns its CPU time so far.
pub(crate) fn sample(
    proc: &Path,
    threads: &[ThreadInfo],
    buffer: &mut Vec<u8>,
    samples: &mut Vec<Sample>,
) -> u64 {
    for thread in threads {
        let path = proc
            .join("self/task")
            .join(thread.id.to_string())
            .join("schedstat");
        let Some([cpu, delay]) = text::read(&path, buffer).and_then(parse_schedstat) else {
            // It has ended since it was listed.
            continue;
        };
        let labels = Labels::none().with("worker", thread.name.as_str());
        samples.push(Sample::int(metric::WORKER_CPU, &labels, cpu));
        samples.push(Sample::int(metric::WORKER_RUN_DELAY, &labels, delay));
    }
    let cpu = clock::process_cpu().as_u64();
    samples.push(Sample::int(metric::PROCESS_CPU, &Labels::none(), cpu));
    let status = text::read(&proc.join("self/status"), buffer);
    if let Some(kib) = status.and_then(|status| text::value(status, b"VmRSS:")) {
        let bytes = text::scaled(kib, 1024);
        samples.push(Sample::int(metric::PROCESS_RSS, &Labels::none(), bytes));
    }
    cpu
}

/// Parses nanoseconds on a CPU and nanoseconds of waiting for one.
pub(crate) fn parse_schedstat(text: &[u8]) -> Option<[u64; 2]> {
    let mut words = text::words(text);
    Some([text::number(words.next()?)?, text::number(words.next()?)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_reported() {
        let mut samples = Vec::new();
        sample(Path::new("/proc"), &[], &mut Vec::new(), &mut samples);
        let rss = samples
            .iter()
            .find(|sample| sample.name == metric::PROCESS_RSS.into());
        let Some(stillwell_metric::Value::Int(bytes)) = rss.map(|sample| sample.value.clone())
        else {
            panic!("{samples:?}");
        };
        assert!(bytes > 100 * 1024, "{bytes}");
        let mut without = Vec::new();
        sample(Path::new("/nowhere"), &[], &mut Vec::new(), &mut without);
        assert_eq!(without.len(), 1, "{without:?}");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(
            parse_schedstat(b"690898 769174 1\n"),
            Some([690_898, 769_174])
        );
        assert_eq!(parse_schedstat(b"690898"), None);
        assert_eq!(parse_schedstat(b""), None);
    }
}
