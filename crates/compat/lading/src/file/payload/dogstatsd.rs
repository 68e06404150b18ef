//! Options of `dogstatsd` as earlier versions of lading spelt them.

use stillwell_config::shared::read_range;
use stillwell_plan::payload::{Between, DOGSTATSD_CONTEXTS_MAX, DogstatsdPlan};
use stillwell_text::{MapReader, Reader, code};

/// Ranges as they were spelt before: today's name, the two ends, and the name of
/// the range.
const OLD_RANGES: [[&str; 4]; 6] = [
    [
        "contexts",
        "contexts_minimum",
        "contexts_maximum",
        "contexts_range",
    ],
    [
        "name_length",
        "name_length_minimum",
        "name_length_maximum",
        "name_length_range",
    ],
    [
        "tags_per_msg",
        "tags_per_msg_minimum",
        "tags_per_msg_maximum",
        "tags_per_msg_range",
    ],
    [
        "multivalue_count",
        "multivalue_count_minimum",
        "multivalue_count_maximum",
        "multivalue_count_range",
    ],
    [
        "tag_key_length",
        "tag_key_length_minimum",
        "tag_key_length_maximum",
        "tag_key_length_range",
    ],
    [
        "tag_value_length",
        "tag_value_length_minimum",
        "tag_value_length_maximum",
        "tag_value_length_range",
    ],
];

/// The keys of earlier versions.
pub(super) fn keys() -> Vec<&'static str> {
    let ranges = OLD_RANGES.iter().flat_map(|names| &names[1..]).copied();
    let renamed = ["tag_key_length", "tag_value_length", "prefix_metric_names"];
    ranges.chain(renamed).collect()
}

/// Default lengths of a tag's key, and of its value, in versions of lading that had both.
const TAG_PART_LENGTH: Between<u16> = Between::new(1, 100);

/// Maximum length of each of the two: a tag has 4096 characters at most.
const TAG_PART_MAX: u32 = 2047;

/// Limits and defaults of a range that earlier versions of lading spelt in another way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldRange {
    least: u32,
    most: u32,
    /// Defaults of its ends; each is in place of an end that a file does not have.
    pub(crate) usual: Between<u32>,
}

impl OldRange {
    /// Returns those of the range that is called `today` now, or of a part of `tag_length`.
    pub(crate) fn of(today: &str) -> Self {
        let plan = DogstatsdPlan::default();
        let (least, most, usual) = match today {
            "contexts" => (1, DOGSTATSD_CONTEXTS_MAX, plan.contexts),
            "name_length" => (1, 4096, widened(plan.name_length)),
            "tags_per_msg" => (0, u8::MAX.into(), widened(plan.tags_per_message)),
            "multivalue_count" => (1, u16::MAX.into(), widened(plan.multivalue_count)),
            _ => (1, TAG_PART_MAX, widened(TAG_PART_LENGTH)),
        };
        Self { least, most, usual }
    }

    /// Returns true if these ends are within the limits, and in order.
    pub(crate) fn accepts(&self, [low, high]: [u64; 2]) -> bool {
        u64::from(self.least) <= low && low <= high && high <= u64::from(self.most)
    }
}

fn widened<T: Copy + Into<u32>>(range: Between<T>) -> Between<u32> {
    Between::new(range.low.into(), range.high.into())
}

/// Reads the keys of earlier versions into `plan`; false where something is wrong.
pub(super) fn read(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let (mut key, mut value) = (TAG_PART_LENGTH, TAG_PART_LENGTH);
    let mut has_tag_parts = false;
    let mut is_fine = true;
    for names in OLD_RANGES {
        let Some(range) = old_range(reader, map, names) else {
            continue;
        };
        has_tag_parts |= is_tag_part(names[0]);
        is_fine &= match names[0] {
            "contexts" => set(&mut plan.contexts, range),
            "name_length" => set(&mut plan.name_length, range),
            "tags_per_msg" => set(&mut plan.tags_per_message, range),
            "multivalue_count" => set(&mut plan.multivalue_count, range),
            "tag_key_length" => set(&mut key, range),
            _ => set(&mut value, range),
        };
    }
    if has_tag_parts {
        // Key, colon and value now have one length.
        let sum = |key: u16, value: u16| key.saturating_add(value).saturating_add(1);
        plan.tag_length = Between::new(sum(key.low, value.low), sum(key.high, value.high));
    }
    if let Some(node) = map.take("prefix_metric_names") {
        let message = "`prefix_metric_names` has no effect: names are random";
        let note = reader.warning(code::NO_EFFECT, node.span, message);
        reader.report(note.help("list complete names in `metric_names`"));
    }
    is_fine
}

/// Returns true for the two lengths that are now `tag_length`.
fn is_tag_part(today: &str) -> bool {
    today.starts_with("tag_")
}

/// Sets `place` to `range`; false without one.
fn set<T: Copy + TryFrom<u32>>(place: &mut Between<T>, range: Option<Between<u32>>) -> bool {
    let narrowed = range.and_then(|range| {
        let (low, high) = (T::try_from(range.low), T::try_from(range.high));
        Some(Between::new(low.ok()?, high.ok()?))
    });
    let Some(narrowed) = narrowed else {
        return false;
    };
    *place = narrowed;
    true
}

/// Reads the range under one of its old names; the inner `None` if it is invalid. Beside the current name, the old ones
/// have no effect.
fn old_range(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    [today, minimum, maximum, whole]: [&'static str; 4],
) -> Option<Option<Between<u32>>> {
    let known = OldRange::of(today);
    let within = |node| reader.whole(node, known.least, known.most);
    let is_separate = is_tag_part(today);
    let plain = if is_separate { map.take(today) } else { None };
    let whole = map.take(whole);
    let (low, high) = (map.take(minimum), map.take(maximum));
    let complete = plain.or(whole);
    let node = complete.or(low).or(high)?;
    let current = if is_separate { "tag_length" } else { today };
    if map.key_span(current).is_some() {
        let message = format!("no effect beside `{current}`, the current name in lading");
        reader.report(reader.note(code::NO_EFFECT, node.span, message));
        return None;
    }
    if !is_separate {
        let message = format!("read as `{today}`, the current name in lading");
        reader.report(reader.note(code::MEANING, node.span, message));
    }
    if let Some(node) = complete {
        return Some(read_range(reader, node, known.least, known.most));
    }
    let from = low.map_or(Some(known.usual.low), within);
    let to = high.map_or(Some(known.usual.high), within);
    let (Some(from), Some(to)) = (from, to) else {
        return Some(None);
    };
    if from > to {
        let message = format!("`{minimum}` {from} is above `{maximum}` {to}");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        let usual = known.usual;
        reader.report(error.help(format!(
            "without these keys, `{minimum}` is {} and `{maximum}` {}",
            usual.low, usual.high
        )));
        return Some(None);
    }
    Some(Some(Between::new(from, to)))
}
