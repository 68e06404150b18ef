//! Variables in the form of Go's package `expvar`: one JSON object.

use serde_json::Value;
use stillwell_metric::{Kind, Labels};

use crate::prometheus::{Page, PageSeries};

/// Largest depth of nested objects if no names are given.
const DEPTH_MAX: usize = 8;

/// Reads the variables to which the pointers `names` lead (RFC 6901), or all of them,
/// but not more than `series_max`. Numbers and truth values count; a series is called
/// after its pointer, without the first slash. A name without a number is malformed.
pub(crate) fn parse_expvar(page: &[u8], names: Option<&[String]>, series_max: usize) -> Page {
    let mut read = Page::default();
    let Ok(root) = serde_json::from_slice::<Value>(page) else {
        read.malformed = 1;
        return read;
    };
    match names {
        Some(names) => {
            for name in names {
                match root.pointer(name).and_then(number) {
                    Some(value) => add(&mut read, name, value, series_max),
                    None => read.malformed += 1,
                }
            }
        }
        None => add_all(&mut read, &root, "", series_max, 0),
    }
    read
}

/// Adds all numbers below `value`. Lists are skipped: an index is not a name.
fn add_all(read: &mut Page, value: &Value, pointer: &str, series_max: usize, depth: usize) {
    if let Value::Object(entries) = value
        && depth < DEPTH_MAX
    {
        for (key, value) in entries {
            let key = key.replace('~', "~0").replace('/', "~1");
            add_all(
                read,
                value,
                &format!("{pointer}/{key}"),
                series_max,
                depth + 1,
            );
        }
    } else if let Some(number) = number(value) {
        add(read, pointer, number, series_max);
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        value => value.as_f64(),
    }
}

fn add(read: &mut Page, pointer: &str, value: f64, series_max: usize) {
    if read.series.len() >= series_max {
        read.surplus += 1;
        return;
    }
    read.series.push(PageSeries {
        name: pointer.trim_start_matches('/').to_owned(),
        labels: Labels::none(),
        // The format does not mark counters.
        kind: Kind::Gauge,
        value,
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &[u8] =
        br#"{"cmdline": ["agent"], "memstats": {"Alloc": 12, "a/b": 1.5, "On": true,
        "BySize": [{"Size": 8}]}, "version": "7"}"#;

    fn series_of(names: Option<&[&str]>) -> (Vec<(String, f64)>, u64) {
        let names: Option<Vec<String>> =
            names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let page = parse_expvar(PAGE, names.as_deref(), 100);
        let series = page
            .series
            .into_iter()
            .map(|series| (series.name, series.value));
        (series.collect(), page.malformed)
    }

    #[test]
    fn variables_are_read_by_their_pointers() {
        let (series, malformed) = series_of(Some(&[
            "/memstats/Alloc",
            "/memstats/a~1b",
            "/version",
            "/x",
        ]));
        let expected = [("memstats/Alloc", 12.0), ("memstats/a~1b", 1.5)];
        assert_eq!(
            series,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
        assert_eq!(malformed, 2);
    }

    #[test]
    fn without_names_all_numbers_are_read() {
        let (series, malformed) = series_of(None);
        let names: Vec<&str> = series.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["memstats/Alloc", "memstats/On", "memstats/a~1b"]);
        assert_eq!(malformed, 0);
        assert_eq!(parse_expvar(PAGE, None, 2).surplus, 1);
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let page = parse_expvar(&bytes, None, 4);
            prop_assert!(page.series.len() <= 4);
        }
    }
}
