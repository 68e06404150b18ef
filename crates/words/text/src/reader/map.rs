//! Reading maps: every key is read, or reported.

use std::cell::RefCell;

use stillwell_units::human::with_article;

use super::{Reader, nearest};
use crate::code;
use crate::node::{Entry, Node, Value};
use crate::source::Span;

/// The accepted keys of a map.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The kind of the map, such as "generator".
    pub what: &'static str,
    /// The keys that are read.
    pub accepted: Vec<&'static str>,
    /// Keys of another tool that are not supported here.
    pub known: &'static [&'static str],
}

impl Keys {
    /// A map called `what` with these keys.
    #[must_use]
    pub fn new(what: &'static str, accepted: &[&'static str]) -> Self {
        Self {
            what,
            accepted: accepted.to_vec(),
            known: &[],
        }
    }

    /// The same, knowing `known` besides.
    #[must_use]
    pub const fn known(mut self, known: &'static [&'static str]) -> Self {
        self.known = known;
        self
    }
}

/// Reads one map. Unknown keys were reported when it was made.
#[derive(Debug)]
pub struct MapReader<'r, 'n> {
    reader: &'r Reader,
    entries: &'n [Entry],
    what: &'static str,
    span: Span,
    taken: RefCell<Vec<&'n str>>,
    accepted: Vec<&'static str>,
}

impl Reader {
    /// Reads `node` as a map with `keys`.
    #[must_use]
    pub fn map<'r, 'n>(&'r self, node: &'n Node, keys: &Keys) -> Option<MapReader<'r, 'n>> {
        let Some(entries) = node.entries() else {
            let mut accepted = keys.accepted.join(", ");
            accepted.insert_str(0, "keys here: ");
            let expected = with_article(keys.what);
            let message = format!("expected {expected}, found {}", node.shape());
            self.report(
                self.error(code::WRONG_SHAPE, node.span, message)
                    .label("expected a map")
                    .help(accepted),
            );
            return None;
        };
        for entry in entries {
            self.check_key(entry, keys);
        }
        Some(MapReader {
            reader: self,
            entries,
            what: keys.what,
            span: node.span,
            taken: RefCell::default(),
            accepted: keys.accepted.clone(),
        })
    }

    fn check_key(&self, entry: &Entry, keys: &Keys) {
        let key = entry.key.text.as_str();
        if keys.accepted.contains(&key) || key.is_empty() {
            return;
        }
        if keys.known.contains(&key) {
            self.not_built(entry.key.span, keys.what, key, None);
            return;
        }
        let message = format!("unknown {} key `{key}`", keys.what);
        let mut error = self.error(code::UNKNOWN_KEY, entry.key.span, message);
        if let Some(near) = nearest(key, keys.accepted.iter().copied()) {
            error = error.label(format!("did you mean `{near}`?"));
        } else {
            let mut accepted = keys.accepted.clone();
            accepted.sort_unstable();
            error = error.help(format!("keys accepted here: {}", accepted.join(", ")));
        }
        self.report(error);
    }
}

impl<'n> MapReader<'_, 'n> {
    /// The place of the whole map.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The value of `key`, if it is there and not null.
    pub fn take(&self, key: &'static str) -> Option<&'n Node> {
        debug_assert!(
            self.accepted.contains(&key),
            "{key} is not a key of {}",
            self.what
        );
        let entry = self.entries.iter().find(|entry| entry.key.text == key)?;
        self.taken.borrow_mut().push(&entry.key.text);
        (!matches!(entry.value.value, Value::Null)).then_some(&entry.value)
    }

    /// Returns the value of `key` as `read` reads it, or `default` without one; `None` if it is wrong.
    pub fn read_or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&'n Node) -> Option<T>,
    ) -> Option<T> {
        self.take(key).map_or(Some(default), read)
    }

    /// Returns the value of `key` as `read` reads it, if there is one; `None` if it is wrong.
    pub fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'n Node) -> Option<T>,
    ) -> Option<Option<T>> {
        self.read_or(key, None, |node| read(node).map(Some))
    }

    /// Marks `key` as read where its value has no meaning here.
    pub fn ignore(&self, key: &'static str) {
        if let Some(entry) = self.entries.iter().find(|entry| entry.key.text == key) {
            self.taken.borrow_mut().push(&entry.key.text);
        }
    }

    /// The value of `key`, which must be there.
    pub fn required(&self, key: &'static str) -> Option<&'n Node> {
        let value = self.take(key);
        if value.is_none() {
            let span = self.key_span(key).unwrap_or(self.span);
            let message = format!("{} needs `{key}`", with_article(self.what));
            let error = self.reader.error(code::MISSING_KEY, span, message);
            self.reader
                .report(error.label(if self.key_span(key).is_some() {
                    "it has no value".to_owned()
                } else {
                    format!("`{key}` is missing")
                }));
        }
        value
    }

    /// The one of `keys` that is there; exactly one must be.
    pub fn one_of(&self, keys: &[&'static str]) -> Option<(&'static str, &'n Node)> {
        let mut there: Vec<(&'static str, &'n Node)> = Vec::new();
        for key in keys {
            if let Some(entry) = self.entries.iter().find(|entry| entry.key.text == *key) {
                self.taken.borrow_mut().push(&entry.key.text);
                there.push((key, &entry.value));
            }
        }
        match there.as_slice() {
            [entry] => return Some(*entry),
            [] => {
                // An unknown key was reported already: it may be the one meant.
                let unknown = |entry: &&Entry| !self.accepted.contains(&entry.key.text.as_str());
                if !self.entries.iter().any(|entry| unknown(&entry)) {
                    let message = format!("{} needs one of its kinds", with_article(self.what));
                    let error = self.reader.error(code::ONE_OF_KEYS, self.span, message);
                    self.reader
                        .report(error.label("none is given").help(one_of_help(keys)));
                }
            }
            [(first, _), .., (last, _)] => {
                let span = self.key_span(last).unwrap_or(self.span);
                let before = self.key_span(first).unwrap_or(self.span);
                let message = format!(
                    "{} can have only one of `{first}` and `{last}`",
                    with_article(self.what)
                );
                self.reader.report(
                    self.reader
                        .error(code::ONE_OF_KEYS, span, message)
                        .label("a second kind")
                        .context(self.reader.place(before), "the first")
                        .help(one_of_help(keys)),
                );
            }
        }
        None
    }

    /// Returns the place of `key`.
    #[must_use]
    pub fn key_span(&self, key: &str) -> Option<Span> {
        let entry = self.entries.iter().find(|entry| entry.key.text == key)?;
        Some(entry.key.span)
    }
}

impl Drop for MapReader<'_, '_> {
    /// A key that is accepted but was not read would be ignored silently. Where
    /// an error was found already, reading may have ended early.
    fn drop(&mut self) {
        if self.reader.has_errors() {
            return;
        }
        let taken = self.taken.borrow();
        for entry in self.entries {
            let key = entry.key.text.as_str();
            if !taken.contains(&key) {
                let message = format!("`{key}` of {} was not read", with_article(self.what));
                let error = self.reader.error(code::UNREAD_KEY, entry.key.span, message);
                self.reader.report(error);
            }
        }
    }
}

fn one_of_help(keys: &[&str]) -> String {
    format!("exactly one of: {}", keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn a_key_that_is_not_read_is_a_defect() {
        let codes = |take_both: bool| {
            let reader = Reader::new(Source::new("a.yaml", "a: 1\nb: 2\n"));
            let root = reader.parse().unwrap();
            let map = reader.map(&root, &Keys::new("thing", &["a", "b"])).unwrap();
            map.ignore("a");
            if take_both {
                assert!(map.take("b").is_some());
            }
            drop(map);
            let diagnostics = reader.finish();
            diagnostics
                .iter()
                .map(|diagnostic| diagnostic.code)
                .collect::<Vec<_>>()
        };
        assert_eq!(codes(false), [code::UNREAD_KEY]);
        assert!(codes(true).is_empty());
    }

    #[test]
    fn a_key_without_a_value_is_not_a_wrong_one() {
        let reader = Reader::new(Source::new("a.yaml", "right: 1\nempty:\nwrong: x\n"));
        let root = reader.parse().unwrap();
        let keys = Keys::new("thing", &["right", "empty", "wrong", "absent"]);
        let map = reader.map(&root, &keys).unwrap();
        let number = |node| reader.whole(node, 0_u8, 9);
        assert_eq!(map.read_or("right", 5, number), Some(1));
        assert_eq!(map.read("right", number), Some(Some(1)));
        for key in ["empty", "absent"] {
            assert_eq!(map.read_or(key, 5, number), Some(5), "{key}");
            assert_eq!(map.read(key, number), Some(None), "{key}");
        }
        assert!(!reader.has_errors());
        assert_eq!(map.read_or("wrong", 5, number), None);
        assert_eq!(map.read("wrong", number), None);
        assert!(reader.has_errors());
    }
}
