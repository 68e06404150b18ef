//! The profiles of one run, as amounts for each unit of its work.

use std::collections::BTreeMap;

use crate::pprof::Profile;
use crate::quantity::ProfileQuantity;

/// A profile of a run, with its page.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    /// Last part of the page's path and number of the page, such as `heap-0`.
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

/// Name of the page of `perf`.
const PERF: &str = "cpu-perf";
const HEAP: &str = "heap";
const ALLOCS: &str = "allocs";

/// Amounts by the names of the functions on a stack, the root first.
pub(crate) type NamedStacks<'a> = BTreeMap<Vec<&'a str>, f64>;

/// Returns the amounts of a run's profiles: for each event of flows, and the mean of levels.
///
/// A profile with a duration counts if its middle is in the measured time, and a level if its profile is. Of profiles that
/// count from the start of the program, the growth between those in the measured time is used: see [`growth`]. A single one
/// gives no rate. Each page is of another process: amounts of pages are added.
pub(crate) fn amounts<'a>(
    files: &'a [ProfileFile],
    work: &RunWork,
) -> BTreeMap<ProfileQuantity, NamedStacks<'a>> {
    let mut result = BTreeMap::new();
    for quantity in ProfileQuantity::ALL {
        let pages = pages(files, quantity, work);
        let pages = pages.values();
        let of_pages = pages.filter_map(|parts| of_page(parts, quantity, work));
        let Some(mut stacks) = of_pages.reduce(added) else {
            continue;
        };
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
    let pages = pages(files, ProfileQuantity::CpuTime, work);
    let parts = pages.values().flatten();
    let parts = parts.filter(|part| part.is_measured(work));
    let parts = parts.filter_map(|part| {
        let mut types = part.profile.types.iter();
        let index = types.position(|kind| kind.unit == "count")?;
        let samples = part.profile.samples.iter();
        let amounts = samples.filter_map(|sample| sample.amounts.get(index));
        Some(
            amounts
                .map(|amount| amount.unsigned_abs())
                .fold(0, u64::saturating_add),
        )
    });
    parts.fold(0, u64::saturating_add)
}

/// Returns the profiles of each page that counts `quantity`, without pages that count the same again: `allocs` has the
/// content of `heap`, and `perf` samples the whole target. A page without amounts in the measured time replaces none.
fn pages<'a>(
    files: &'a [ProfileFile],
    quantity: ProfileQuantity,
    work: &RunWork,
) -> BTreeMap<&'a str, Vec<Part<'a>>> {
    let mut pages: BTreeMap<&str, Vec<Part<'_>>> = BTreeMap::new();
    for file in files {
        if let Some(part) = Part::new(file, quantity) {
            pages.entry(&file.page).or_default().push(part);
        }
    }
    let has_amounts = |parts: &[Part<'_>]| {
        of_page(parts, quantity, work).is_some_and(|stacks| !stacks.is_empty())
    };
    let has = |name: &str| {
        let mut pages = pages.iter();
        pages.any(|(page, parts)| page_name(page) == name && has_amounts(parts))
    };
    let (has_perf, has_heap) = (has(PERF), has(HEAP));
    pages.retain(|page, _| match page_name(page) {
        PERF | HEAP => true,
        ALLOCS => !has_heap,
        _ => !has_perf,
    });
    pages
}

/// Returns the last part of the page's path: `heap` of `heap-0`.
fn page_name(page: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match page.rsplit_once('-') {
        Some((name, number)) if is_number(number) => name,
        _ => page,
    }
}

/// Returns amounts for each second, or of a level, of the profiles of one page.
fn of_page<'a>(
    parts: &[Part<'a>],
    quantity: ProfileQuantity,
    work: &RunWork,
) -> Option<NamedStacks<'a>> {
    match parts.iter().all(|part| part.profile.duration_ns == 0) {
        true => of_moments(parts, quantity, work),
        false => of_durations(parts, work),
    }
}

fn added<'a>(mut stacks: NamedStacks<'a>, more: NamedStacks<'a>) -> NamedStacks<'a> {
    for (stack, amount) in more {
        *stacks.entry(stack).or_default() += amount;
    }
    stacks
}

/// The amounts of one sample type of a profile.
struct Part<'a> {
    profile: &'a Profile,
    quantity: ProfileQuantity,
    index: usize,
    factor: f64,
}

impl<'a> Part<'a> {
    /// Returns `None` if the profile does not count `quantity`. The difference between two moments has no level.
    fn new(file: &'a ProfileFile, quantity: ProfileQuantity) -> Option<Self> {
        if !quantity.is_flow() && file.profile.duration_ns > 0 {
            return None;
        }
        let types = file.profile.types.iter().enumerate();
        let mut types = types.filter_map(|(index, kind)| {
            let (of_type, factor) =
                ProfileQuantity::of(page_name(&file.page), &kind.name, &kind.unit)?;
            (of_type == quantity).then_some((index, factor))
        });
        let (index, factor) = types.next()?;
        Some(Self {
            profile: &file.profile,
            quantity,
            index,
            factor,
        })
    }

    /// True if it covers a time whose middle was measured.
    fn is_measured(&self, work: &RunWork) -> bool {
        let (start, end) = work.measured_ns;
        let (time, duration) = (self.profile.time_ns, self.profile.duration_ns);
        let middle = match self.quantity {
            ProfileQuantity::CpuTime => time.saturating_add(duration / 2),
            // Go gives differences, as of `heap?seconds=5`, the time of their end.
            _ => time.saturating_sub(duration / 2),
        };
        duration > 0 && (start..end).contains(&middle)
    }

    /// True if its moment was measured.
    fn is_in_measured(&self, work: &RunWork) -> bool {
        let (start, end) = work.measured_ns;
        (start..=end).contains(&self.profile.time_ns)
    }

    /// Sum of its amounts, in the unit of the profile.
    fn total(&self) -> i128 {
        let samples = self.profile.samples.iter();
        let amounts = samples.filter_map(|sample| sample.amounts.get(self.index));
        amounts.map(|amount| i128::from(*amount)).sum()
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
fn of_moments<'a>(
    parts: &[Part<'a>],
    quantity: ProfileQuantity,
    work: &RunWork,
) -> Option<NamedStacks<'a>> {
    let measured = parts.iter().filter(|part| part.is_in_measured(work));
    let measured: Vec<&Part<'a>> = measured.collect();
    if quantity.is_cumulative() {
        return match measured.len() {
            0 | 1 => growth(&with_neighbours(parts, measured, work)),
            _ => growth(&measured),
        };
    }
    if quantity.is_flow() || measured.is_empty() {
        return None;
    }
    let mut stacks = NamedStacks::new();
    for part in &measured {
        part.add_to(&mut stacks, 1.0 / measured.len() as f64);
    }
    Some(stacks)
}

/// Returns the `measured` ones of `parts` with the last one before and the first one after the measured time: profiles
/// are so rare that the measured ones alone have no growth.
fn with_neighbours<'p, 'a>(
    parts: &'p [Part<'a>],
    measured: Vec<&'p Part<'a>>,
    work: &RunWork,
) -> Vec<&'p Part<'a>> {
    let (start, end) = work.measured_ns;
    let mut backwards = parts.iter().rev();
    let before = backwards.find(|part| part.profile.time_ns < start);
    let after = parts.iter().find(|part| part.profile.time_ns > end);
    before.into_iter().chain(measured).chain(after).collect()
}

/// Returns the growth for each second from profile to profile of amounts that count from the start of the program.
///
/// A total that falls is of a program that was started again. The time in which that happened is left out with its growth.
fn growth<'a>(parts: &[&Part<'a>]) -> Option<NamedStacks<'a>> {
    let (mut stacks, mut seconds) = (NamedStacks::new(), 0.0);
    for of_process in parts.chunk_by(|earlier, later| earlier.total() <= later.total()) {
        let [first, .., last] = of_process else {
            continue;
        };
        let span = last.profile.time_ns.saturating_sub(first.profile.time_ns);
        if span <= 0 {
            continue;
        }
        last.add_to(&mut stacks, 1.0);
        first.add_to(&mut stacks, -1.0);
        seconds += span as f64 / 1e9;
    }
    stacks.values_mut().for_each(|amount| *amount /= seconds);
    (seconds > 0.0).then_some(stacks)
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

    /// Allocations for each event, from numbers since the start of the program at moments.
    fn allocations(profiles: &[(i64, i64)]) -> Option<f64> {
        let kind = ("alloc_objects", "count");
        let files = profiles.iter();
        let files = files.map(|(amount, at)| file("heap", kind, *amount, (*at, 0)));
        let files: Vec<ProfileFile> = files.collect();
        amount(&files, ProfileQuantity::Allocations)
    }

    #[test]
    fn allocations_are_the_growth_between_the_first_measured_profile_and_the_last() {
        let measured = [(1000, 11), (1500, 13), (3000, 15)];
        assert_eq!(allocations(&measured), Some(5.0));
        assert_eq!(allocations(&measured[..1]), None);
        let (start, after) = ([(0, 2), (900, 9)], [(90_000, 21), (90_001, 30)]);
        let all = [&start[..], &measured, &after].concat();
        assert_eq!(allocations(&all), Some(5.0));
    }

    #[test]
    fn growth_needs_the_nearest_profiles_around_the_measured_time_if_fewer_than_two_are_in_it() {
        // 7,000 in the 14 seconds between the nearest ones.
        let around = [(0, 1), (1000, 8), (8000, 22), (90_000, 40)];
        assert_eq!(allocations(&around), Some(5.0));
        let with_middle = [(0, 1), (1000, 8), (2000, 15), (8000, 22), (90_000, 40)];
        assert_eq!(allocations(&with_middle), Some(5.0));
        assert_eq!(allocations(&[(1000, 8), (3500, 13)]), Some(5.0));
        assert_eq!(allocations(&around[..2]), None);
        assert_eq!(allocations(&around[2..]), None);
    }

    #[test]
    fn a_fall_of_the_total_gives_no_amount_and_its_time_does_not_count() {
        let restarted = [(1000, 11), (2000, 13), (100, 15), (1100, 17)];
        // 1,000 in two seconds, twice.
        assert_eq!(allocations(&restarted), Some(5.0));
        assert_eq!(allocations(&restarted[1..3]), None);
    }

    #[test]
    fn the_live_heap_is_a_mean_of_the_measured_time_and_not_divided() {
        let kind = ("inuse_space", "bytes");
        let files = [(900, 9), (100, 11), (300, 13), (900, 21)]
            .map(|(amount, at)| file("heap", kind, amount, (at, 0)));
        assert_eq!(amount(&files, ProfileQuantity::LiveHeap), Some(200.0));
        assert_eq!(amount(&files[..1], ProfileQuantity::LiveHeap), None);
    }

    #[test]
    fn the_difference_of_two_heaps_is_no_live_heap() {
        let kind = ("inuse_space", "bytes");
        let difference = file("heap", kind, 900, (12, 2));
        let files = [difference, file("allocs", kind, 100, (11, 0))];
        assert_eq!(amount(&files[..1], ProfileQuantity::LiveHeap), None);
        assert_eq!(amount(&files, ProfileQuantity::LiveHeap), Some(100.0));
    }

    #[test]
    fn a_difference_counts_if_the_middle_before_its_end_is_in_the_measured_time() {
        let objects = ("alloc_objects", "count");
        let delay = ("delay", "nanoseconds");
        for (page, kind, quantity) in [
            ("heap", objects, ProfileQuantity::Allocations),
            ("mutex", delay, ProfileQuantity::MutexTime),
        ] {
            let files = [
                file(page, kind, 90_000, (10, 6)),
                file(page, kind, 1000, (12, 2)),
                file(page, kind, 3000, (20, 2)),
            ];
            // 4,000 in 4 seconds, and 100 events in each.
            assert_eq!(amount(&files, quantity), Some(10.0));
        }
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
    fn pages_of_several_processes_are_added_and_never_mixed() {
        let objects = ("alloc_objects", "count");
        // The second process began with more, and its first profile is older.
        let files = [
            file("heap-0", objects, 1000, (12, 0)),
            file("heap-0", objects, 1400, (14, 0)),
            file("heap-1", objects, 9000, (11, 0)),
            file("heap-1", objects, 9800, (15, 0)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::Allocations), Some(4.0));
        let live = ("inuse_space", "bytes");
        let files = [
            file("heap-0", live, 100, (11, 0)),
            file("heap-0", live, 300, (13, 0)),
            file("heap-1", live, 50, (11, 0)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::LiveHeap), Some(250.0));
        let cpu = ("cpu", "nanoseconds");
        let files = [
            file("profile-0", cpu, 2 * SECOND, (11, 2)),
            file("profile-1", cpu, 4 * SECOND, (12, 4)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::CpuTime), Some(2e7));
        let delay = ("delay", "nanoseconds");
        let files = [
            file("mutex-2", delay, 0, (11, 0)),
            file("mutex-2", delay, 400, (13, 0)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::MutexTime), Some(2.0));
    }

    #[test]
    fn pages_that_count_the_same_count_once() {
        let kind = ("inuse_space", "bytes");
        let files = ["allocs-0", "heap-1"].map(|page| file(page, kind, 100, (11, 0)));
        assert_eq!(amount(&files, ProfileQuantity::LiveHeap), Some(100.0));
        assert_eq!(amount(&files[..1], ProfileQuantity::LiveHeap), Some(100.0));
        let cpu = |page, seconds| {
            let mut file = file(page, ("cpu", "nanoseconds"), seconds * SECOND, (11, 2));
            let samples = SampleType {
                name: "samples".to_owned(),
                unit: "count".to_owned(),
            };
            file.profile.types.push(samples);
            file.profile.samples[0].amounts.push(seconds);
            file
        };
        let files = [cpu("cpu-perf-0", 2), cpu("profile-0", 6)];
        assert_eq!(amount(&files, ProfileQuantity::CpuTime), Some(1e7));
        assert_eq!(cpu_samples(&files, &WORK), 2);
        assert_eq!(cpu_samples(&files[1..], &WORK), 6);
    }

    #[test]
    fn pages_without_amounts_replace_no_other() {
        let cpu = ("cpu", "nanoseconds");
        let mut empty = file("cpu-perf", cpu, 0, (11, 2));
        empty.profile.samples.clear();
        let early = file("cpu-perf", cpu, 9 * SECOND, (2, 2));
        for perf in [empty, early] {
            let files = [perf, file("profile", cpu, 2 * SECOND, (11, 2))];
            assert_eq!(amount(&files, ProfileQuantity::CpuTime), Some(1e7));
        }
        // One profile has no growth.
        let objects = ("alloc_objects", "count");
        let files = [
            file("heap", objects, 1000, (11, 0)),
            file("allocs", objects, 1000, (12, 0)),
            file("allocs", objects, 1400, (14, 0)),
        ];
        assert_eq!(amount(&files, ProfileQuantity::Allocations), Some(2.0));
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
