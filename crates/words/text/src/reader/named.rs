//! Files that a file names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Reader;
use crate::code;
use crate::node::Node;
use crate::source::Source;

/// What the files and folders are that a source names, by the path as it is
/// written there, or why they cannot be had. Nothing here reads a file: who
/// reads the source hands them in.
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

    /// The text of the file that `node` names; that it cannot be had is
    /// reported.
    #[must_use]
    pub fn named_text(&self, node: &Node) -> Option<Arc<Source>> {
        let found = self.named.texts.get(self.text(node)?);
        self.handed_in(node, found.map(Result::as_ref)).cloned()
    }

    /// The files that `node` names; that they cannot be had is reported.
    #[must_use]
    pub fn named_files(&self, node: &Node) -> Option<Vec<PathBuf>> {
        let found = self.named.files.get(self.text(node)?);
        self.handed_in(node, found.map(Result::as_ref)).cloned()
    }

    fn handed_in<'f, T>(
        &self,
        node: &Node,
        found: Option<Result<&'f T, &String>>,
    ) -> Option<&'f T> {
        let reason = match found {
            Some(Ok(found)) => return Some(found),
            Some(Err(reason)) => reason.as_str(),
            None => "it was not looked for",
        };
        let message = format!("cannot read {}: {reason}", self.text(node)?);
        self.report(self.error(code::UNREADABLE, node.span, message));
        None
    }
}
