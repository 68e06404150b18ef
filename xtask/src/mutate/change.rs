//! The mistakes that can be made in a file.

use super::scan::{KeyLine, keys};

/// The kind of a mistake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MistakeKind {
    Misspelt,
    WrongUnit,
    Missing,
    WrongType,
}

impl MistakeKind {
    pub(crate) const ALL: [Self; 4] = [
        Self::Misspelt,
        Self::WrongUnit,
        Self::Missing,
        Self::WrongType,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Misspelt => "misspelt key",
            Self::WrongUnit => "wrong unit",
            Self::Missing => "missing field",
            Self::WrongType => "wrong type",
        }
    }
}

/// A file with one mistake.
#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    pub(crate) kind: MistakeKind,
    /// The mistake, as a line of text.
    pub(crate) what: String,
    /// The whole file with it.
    pub(crate) text: String,
    /// The line where it must be reported, from 1.
    pub(crate) line: usize,
    /// The line of the map around it, where something may be missing now.
    pub(crate) around: Option<usize>,
}

/// Maps whose keys mean nothing to us.
const FREE: [&str; 5] = ["headers", "environment", "tags", "bind", "in"];

/// Keys that lading or SMP cannot do without.
const REQUIRED: [&str; 16] = [
    "seed",
    "addr",
    "target_uri",
    "method",
    "post",
    "variant",
    "maximum_prebuild_cache_size_bytes",
    "binding_addr",
    "uri",
    "format",
    "token",
    "load_profile",
    "mount_point",
    "name",
    "template_path",
    "generator",
];

const UNITS: [&str; 5] = ["Qb", "MiX", "bytes per day", "%", "MMiB"];

/// Every mistake of `kind` that can be made in `text`.
pub(crate) fn of_kind(kind: MistakeKind, text: &str) -> Vec<Mutation> {
    let file = MutatedFile {
        keys: keys(text),
        text,
        kind,
        // Its keys are names that its author chose, save a few.
        is_template: text.contains("!object"),
    };
    let mut mutations = Vec::new();
    for index in 0..file.keys.len() {
        match kind {
            MistakeKind::Misspelt => file.misspell(index, &mut mutations),
            MistakeKind::WrongUnit => file.unit(index, &mut mutations),
            MistakeKind::Missing => file.remove(index, &mut mutations),
            MistakeKind::WrongType => file.retype(index, &mut mutations),
        }
    }
    mutations
}

struct MutatedFile<'t> {
    keys: Vec<KeyLine>,
    text: &'t str,
    kind: MistakeKind,
    is_template: bool,
}

impl MutatedFile<'_> {
    fn is_free(&self, index: usize) -> bool {
        let mut above = self.keys[index].parent;
        while let Some(index) = above {
            let entry = &self.keys[index];
            if FREE.contains(&entry.key.as_str()) {
                return true;
            }
            above = entry.parent;
        }
        false
    }

    fn misspell(&self, index: usize, mutations: &mut Vec<Mutation>) {
        let entry = &self.keys[index];
        if !self.is_free(index) && entry.key.len() > 2 {
            for (way, wrong) in misspellings(&entry.key).into_iter().enumerate() {
                // One way for each key: which one differs from key to key.
                if (way + index).is_multiple_of(3) {
                    mutations.push(self.with_key(index, &wrong));
                }
            }
        }
        // Tags of a template are behind exclamation marks.
        if let (true, Some(tag)) = (self.is_template, entry.value.strip_prefix('!')) {
            let tag = tag.split(' ').next().unwrap_or(tag);
            let wrong = entry.value.replacen(tag, &format!("{tag}e"), 1);
            mutations.push(self.with_value(index, &wrong));
        }
    }

    fn unit(&self, index: usize, mutations: &mut Vec<Mutation>) {
        let entry = &self.keys[index];
        let bare = entry.value.trim_matches('"');
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = bare.trim_end_matches(|c: char| !is_number(c));
        let is_size =
            !number.is_empty() && number.chars().all(is_number) && number.len() < bare.len();
        if is_size && !self.is_free(index) {
            for unit in UNITS {
                mutations.push(self.with_value(index, &format!("\"{number} {unit}\"")));
            }
        }
    }

    fn remove(&self, index: usize, mutations: &mut Vec<Mutation>) {
        let entry = &self.keys[index];
        let has_dash = self.line(entry.line).trim_start().starts_with('-');
        let is_nested = entry.parent.is_some() || self.is_template;
        if !REQUIRED.contains(&entry.key.as_str()) || has_dash || !is_nested || self.is_free(index)
        {
            return;
        }
        let lines = self.text.lines().enumerate();
        let kept = lines.filter(|(line, _)| !(entry.line..entry.end).contains(line));
        let above = entry.parent.map_or(0, |parent| self.keys[parent].line);
        mutations.push(Mutation {
            kind: self.kind,
            what: format!("without `{}`", entry.key),
            text: kept.map(|(_, line)| format!("{line}\n")).collect(),
            line: above + 1,
            around: None,
        });
    }

    fn retype(&self, index: usize, mutations: &mut Vec<Mutation>) {
        let entry = &self.keys[index];
        if self.is_free(index) || self.is_template {
            return;
        }
        let is_number = entry.value.starts_with(|c: char| c.is_ascii_digit());
        let wrong_values: &[&str] = match entry.value.as_str() {
            "" | "{}" => &["7", "\"word\""],
            "true" | "false" => &["perhaps", "[true]"],
            _ if is_number => &["many", "[1, 2]", "{one: 1}"],
            _ => &["[1, 2]", "{one: 1}"],
        };
        // What a program takes for its environment or telemetry may be empty.
        for wrong in wrong_values {
            mutations.push(self.with_value(index, wrong));
        }
    }

    fn line(&self, line: usize) -> &str {
        self.text.lines().nth(line).unwrap_or_default()
    }

    fn with_key(&self, index: usize, wrong: &str) -> Mutation {
        let entry = &self.keys[index];
        let line = self.line(entry.line);
        let (before, after) = line.split_at(entry.column);
        let changed = format!("{before}{wrong}{}", &after[entry.key.len()..]);
        self.with_lines(index, entry.line + 1, &changed)
    }

    /// The value and all that is below its key become `wrong`.
    fn with_value(&self, index: usize, wrong: &str) -> Mutation {
        let entry = &self.keys[index];
        let line = self.line(entry.line);
        let key = &line[..entry.column + entry.key.len()];
        let is_tag = wrong.starts_with('!');
        let end = if is_tag { entry.line + 1 } else { entry.end };
        self.with_lines(index, end, &format!("{key}: {wrong}"))
    }

    fn with_lines(&self, index: usize, end: usize, changed: &str) -> Mutation {
        let entry = &self.keys[index];
        let mut text = String::new();
        for (at, line) in self.text.lines().enumerate() {
            if at == entry.line {
                text.push_str(changed);
            } else if (entry.line..end).contains(&at) {
                continue;
            } else {
                text.push_str(line);
            }
            text.push('\n');
        }
        Mutation {
            kind: self.kind,
            what: format!("line {}: `{}`", entry.line + 1, changed.trim()),
            text,
            line: entry.line + 1,
            around: Some(entry.parent.map_or(0, |parent| self.keys[parent].line) + 1),
        }
    }
}

/// `key` with two letters exchanged, one left out, one twice; each is another word.
fn misspellings(key: &str) -> [String; 3] {
    let letters: Vec<char> = key.chars().collect();
    let middle = letters.len() / 2;
    let mut exchanged = letters.clone();
    // Two equal letters can be exchanged without a mistake.
    let at = (0..middle.max(1))
        .rev()
        .chain(middle..letters.len() - 1)
        .find(|at| letters[*at] != letters[at + 1])
        .unwrap_or(0);
    exchanged.swap(at, at + 1);
    let mut without = letters.clone();
    without.remove(middle);
    let mut twice = letters.clone();
    twice.insert(middle, letters[middle]);
    [exchanged, without, twice].map(|letters| letters.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{MistakeKind, misspellings, of_kind};

    const FILE: &str = "generator:\n  - tcp:\n      seed:\n        [1]\n      addr: \"a:1\"\n      \
                        rate: \"5 MiB\"\nblackhole:\n";

    #[test]
    fn a_misspelt_key_is_another_word() {
        for key in ["seed", "tcp", "addr", "post", "maximum_block_size", "aab"] {
            for wrong in misspellings(key) {
                assert_ne!(wrong, key);
            }
        }
    }

    #[test]
    fn each_mistake_changes_the_line_that_it_names() {
        for kind in MistakeKind::ALL {
            let all = of_kind(kind, FILE);
            assert!(!all.is_empty(), "{kind:?}");
            for mutation in all {
                assert_ne!(mutation.text, FILE, "{}", mutation.what);
                let (is, was) = (
                    mutation.text.lines().nth(mutation.line - 1),
                    FILE.lines().nth(mutation.line - 1),
                );
                assert_eq!(is == was, kind == MistakeKind::Missing, "{}", mutation.what);
            }
        }
    }

    #[test]
    fn what_is_removed_goes_with_all_that_is_below_it() {
        let all = of_kind(MistakeKind::Missing, FILE);
        assert_eq!(all.len(), 2);
        assert!(!all[0].text.contains("[1]") && all[0].text.contains("addr"));
        assert_eq!(all[0].line, 2);
    }
}
