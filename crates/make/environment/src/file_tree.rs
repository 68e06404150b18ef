//! Files and folders that are created, opened and renamed in an order that the seed determines.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::Outcome;
use stillwell_plan::generator::FileTreePlan;
use stillwell_scope::Tasks;
use stillwell_units::{Seed, as_usize};
use stillwell_worker::{Opener, Worker};

use crate::numbers::Numbers;

/// Largest number of folders that are renamed: the first ones.
const RENAMED_MAX: usize = 4096;

/// A tree, and what has been done of it.
#[derive(Clone, Debug)]
pub(crate) struct FileTree {
    plan: FileTreePlan,
    nodes: Arc<[TreeNode]>,
    numbers: Numbers,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct TreeNode {
    path: PathBuf,
    is_folder: bool,
}

impl FileTree {
    pub(crate) fn new(plan: &FileTreePlan, seed: &Seed) -> Self {
        let mut numbers = Numbers::new(&seed.derive("file_tree", 0));
        Self {
            nodes: nodes(plan, &mut numbers).into(),
            plan: plan.clone(),
            numbers,
        }
    }
}

/// All files and folders, each behind the folder that it lies in.
fn nodes(plan: &FileTreePlan, numbers: &mut Numbers) -> Vec<TreeNode> {
    let mut nodes = vec![TreeNode {
        path: plan.root.clone(),
        is_folder: true,
    }];
    let mut folders = vec![(plan.root.clone(), 0)];
    let nodes_max = as_usize(plan.nodes_max.get());
    while let Some((folder, depth)) = folders.pop() {
        let subfolders = if depth < plan.depth_max.get() {
            plan.folders_max.get()
        } else {
            0
        };
        let kinds = (0..plan.files_max.get())
            .map(|_| false)
            .chain((0..subfolders).map(|_| true));
        for is_folder in kinds {
            // The root is there besides.
            if nodes.len() > nodes_max {
                return nodes;
            }
            let mut path = folder.join(numbers.name(plan.name_length.get()));
            if is_folder {
                folders.push((path.clone(), depth + 1));
            } else {
                path.set_extension("txt");
            }
            nodes.push(TreeNode { path, is_folder });
        }
    }
    nodes
}

impl Opener for FileTree {
    fn open(&self, worker: &Rc<Worker>, _connections: u16, tasks: &mut Tasks) {
        tasks.spawn(work(Rc::clone(worker), self.clone()));
    }
}

/// Works on the tree until the worker ends.
async fn work(worker: Rc<Worker>, tree: FileTree) {
    let work = RefCell::new(Work {
        tree,
        next: 0,
        due: 0,
        folders: Vec::new(),
    });
    while worker.next_slice(&worker.next, 0).await.is_some() {
        worker.begin_paced();
        let outcome = match work.borrow_mut().step() {
            Ok(()) => Outcome::Ok,
            Err(_) => Outcome::SendFailed,
        };
        worker.end_paced();
        worker.shard.count(outcome);
    }
}

#[derive(Debug)]
struct Work {
    tree: FileTree,
    /// The next file or folder.
    next: usize,
    /// Renames that are due, as a part of `operations`.
    due: u32,
    /// Those that are there and can be renamed.
    folders: Vec<usize>,
}

impl Work {
    /// Runs one operation; renames are spread evenly.
    fn step(&mut self) -> io::Result<()> {
        let share = self.tree.plan.renames;
        self.due += share.renames();
        if self.due >= share.operations().get() {
            self.due -= share.operations().get();
            return self.rename();
        }
        self.open_or_create()
    }

    fn open_or_create(&mut self) -> io::Result<()> {
        let index = self.next;
        self.next = (index + 1) % self.tree.nodes.len();
        let node = &self.tree.nodes[index];
        match File::open(&node.path) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if !node.is_folder {
            return File::create(&node.path).map(drop);
        }
        fs::create_dir_all(&node.path)?;
        // The root is not renamed.
        if index > 0 && self.folders.len() < RENAMED_MAX {
            self.folders.push(index);
        }
        Ok(())
    }

    /// Renames a folder twice, so its files keep their paths.
    fn rename(&mut self) -> io::Result<()> {
        let tree = &mut self.tree;
        let Some(index) = tree.numbers.below(self.folders.len()) else {
            return Ok(());
        };
        let path: &Path = &tree.nodes[self.folders[index]].path;
        let renamed = path.with_file_name(tree.numbers.name(tree.plan.name_length.get()));
        fs::rename(path, &renamed)?;
        fs::rename(&renamed, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(root: &Path) -> FileTreePlan {
        FileTreePlan {
            root: root.join("tree"),
            depth_max: 3.try_into().unwrap(),
            folders_max: 2.try_into().unwrap(),
            files_max: 3.try_into().unwrap(),
            nodes_max: 30.try_into().unwrap(),
            name_length: 8.try_into().unwrap(),
            renames: stillwell_plan::generator::RenameShare::try_new(1, 9.try_into().unwrap())
                .unwrap(),
        }
    }

    #[test]
    fn every_node_comes_behind_its_folder_and_within_bounds() {
        let plan = plan(Path::new("/x"));
        let tree = FileTree::new(&plan, &Seed::from_number(3));
        assert_eq!(tree.nodes.len(), 31);
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let before = &tree.nodes[..index];
            let folder = node.path.parent().unwrap();
            assert!(
                before
                    .iter()
                    .any(|renamed| renamed.is_folder && renamed.path == folder)
            );
            let depth = node.path.components().count() - plan.root.components().count();
            assert!(depth <= 4, "{}", node.path.display());
            assert!(!before.contains(node));
        }
        let again = FileTree::new(&plan, &Seed::from_number(3));
        assert_eq!(tree.nodes, again.nodes);
    }

    #[test]
    fn the_tree_comes_to_be_and_survives_its_renames() {
        let folder = tempfile::tempdir().unwrap();
        let tree = FileTree::new(&plan(folder.path()), &Seed::from_number(3));
        let nodes = Arc::clone(&tree.nodes);
        let mut work = Work {
            tree,
            next: 0,
            due: 0,
            folders: Vec::new(),
        };
        for _ in 0..100 {
            work.step().unwrap();
        }
        assert!(!work.folders.is_empty());
        for node in nodes.iter() {
            assert_eq!(
                node.path.is_dir(),
                node.is_folder,
                "{}",
                node.path.display()
            );
            assert!(node.path.exists());
        }
    }
}
