//! The profiles of one run, as amounts for each unit of its work.

use std::collections::BTreeMap;

use crate::pprof::Profile;
use crate::quantity::ProfileQuantity;

/// A profile of a run, with the name of its page.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    /// Last part of the page's path, such as `heap`.
    pub page: String,
    /// Its content.
    pub profile: Profile,
}

/// The work of a run, by which amounts are divided.
#[derive(Clone, Copy, Debug)]
pub struct RunWork {
    /// Events or requests for each second of the measured time.
    pub events_per_second: f64,
    /// Wall clock at the start and the end of the measured time, in nanoseconds since 1970.
    pub measured_ns: (i64, i64),
}

/// Amounts by the names of the functions on a stack, the root first.
pub(crate) type NamedStacks<'a> = BTreeMap<Vec<&'a str>, f64>;

/// Returns the amounts of a run's profiles: for each event of flows, and the mean of levels.
///
/// A profile with a duration counts if its middle is in the measured time. Of profiles that count from the start of
/// the program, the difference between the first and the last of a page is used. A single one gives no rate.
pub(crate) fn amounts<'a>(
    files: &'a [ProfileFile],
    work: &RunWork,
) -> BTreeMap<ProfileQuantity, NamedStacks<'a>> {
    let mut result = BTreeMap::new();
    for quantity in ProfileQuantity::ALL {
        let parts = files.iter().filter_map(|file| Part::new(file, quantity));
        let parts: Vec<_> = parts.collect();
        let stacks = if parts.iter().all(|part| part.profile.duration_ns == 0) {
            of_moments(&parts, quantity)
        } else {
            of_durations(&parts, work)
        };
        let Some(mut stacks) = stacks else { continue };
        if quantity.is_flow() {
            // From amounts for each second to amounts for each event.
            stacks
                .values_mut()
                .for_each(|amount| *amount /= work.events_per_second);
        }
        if stacks.values().all(|amount| amount.is_finite()) {
            result.insert(quantity, stacks);
        }
    }
    result
}

/// Returns the number of samples of the CPU in the measured time.
pub(crate) fn cpu_samples(files: &[ProfileFile], work: &RunWork) -> u64 {
    let parts = files.iter().filter_map(|file| {
        Part::new(file, ProfileQuantity::CpuTime).filter(|part| part.is_measured(work))?;
        let types = file.profile.types.iter();
        let index = types.clone().position(|kind| kind.unit == "count")?;
        let samples = file.profile.samples.iter();
        let amounts = samples.filter_map(|sample| sample.amounts.get(index));
        Some(
            amounts
                .map(|amount| amount.unsigned_abs())
                .fold(0, u64::saturating_add),
        )
    });
    parts.fold(0, u64::saturating_add)
}

/// The amounts of one sample type of a profile.
struct Part<'a> {
    profile: &'a Profile,
    index: usize,
    factor: f64,
}

impl<'a> Part<'a> {
    fn new(file: &'a ProfileFile, quantity: ProfileQuantity) -> Option<Self> {
        let types = file.profile.types.iter().enumerate();
        let mut types = types.filter_map(|(index, kind)| {
            let (of_type, factor) = ProfileQuantity::of(&file.page, &kind.name, &kind.unit)?;
            (of_type == quantity).then_some((index, factor))
        });
        let (index, factor) = types.next()?;
        Some(Self {
            profile: &file.profile,
            index,
            factor,
        })
    }

    /// True if it covers a time whose middle was measured.
    fn is_measured(&self, work: &RunWork) -> bool {
        let (start, end) = work.measured_ns;
        let middle = self
            .profile
            .time_ns
            .saturating_add(self.profile.duration_ns / 2);
        self.profile.duration_ns > 0 && (start..end).contains(&middle)
    }

    /// Adds its amounts, times `weight`.
    fn add_to(&self, stacks: &mut NamedStacks<'a>, weight: f64) {
        for sample in &self.profile.samples {
            let Some(amount) = sample.amounts.get(self.index) else {
                continue;
            };
            let names = sample.stack.iter();
            let names = names.filter_map(|index| self.profile.functions.get(*index as usize));
            let names = names.map(String::as_str).collect();
            *stacks.entry(names).or_default() += *amount as f64 * self.factor * weight;
        }
    }
}

/// Returns amounts for each second of profiles that cover a time.
fn of_durations<'a>(parts: &[Part<'a>], work: &RunWork) -> Option<NamedStacks<'a>> {
    let parts = parts.iter().filter(|part| part.is_measured(work));
    let (mut stacks, mut seconds) = (NamedStacks::new(), 0.0);
    for part in parts {
        part.add_to(&mut stacks, 1.0);
        seconds += part.profile.duration_ns as f64 / 1e9;
    }
    stacks.values_mut().for_each(|amount| *amount /= seconds);
    (seconds > 0.0).then_some(stacks)
}

/// Returns amounts of profiles of moments: growth for each second of what accumulates, or the mean of a level.
fn of_moments<'a>(parts: &[Part<'a>], quantity: ProfileQuantity) -> Option<NamedStacks<'a>> {
    let mut stacks = NamedStacks::new();
    if quantity.is_cumulative() {
        let (first, last) = (parts.first()?, parts.last()?);
        let seconds = last.profile.time_ns.saturating_sub(first.profile.time_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return None;
        }
        last.add_to(&mut stacks, 1.0 / seconds);
        first.add_to(&mut stacks, -1.0 / seconds);
        return Some(stacks);
    }
    if quantity.is_flow() || parts.is_empty() {
        return None;
    }
    for part in parts {
        part.add_to(&mut stacks, 1.0 / parts.len() as f64);
    }
    Some(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{SampleType, StackSample};

    const SECOND: i64 = 1_000_000_000;

    const WORK: RunWork = RunWork {
        events_per_second: 100.0,
        measured_ns: (10 * SECOND, 20 * SECOND),
    };

    /// A profile of `page` with one stack.
    fn file(
        page: &str,
        kind: (&str, &str),
        amount: i64,
        (at, duration): (i64, i64),
    ) -> ProfileFile {
        let profile = Profile {
            types: vec![SampleType {
                name: kind.0.to_owned(),
                unit: kind.1.to_owned(),
            }],
            functions: vec!["main".to_owned()],
            samples: vec![StackSample {
                stack: vec![0],
                amounts: vec![amount],
            }],
            time_ns: at * SECOND,
            duration_ns: duration * SECOND,
        };
        ProfileFile {
            page: page.to_owned(),
            profile,
        }
    }

    fn amount(files: &[ProfileFile], quantity: ProfileQuantity) -> Option<f64> {
        let amounts = amounts(files, &WORK);
        amounts.get(&quantity).map(|stacks| stacks[&vec!["main"]])
    }

    #[test]
    fn cpu_time_for_each_event_is_that_of_the_measured_time() {
        let cpu = ("cpu", "nanoseconds");
        let files = [
            // Before the measured time, and half of it before.
            file("profile", cpu, 99 * SECOND, (2, 4)),
            file("profile", cpu, 99 * SECOND, (8, 2)),
            file("profile", cpu, 2 * SECOND, (11, 2)),
            file("profile", cpu, 4 * SECOND, (16, 2)),
        ];
        // 6 seconds of CPU time in 4 seconds, and 100 events in each.
        assert_eq!(amount(&files, ProfileQuantity::CpuTime), Some(1.5e7));
        assert_eq!(amount(&files[..2], ProfileQuantity::CpuTime), None);
    }

    #[test]
    fn allocations_are_the_growth_between_the_first_profile_and_the_last() {
        let kind = ("alloc_objects", "count");
        let files = [(1000, 11), (1500, 13), (3000, 15)]
            .map(|(amount, at)| file("heap", kind, amount, (at, 0)));
        assert_eq!(amount(&files, ProfileQuantity::Allocations), Some(5.0));
        assert_eq!(amount(&files[..1], ProfileQuantity::Allocations), None);
    }

    #[test]
    fn the_live_heap_is_a_mean_and_not_divided() {
        let kind = ("inuse_space", "bytes");
        let files = [(100, 11), (300, 13)].map(|(amount, at)| file("heap", kind, amount, (at, 0)));
        assert_eq!(amount(&files, ProfileQuantity::LiveHeap), Some(200.0));
    }

    #[test]
    fn mutexes_and_blocking_differ_by_their_page() {
        let kind = ("delay", "nanoseconds");
        let files = [
            file("mutex", kind, 0, (11, 0)),
            file("mutex", kind, 400, (13, 0)),
            file("block", kind, 0, (11, 0)),
            file("block", kind, 600, (13, 0)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::MutexTime), Some(2.0));
        assert_eq!(amount(&files, ProfileQuantity::BlockTime), Some(3.0));
    }

    #[test]
    fn without_events_there_is_no_amount_for_each() {
        let files = [file("profile", ("cpu", "nanoseconds"), 1, (11, 2))];
        let idle = RunWork {
            events_per_second: 0.0,
            ..WORK
        };
        assert!(amounts(&files, &idle).is_empty());
    }
}
