//! Options of `dogstatsd` under their earlier names.

use stillwell_text::{Entry, Node, Span, Value};

use super::Linter;
use super::edit::{Edit, remove_entry, value_end};
use crate::file::OldRange;

/// Ranges with separate keys for their ends.
const RANGES: [&str; 4] = [
    "contexts",
    "name_length",
    "tags_per_msg",
    "multivalue_count",
];
/// The two lengths that are now one.
const TAG_LENGTHS: [&str; 2] = ["tag_key_length", "tag_value_length"];

pub(super) fn lint(linter: &mut Linter<'_>, options: &Node) {
    let entries = options.entries().unwrap_or_default();
    for today in RANGES {
        range(linter, entries, today);
    }
    tag_length(linter, entries);
    if let Some(entry) = find(entries, "prefix_metric_names") {
        let edits = remove_entry(linter.source, entry).map(|edit| vec![edit]);
        let message = "`prefix_metric_names` was removed: names are random".to_owned();
        linter.report(
            entry.key.span,
            message,
            "list complete names in `metric_names`",
            edits,
        );
    }
}

fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.key.text == key)
}

fn range(linter: &mut Linter<'_>, entries: &[Entry], today: &str) {
    let [low, high, whole] =
        ["minimum", "maximum", "range"].map(|end| find(entries, &format!("{today}_{end}")));
    let Some(first) = whole.or(low).or(high) else {
        return;
    };
    let message = format!("`{}` was renamed to `{today}`", first.key.text);
    let has_today = find(entries, today).is_some();
    let edits = if has_today {
        // The current key wins, so the others have no effect.
        all(linter, [low, high, whole].into_iter().flatten())
    } else if let Some(whole) = whole {
        let ends = [low, high].into_iter().flatten();
        let renamed = Edit::new(whole.key.span, today);
        all(linter, ends).map(|edits| with(renamed, edits))
    } else {
        ends(linter, low, high, today)
    };
    linter.report(first.key.span, message, "an outdated name", edits);
}

/// The removal of each of them, if all can be removed.
fn all<'e>(linter: &Linter<'_>, entries: impl Iterator<Item = &'e Entry>) -> Option<Vec<Edit>> {
    entries
        .map(|entry| remove_entry(linter.source, entry))
        .collect()
}

fn with(edit: Edit, mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.push(edit);
    edits
}

/// One key in place of the two ends.
fn ends(
    linter: &Linter<'_>,
    low: Option<&Entry>,
    high: Option<&Entry>,
    today: &str,
) -> Option<Vec<Edit>> {
    let first = low.or(high)?;
    let [from, to] = given_or_usual(&OldRange::of(today), low, high)?;
    let text = inclusive(today, from, to);
    let second = high.filter(|_| low.is_some());
    let removed = all(linter, second.into_iter())?;
    Some(with(replace(linter, first, text)?, removed))
}

/// Returns the ends of a range, where its default is in place of one that is not given; `None` if one is invalid.
fn given_or_usual(range: &OldRange, low: Option<&Entry>, high: Option<&Entry>) -> Option<[u64; 2]> {
    let ends = [
        low.map_or_else(|| Some(range.usual.low.into()), number)?,
        high.map_or_else(|| Some(range.usual.high.into()), number)?,
    ];
    range.accepts(ends).then_some(ends)
}

fn inclusive(key: &str, low: u64, high: u64) -> String {
    format!("{key}: {{inclusive: {{min: {low}, max: {high}}}}}")
}

/// `text` in place of the whole of `entry`.
fn replace(linter: &Linter<'_>, entry: &Entry, text: String) -> Option<Edit> {
    let start = entry.key.span.start;
    let end = value_end(linter.source.text(), entry)?;
    Some(Edit::new(Span { start, end }, text))
}

fn number(entry: &Entry) -> Option<u64> {
    scalar(&entry.value)
}

fn scalar(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Scalar { text, .. } => text.replace('_', "").parse().ok(),
        _ => None,
    }
}

/// Key, colon and value now have one length.
fn tag_length(linter: &mut Linter<'_>, entries: &[Entry]) {
    let mut old: Vec<&Entry> = Vec::new();
    let mut sums = Some([1, 1]);
    for key in TAG_LENGTHS {
        let spellings = ["", "_range", "_minimum", "_maximum"];
        let [plain, whole, low, high] =
            spellings.map(|behind| find(entries, &format!("{key}{behind}")));
        old.extend([plain, whole, low, high].into_iter().flatten());
        let range = OldRange::of(key);
        let ends = match plain.or(whole) {
            Some(entry) => both_ends(&entry.value).filter(|ends| range.accepts(*ends)),
            None => given_or_usual(&range, low, high),
        };
        sums = sums
            .zip(ends)
            .map(|(sums, ends)| [sums[0] + ends[0], sums[1] + ends[1]]);
    }
    let Some(first) = old.iter().min_by_key(|entry| entry.key.span.start).copied() else {
        return;
    };
    let message = format!("`{}` was replaced by `tag_length`", first.key.text);
    let has_today = find(entries, "tag_length").is_some();
    let surplus = old
        .iter()
        .copied()
        .filter(|entry| has_today || !std::ptr::eq(*entry, first));
    let edits = all(linter, surplus).and_then(|removed| {
        if has_today {
            return Some(removed);
        }
        let [low, high] = sums?;
        Some(with(
            replace(linter, first, inclusive("tag_length", low, high))?,
            removed,
        ))
    });
    linter.report(first.key.span, message, "key and value together", edits);
}

/// The ends of `{constant: 5}` or `{inclusive: {min: 1, max: 9}}`.
fn both_ends(node: &Node) -> Option<[u64; 2]> {
    if let Some(only) = node.entry("constant").or(Some(node)).and_then(scalar) {
        return Some([only, only]);
    }
    let ends = node.entry("inclusive")?;
    Some([scalar(ends.entry("min")?)?, scalar(ends.entry("max")?)?])
}
