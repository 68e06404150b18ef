//! The text of `perf script --ns --show-lost-events -F comm,time,ip,sym`.
//!
//! ```text
//! worker 18403.499575350:
//!         ffffffff815b8466 do_anonymous_page
//!                   1af670 allocate
//!
//! worker 18403.499991124: PERF_RECORD_LOST lost 3
//! ```
//!
//! A line without indentation begins a sample: the name of its thread and the time in seconds. Each indented line
//! is a frame, the leaf first.
//! An empty line ends the sample. A line with `PERF_RECORD_LOST` is about samples for which the buffer had no room.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use stillwell_units::{Moment, count, float_from_u64};

use crate::pprof::{Profile, SampleType, StackSample};

/// Name of a frame without a symbol.
const UNKNOWN: &str = "[unknown]";

/// Mark of a frame whose function is inlined in its caller. Elsewhere the same function has none.
const INLINED: &str = " (inlined)";

/// Maximum number of frames of one stack; frames near the root beyond it are left out.
const DEPTH_MAX: usize = 256;

/// Text that is not from `perf script -F comm,time,ip,sym`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PerfTextError {
    /// A frame before the first sample.
    #[error("line {line} is a stack frame without a sample above it")]
    FrameWithoutSample {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A sample without a time.
    #[error("line {line} begins a sample, but it has no time")]
    NoTime {
        /// Number of the line, from 1.
        line: usize,
    },
}

/// A profile, and how complete it is.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfProfile {
    /// The profile.
    pub profile: Profile,
    /// Number of samples in it.
    pub taken: u64,
    /// Number of samples of the same time that `perf` lost.
    pub lost: u64,
}

impl PerfProfile {
    /// Returns the lost share of all samples, from 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        let all = self.taken.saturating_add(self.lost).max(1);
        float_from_u64(self.lost) / float_from_u64(all)
    }
}

/// Reads `text`, whose samples were taken `frequency` times in each second of CPU time. Samples outside `measured` are
/// left out; the profile covers that time.
///
/// The thread's name is the root of each stack. Samples with the same stack are summed.
///
/// # Errors
/// [`PerfTextError`].
pub fn read_perf_script(
    text: &str,
    frequency: NonZeroU32,
    (start, end): (Moment, Moment),
) -> Result<PerfProfile, PerfTextError> {
    let mut lost: u64 = 0;
    let mut functions = FunctionNames::default();
    let mut counts: BTreeMap<Vec<u32>, i64> = BTreeMap::new();
    let mut sample: Option<(u32, Vec<u32>)> = None;
    let mut is_measured = true;
    let mut finish = |sample: Option<(u32, Vec<u32>)>| {
        if let Some((thread, mut frames)) = sample {
            frames.truncate(DEPTH_MAX);
            frames.push(thread);
            frames.reverse();
            *counts.entry(frames).or_default() += 1;
        }
    };
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            finish(sample.take());
        } else if text.starts_with([' ', '\t']) {
            let Some((_, frames)) = &mut sample else {
                if !is_measured {
                    continue;
                }
                return Err(PerfTextError::FrameWithoutSample { line });
            };
            let name = text.trim().split_once(' ');
            let name = name.map_or(UNKNOWN, |(_, name)| name.trim());
            let name = name.strip_suffix(INLINED).unwrap_or(name);
            let number = functions.number_of(name);
            // Addresses without symbols say nothing; one frame is enough for a row of them.
            if name != UNKNOWN || frames.last() != Some(&number) {
                frames.push(number);
            }
        } else if let Some((number, moment)) = loss(text) {
            let is_measured = (start..end).contains(&moment);
            lost = lost.saturating_add(if is_measured { number } else { 0 });
        } else {
            finish(sample.take());
            let (thread, moment) = head(text).ok_or(PerfTextError::NoTime { line })?;
            is_measured = (start..end).contains(&moment);
            sample = is_measured.then(|| (functions.number_of(thread), Vec::new()));
        }
    }
    finish(sample);
    let taken = counts.values().copied().sum::<i64>();
    let nanos = i64::from(1_000_000_000 / frequency.get());
    let samples = counts.into_iter().map(|(stack, count)| StackSample {
        stack,
        amounts: vec![count, count.saturating_mul(nanos)],
    });
    let kind = |name: &str, unit: &str| SampleType {
        name: name.to_owned(),
        unit: unit.to_owned(),
    };
    let profile = Profile {
        types: vec![kind("samples", "count"), kind("cpu", "nanoseconds")],
        samples: samples.collect(),
        functions: functions.names,
        duration_ns: i64::try_from(end.since(start).as_u64()).unwrap_or(0),
        ..Profile::default()
    };
    Ok(PerfProfile {
        profile,
        taken: u64::try_from(taken).unwrap_or(0),
        lost,
    })
}

/// Returns the number of lost samples in a line about them, and its moment.
fn loss(line: &str) -> Option<(u64, Moment)> {
    let (begin, number) = line.split_once(": PERF_RECORD_LOST lost ")?;
    let (_, moment) = head(&format!("{begin}:"))?;
    Some((number.trim().parse().ok()?, moment))
}

/// Returns the name of the thread and the moment of a sample's first line.
fn head(line: &str) -> Option<(&str, Moment)> {
    let (thread, time) = line.trim().rsplit_once(' ')?;
    let (seconds, nanos) = time.strip_suffix(':')?.split_once('.')?;
    if nanos.len() != 9 {
        return None;
    }
    let (seconds, nanos) = (seconds.parse::<u64>().ok()?, nanos.parse::<u64>().ok()?);
    let moment = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    Some((thread.trim(), Moment::new(moment)))
}

/// Names of functions with their numbers.
#[derive(Default)]
struct FunctionNames {
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl FunctionNames {
    fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = count(self.names.len());
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HUNDRED: NonZeroU32 = NonZeroU32::new(100).unwrap();

    const TEXT: &str = "\
my server 1.500000000: 
\tffffffff815b8466 do_anonymous_page
\t          1af670 <alloc::vec::Vec<T> as Drop>::drop
\t    7f1d85db8000 [unknown]
\t    7f1d85db8001 [unknown]

my server 1.600000000: 
\tffffffff815b8467 do_anonymous_page
\t          1af671 <alloc::vec::Vec<T> as Drop>::drop
\t    7f1d85db8002 [unknown]

idle 2.000000000: 

early 0.999999999: 
\tffffffff815b8467 do_anonymous_page
";

    const MEASURED: (Moment, Moment) = (Moment::new(1_000_000_000), Moment::new(3_000_000_000));

    #[test]
    fn samples_with_one_stack_are_summed_and_the_thread_is_the_root() {
        let profile = read_perf_script(TEXT, HUNDRED, MEASURED).unwrap().profile;
        let name = |index: &u32| profile.functions[*index as usize].as_str();
        let stacks = profile.samples.iter().map(|sample| {
            let names: Vec<_> = sample.stack.iter().map(name).collect();
            (names.join(";"), sample.amounts.clone())
        });
        let expected = [
            (
                "my server;[unknown];<alloc::vec::Vec<T> as Drop>::drop;do_anonymous_page",
                vec![2, 20_000_000],
            ),
            ("idle", vec![1, 10_000_000]),
        ];
        assert_eq!(
            stacks.collect::<Vec<_>>(),
            expected.map(|(stack, amounts)| (stack.to_owned(), amounts))
        );
    }

    #[test]
    fn a_function_is_the_same_where_it_is_inlined() {
        let text = "server 1.500000000: \n\t1af670 parse\n\n\
                    server 1.600000000: \n\t1af670 parse (inlined)\n";
        let profile = read_perf_script(text, HUNDRED, MEASURED).unwrap().profile;
        assert_eq!(profile.functions, ["server", "parse"]);
        assert_eq!(profile.samples.len(), 1);
        assert_eq!(profile.samples[0].stack, [0, 1]);
    }

    #[test]
    fn lost_samples_of_the_measured_time_are_counted() {
        let lost = "\
early 0.999999999: PERF_RECORD_LOST lost 50
my server 1.550000000: PERF_RECORD_LOST lost 2

idle 2.100000000: PERF_RECORD_LOST lost 3
";
        let text = TEXT.replace("my server 1.6", &format!("{lost}my server 1.6"));
        let read = read_perf_script(&text, HUNDRED, MEASURED).unwrap();
        assert_eq!((read.taken, read.lost), (3, 5));
        assert!((read.lost_share() - 5.0 / 8.0).abs() < 1e-9);
        let whole = read_perf_script(TEXT, HUNDRED, MEASURED).unwrap();
        assert_eq!(whole.profile, read.profile);
    }

    #[test]
    fn a_frame_before_all_samples_is_an_error_with_its_line() {
        let error = read_perf_script("\n\t1af670 drop\n", HUNDRED, MEASURED).unwrap_err();
        assert_eq!(error, PerfTextError::FrameWithoutSample { line: 2 });
        let error = read_perf_script("server 1.5:\n", HUNDRED, MEASURED).unwrap_err();
        assert_eq!(error, PerfTextError::NoTime { line: 1 });
    }

    proptest! {
        #[test]
        fn any_text_is_a_profile_or_an_error(text in "[ \ta-z0-9.:\n\\[\\]]{0,200}") {
            drop(read_perf_script(&text, HUNDRED, MEASURED));
        }
    }
}
