//! The Prometheus text format, 0.0.4 and OpenMetrics.
//!
//! Each line is parsed on its own; malformed lines are counted and skipped. Series of histograms and summaries
//! are plain series here (`_bucket`, `_sum`, `_count`, with their labels). Timestamps and exemplars are
//! ignored.

use std::collections::HashMap;

use stillwell_metric::{Kind, Labels};

/// Content of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In the page's order.
    pub series: Vec<PageSeries>,
    /// Lines that were not understood.
    pub malformed: u64,
    /// Series beyond the limit.
    pub surplus: u64,
}

/// One series of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSeries {
    /// As the page names it, or with `.` in place of `__`.
    pub name: String,
    /// As the page labels it.
    pub labels: Labels,
    /// Kind from the page's `TYPE`; a gauge by default.
    pub kind: Kind,
    /// May be infinite or no number.
    pub value: f64,
}

/// Reads the series called `names`, or all of them, but not more than `series_max`. The name of a metric includes
/// its series with the suffix of a part.
#[must_use]
pub fn parse_page(page: &[u8], names: Option<&[String]>, series_max: usize) -> Page {
    parse_renamed(page, names, series_max, |name| name)
}

/// Reads a page as [`parse_page`] does, with `__` in the names of its series replaced by `.`, as lading does. So
/// `names` have dots too.
pub(crate) fn parse_dotted(page: &[u8], names: Option<&[String]>, series_max: usize) -> Page {
    parse_renamed(page, names, series_max, |name| name.replace("__", "."))
}

fn parse_renamed(
    page: &[u8],
    names: Option<&[String]>,
    series_max: usize,
    rename: impl Fn(String) -> String,
) -> Page {
    let is_wanted =
        |name: &str| names.is_none_or(|names| names.iter().any(|n| n == name || n == family(name)));
    let mut read = Page::default();
    let mut types: HashMap<&str, &str> = HashMap::new();
    for line in page.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            read.malformed += 1;
            continue;
        };
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            if words.next() == Some("TYPE")
                && let (Some(name), Some(kind)) = (words.next(), words.next())
            {
                types.insert(name.trim_matches('"'), kind);
            }
        } else if !line.is_empty() {
            let series = parse_series(line).map(|(name, labels, value)| {
                // The page declares the type under its own name.
                let kind = kind_of(&name, &types);
                (rename(name), labels, kind, value)
            });
            match series {
                None => read.malformed += 1,
                // Others do not use up the limit.
                Some((name, ..)) if !is_wanted(&name) => {}
                Some(_) if read.series.len() >= series_max => read.surplus += 1,
                Some((name, labels, kind, value)) => {
                    read.series.push(PageSeries {
                        name,
                        labels,
                        kind,
                        value,
                    });
                }
            }
        }
    }
    read
}

/// Returns the metric's name without the suffix of a part.
fn family(name: &str) -> &str {
    const SUFFIXES: [&str; 4] = ["_bucket", "_count", "_sum", "_total"];
    let mut families = SUFFIXES
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    families.next().unwrap_or(name)
}

fn kind_of(name: &str, types: &HashMap<&str, &str>) -> Kind {
    if let Some(kind) = types.get(name) {
        return match *kind {
            "counter" => Kind::Counter,
            _ => Kind::Gauge,
        };
    }
    match types.get(family(name)) {
        Some(&"counter" | &"histogram" | &"summary") => Kind::Counter,
        _ => Kind::Gauge,
    }
}

/// `name{label="value",…} value [timestamp] [# exemplar]`.
fn parse_series(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let mut name = name.to_owned();
    let mut labels = Labels::none();
    let mut rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = parse_labels(inside, &mut name, &mut labels)?;
    }
    let value = rest.split_whitespace().next()?;
    let starts_badly = name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || starts_badly {
        return None;
    }
    Some((name, labels, parse_value(value)?))
}

/// Parses labels and returns the text behind the closing bracket. A quoted word without a value is the name.
fn parse_labels<'a>(text: &'a str, name: &mut String, labels: &mut Labels) -> Option<&'a str> {
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (key, after) = match rest.strip_prefix('"') {
            Some(quoted) => parse_quoted(quoted)?,
            None => {
                let end = rest.find(|c: char| !is_name(c))?;
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if key.is_empty() {
            return None;
        }
        let after = after.trim_start();
        rest = match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = parse_quoted(value.trim_start().strip_prefix('"')?)?;
                *labels = std::mem::take(labels).with(&key, value);
                after
            }
            None if rest.starts_with('"') && name.is_empty() => {
                *name = key;
                after
            }
            None => return None,
        };
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// The text up to the closing quote, and what follows that.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                character => value.extend(['\\', character]),
            },
            letter => value.push(letter),
        }
    }
    None
}

fn parse_value(text: &str) -> Option<f64> {
    // The standard library parses `NaN`, `+Inf` and similar in any case.
    text.parse().ok()
}

const fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
}

#[cfg(test)]
mod tests;
