//! Maps that became lists, and maps that moved one level down.

use std::sync::Arc;

use stillwell_text::{Entry, Source};

use super::edit::{Edit, flow_end, line_start, next_line};

/// Indentation of one level.
const STEP: &str = "  ";

/// Makes of the map that `entry` is the list of it alone.
pub(super) fn list_of_map(
    source: &Arc<Source>,
    entry: &Entry,
    inner: &[Entry],
) -> Option<Vec<Edit>> {
    let text = source.text();
    if let Some((start, end)) = flow(text, entry) {
        return Some(vec![Edit::insert(start, "["), Edit::insert(end, "]")]);
    }
    let lines = block_lines(text, entry, inner)?;
    let mut lines = lines.into_iter();
    let first = lines.next()?;
    let key = inner.first()?.key.span.start;
    let mut edits = vec![Edit::insert(key.max(first), "- ")];
    edits.extend(lines.map(|line| Edit::insert(line, STEP)));
    Some(edits)
}

/// Puts `key` between `entry` and its map.
pub(super) fn nest(
    source: &Arc<Source>,
    entry: &Entry,
    inner: &[Entry],
    key: &str,
) -> Option<Vec<Edit>> {
    let text = source.text();
    if let Some((start, end)) = flow(text, entry) {
        let open = Edit::insert(start, format!("{{{key}: "));
        return Some(vec![open, Edit::insert(end, "}")]);
    }
    let lines = block_lines(text, entry, inner)?;
    let mut lines = lines.into_iter();
    let first = lines.next()?;
    let indent = &text[first..inner.first()?.key.span.start];
    let mut edits = vec![Edit::insert(first, format!("{indent}{key}:\n{STEP}"))];
    edits.extend(lines.map(|line| Edit::insert(line, STEP)));
    Some(edits)
}

/// Returns start and end of the value of `entry`, if it is in brackets.
fn flow(text: &str, entry: &Entry) -> Option<(usize, usize)> {
    let behind = &text[entry.key.span.end..];
    let value = behind[behind.find(':')? + 1..].trim_start();
    let start = text.len() - value.len();
    let end = value.starts_with('{').then(|| flow_end(text, start))?;
    Some((start, end?))
}

/// Returns the start of each line of the map `inner`, without empty lines and comments with less indentation.
fn block_lines(text: &str, entry: &Entry, inner: &[Entry]) -> Option<Vec<usize>> {
    let key = inner.first()?.key.span.start;
    let first = line_start(text, key);
    let is_below = entry.key.span.end <= first;
    if !is_below || !text[first..key].chars().all(|c| c == ' ') {
        return None;
    }
    let depth = key - first;
    let mut lines = vec![first];
    let mut at = next_line(text, first);
    while at < text.len() {
        let next = next_line(text, at);
        let line = &text[at..next];
        let indent = line.len() - line.trim_start_matches(' ').len();
        let is_blank = line.trim().is_empty();
        let is_comment = line.trim_start().starts_with('#');
        if !is_blank && indent >= depth {
            lines.push(at);
        } else if !is_blank && !is_comment {
            break;
        }
        at = next;
    }
    Some(lines)
}
