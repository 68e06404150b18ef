//! Map from the kernel's nodes to files of the folder. Names alone; no I/O.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::protocol::ROOT;

/// The nodes that the kernel knows. It forgets each again; see [`Nodes::forget`].
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: HashMap<u64, Node>,
    names: HashMap<(u64, OsString), u64>,
    next: u64,
}

#[derive(Debug)]
struct Node {
    /// Its folder and name; `None` once the name is gone.
    place: Option<(u64, OsString)>,
    /// Answers that named it and are not forgotten.
    known: u64,
    /// Handles that are open.
    handles: Vec<u64>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            nodes: HashMap::new(),
            names: HashMap::new(),
            next: ROOT + 1,
        }
    }

    /// The path of `node` below the folder; empty for the folder itself, `None` for
    /// what has no name any more.
    pub(super) fn path(&self, node: u64) -> Option<PathBuf> {
        let mut parts = Vec::new();
        let mut at = node;
        while at != ROOT {
            let (parent, name) = self.nodes.get(&at)?.place.as_ref()?;
            parts.push(name);
            at = *parent;
        }
        Some(parts.into_iter().rev().collect())
    }

    /// The path of `name` in the folder `parent`.
    pub(super) fn path_of(&self, parent: u64, name: &OsStr) -> Option<PathBuf> {
        Some(self.path(parent)?.join(name))
    }

    /// Returns the node of this name and counts the kernel's reference to it.
    pub(super) fn look_up(&mut self, parent: u64, name: &OsStr) -> u64 {
        let key = (parent, name.to_owned());
        let node = *self.names.entry(key.clone()).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        });
        let known = self.nodes.entry(node).or_insert_with(|| Node {
            place: Some(key),
            known: 0,
            handles: Vec::new(),
        });
        known.known += 1;
        node
    }

    /// The kernel has forgotten so many answers.
    pub(super) fn forget(&mut self, node: u64, count: u64) {
        let Some(known) = self.nodes.get_mut(&node) else {
            return;
        };
        known.known = known.known.saturating_sub(count);
        if known.known == 0
            && known.handles.is_empty()
            && let Some(place) = self.nodes.remove(&node).and_then(|gone| gone.place)
        {
            self.names.remove(&place);
        }
    }

    /// Removes the name from its node.
    pub(super) fn unlink(&mut self, parent: u64, name: &OsStr) {
        let node = self.names.remove(&(parent, name.to_owned()));
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(&node)) {
            node.place = None;
        }
    }

    /// Moves a node to another name. A node that had this name before has none afterwards.
    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        self.unlink(to.0, to.1);
        let Some(node) = self.names.remove(&(from.0, from.1.to_owned())) else {
            return;
        };
        let place = (to.0, to.1.to_owned());
        self.names.insert(place.clone(), node);
        if let Some(node) = self.nodes.get_mut(&node) {
            node.place = Some(place);
        }
    }

    pub(super) fn open(&mut self, node: u64, handle: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.handles.push(handle);
        }
    }

    pub(super) fn close(&mut self, node: u64, handle: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.handles.retain(|open| *open != handle);
        }
    }

    /// A handle of the node that is open.
    pub(super) fn handle(&self, node: u64) -> Option<u64> {
        self.nodes.get(&node)?.handles.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(nodes: &Nodes, node: u64) -> Option<String> {
        Some(nodes.path(node)?.to_str().unwrap().to_owned())
    }

    /// The node of this name in the root, if the kernel has one.
    fn find(nodes: &Nodes, name: &str) -> Option<u64> {
        nodes.names.get(&(ROOT, OsString::from(name))).copied()
    }

    #[test]
    fn what_lies_in_a_folder_moves_with_it() {
        let mut nodes = Nodes::new();
        let folder = nodes.look_up(ROOT, OsStr::new("a"));
        let file = nodes.look_up(folder, OsStr::new("f"));
        assert_eq!(nodes.look_up(folder, OsStr::new("f")), file);
        assert_eq!(path(&nodes, file).as_deref(), Some("a/f"));
        nodes.rename((ROOT, OsStr::new("a")), (ROOT, OsStr::new("b")));
        assert_eq!(path(&nodes, file).as_deref(), Some("b/f"));
        assert_eq!(path(&nodes, ROOT).as_deref(), Some(""));
    }

    #[test]
    fn what_was_renamed_over_has_no_name() {
        let mut nodes = Nodes::new();
        let old = nodes.look_up(ROOT, OsStr::new("old"));
        let new = nodes.look_up(ROOT, OsStr::new("new"));
        nodes.rename((ROOT, OsStr::new("new")), (ROOT, OsStr::new("old")));
        assert_eq!(path(&nodes, new).as_deref(), Some("old"));
        assert_eq!(path(&nodes, old), None);
        assert_eq!(find(&nodes, "old"), Some(new));
    }

    #[test]
    fn a_node_is_forgotten_once_all_answers_are() {
        let mut nodes = Nodes::new();
        let node = nodes.look_up(ROOT, OsStr::new("f"));
        nodes.look_up(ROOT, OsStr::new("f"));
        nodes.forget(node, 1);
        assert!(find(&nodes, "f").is_some());
        nodes.forget(node, 1);
        assert!(find(&nodes, "f").is_none());
        assert_ne!(nodes.look_up(ROOT, OsStr::new("f")), node);
    }
}
