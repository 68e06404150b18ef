//! The lines of a YAML file that carry a key: as much of YAML as the files have.

/// A key and its value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KeyLine {
    /// Its line, from 0.
    pub(crate) line: usize,
    /// The column of the key, from 0; that of the key behind a dash, too.
    pub(crate) column: usize,
    /// The key.
    pub(crate) key: String,
    /// Text after the colon in its line, without a comment.
    pub(crate) value: String,
    /// The key above it, as an index into all of them.
    pub(crate) parent: Option<usize>,
    /// The line behind the last one that belongs to it.
    pub(crate) end: usize,
}

/// All lines of `text` that carry a key, in order.
pub(crate) fn keys(text: &str) -> Vec<KeyLine> {
    let lines: Vec<&str> = text.lines().collect();
    let mut lines_with_key: Vec<KeyLine> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((column, key, value)) = key_of(line) else {
            continue;
        };
        let parent = lines_with_key
            .iter()
            .rposition(|above| above.column < column);
        lines_with_key.push(KeyLine {
            line: index,
            column,
            key,
            value,
            parent,
            end: end_of(&lines, index, column),
        });
    }
    lines_with_key
}

/// Column, key and value of a line such as `  - key: value`.
fn key_of(line: &str) -> Option<(usize, String, String)> {
    let trimmed = line.trim_start();
    let rest = trimmed.strip_prefix("- ").unwrap_or(trimmed).trim_start();
    let (key, value) = rest.split_once(':')?;
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if key.is_empty() || !key.bytes().all(is_key) || !(value.is_empty() || value.starts_with(' ')) {
        return None;
    }
    let value = match value.find(" #") {
        Some(comment) if !value[..comment].contains(['"', '\'']) => &value[..comment],
        _ => value,
    };
    Some((
        line.len() - rest.len(),
        key.to_owned(),
        value.trim().to_owned(),
    ))
}

/// The line behind the last one that is indented more than `column`.
fn end_of(lines: &[&str], index: usize, column: usize) -> usize {
    let below = |line: &&str| {
        let indent = line.len() - line.trim_start().len();
        line.trim().is_empty() || indent > column
    };
    let mut end = index + 1;
    while lines.get(end).is_some_and(below) {
        end += 1;
    }
    // Empty lines behind it belong to no key.
    while end > index + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::keys;

    #[test]
    fn keys_have_their_place_and_what_is_below_them() {
        let text = "generator:\n  - http:\n      seed:\n        [\n          2\n        ]\n\n      \
                    uri: \"a:1\" # why\n# none: 1\nerratic: true\n";
        let shown: Vec<_> = keys(text)
            .into_iter()
            .map(|key| {
                (
                    key.line, key.column, key.key, key.value, key.parent, key.end,
                )
            })
            .collect();
        let row = |line, column, key: &str, value: &str, parent, end| {
            (line, column, key.to_owned(), value.to_owned(), parent, end)
        };
        assert_eq!(
            shown,
            [
                row(0, 0, "generator", "", None, 8),
                row(1, 4, "http", "", Some(0), 8),
                row(2, 6, "seed", "", Some(1), 6),
                row(7, 6, "uri", "\"a:1\" # why", Some(1), 8),
                row(9, 0, "erratic", "true", None, 10),
            ]
        );
    }
}
