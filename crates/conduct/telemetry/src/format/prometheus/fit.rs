//! Names and labels as Prometheus' text format permits them.

use std::collections::BTreeMap;

/// Prefix of a label from another source that we set too, as in Prometheus.
const FOREIGN: &str = "exported_";

/// `name` with every character that a metric name may not have replaced by `_`.
pub(super) fn metric_name(name: &str) -> String {
    fit(name, |c| c.is_ascii_alphanumeric() || c == ':')
}

/// `key` with every character that a label name may not have replaced by `_`. Names that begin with
/// two are reserved for Prometheus, so they get a prefix.
fn label_name(key: &str) -> String {
    let name = fit(key, |c| c.is_ascii_alphanumeric());
    if name.starts_with("__") {
        return format!("key{name}");
    }
    name
}

fn fit(name: &str, is_permitted: impl Fn(char) -> bool) -> String {
    let replace = |c: char| if is_permitted(c) { c } else { '_' };
    let text: String = name.chars().map(replace).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{text}");
    }
    text
}

/// Labels from other sources, beside ours called `reserved`: each name once, in order. Values of
/// labels with the same name are joined by `;`.
pub(super) fn foreign_labels<'l>(
    labels: impl IntoIterator<Item = (&'l str, &'l str)>,
    reserved: &[&str],
) -> Vec<(String, String)> {
    let mut fitted = BTreeMap::<String, String>::new();
    for (key, value) in labels {
        let mut name = label_name(key);
        while reserved.contains(&name.as_str()) {
            name.insert_str(0, FOREIGN);
        }
        fitted
            .entry(name)
            .and_modify(|all| *all = format!("{all};{value}"))
            .or_insert_with(|| value.to_owned());
    }
    fitted.into_iter().collect()
}

/// Labels whose names fit, in braces; nothing where there are none.
pub(super) fn braced<'l>(labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        text.push('"');
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_begin_with_a_letter_and_labels_are_not_prometheus_own() {
        assert_eq!(metric_name("9to5"), "_9to5");
        assert_eq!(metric_name("cgroup.v2.memory/now"), "cgroup_v2_memory_now");
        assert_eq!(metric_name("job:rate"), "job:rate");
        assert_eq!(label_name("job:rate"), "job_rate");
        assert_eq!(label_name("__name__"), "key__name__");
        assert_eq!(label_name("é"), "_");
        assert_eq!(label_name(""), "_");
    }

    #[test]
    fn labels_that_become_one_are_joined_and_ours_stay() {
        let labels = [("a.b", "1"), ("a-b", "2"), ("le", "x"), ("z", "\"")];
        let fitted = foreign_labels(labels, &["le"]);
        let pairs = fitted.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        assert_eq!(
            braced(pairs),
            r#"{a_b="1;2",exported_le="x",z="\""}"#,
            "{fitted:?}"
        );
        assert_eq!(braced([]), "");
    }

    proptest! {
        #[test]
        fn for_all_labels_a_line_is_one_and_reads_back(
            labels in prop::collection::vec(("[a-b._\"=\\n-]{0,3}", "[a\"\\\\\\n,}=]{0,4}"), 0..5),
        ) {
            let given = labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let fitted = foreign_labels(given, &["a"]);
            let text = braced(fitted.iter().map(|(k, v)| (k.as_str(), v.as_str())));
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(read(&text), fitted);
        }
    }

    /// Reads labels by the format's rules.
    fn read(text: &str) -> Vec<(String, String)> {
        let mut labels = Vec::new();
        let mut rest = text.strip_prefix('{').unwrap_or_default();
        while let Some((name, value)) = rest.split_once("=\"") {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit()));
            let (mut read, mut chars) = (String::new(), value.chars());
            loop {
                match chars.next().unwrap() {
                    '"' => break,
                    '\\' => read.push(match chars.next().unwrap() {
                        'n' => '\n',
                        c => c,
                    }),
                    c => read.push(c),
                }
            }
            labels.push((name.to_owned(), read));
            rest = chars.as_str();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        assert!(rest.is_empty() || rest == "}", "{text}");
        labels
    }
}
