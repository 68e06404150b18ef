//! Files that a file names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Reader;
use crate::code;
use crate::node::Node;
use crate::source::Source;

/// Files and folders that a source names, by the path as written there, or the reason why they are
/// not readable. Nothing here reads a file: the caller that reads the source also reads these.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles {
    /// Texts that belong to the configuration.
    pub texts: BTreeMap<String, Result<Arc<Source>, String>>,
    /// Files that are sent, as absolute paths: of a folder those in it.
    pub files: BTreeMap<String, Result<Vec<PathBuf>, String>>,
}

impl Reader {
    /// The same, with the files that the source names.
    #[must_use]
    pub fn with_named(mut self, named: NamedFiles) -> Self {
        self.named = named;
        self
    }

    /// Returns the text of the file that `node` names; reports a file that is not readable.
    #[must_use]
    pub fn named_text(&self, node: &Node) -> Option<Arc<Source>> {
        let named = self.named.texts.get(self.text(node)?);
        self.handed_in(node, named.map(Result::as_ref)).cloned()
    }

    /// Returns the files that `node` names; reports files that are not readable.
    #[must_use]
    pub fn named_files(&self, node: &Node) -> Option<Vec<PathBuf>> {
        let named = self.named.files.get(self.text(node)?);
        self.handed_in(node, named.map(Result::as_ref)).cloned()
    }

    fn handed_in<'f, T>(
        &self,
        node: &Node,
        named: Option<Result<&'f T, &String>>,
    ) -> Option<&'f T> {
        let reason = match named {
            Some(Ok(named)) => return Some(named),
            Some(Err(reason)) => reason.as_str(),
            None => "it was not looked for",
        };
        let message = format!("cannot read {}: {reason}", self.text(node)?);
        self.report(self.error(code::UNREADABLE, node.span, message));
        None
    }
}
