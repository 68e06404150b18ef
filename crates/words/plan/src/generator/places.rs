//! Paths of a generator's files.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::{FileLayout, GeneratorPlan, TransportPlan};
use crate::TargetPlan;

impl GeneratorPlan {
    /// The same generator beside `target`, whose places are filled in: files that it writes
    /// to a place at which the target sees a folder of the run go into that folder.
    #[must_use]
    pub fn beside(&self, target: &TargetPlan) -> Self {
        let mut generator = self.clone();
        for mount in target.mounts().iter().filter(|mount| mount.writable) {
            generator.transport.change_paths(&|path| {
                let below = path.strip_prefix(&mount.at);
                below.map_or_else(|_| path.to_owned(), |below| mount.source.join(below))
            });
        }
        generator
    }
}

impl TransportPlan {
    /// Returns true if it writes files somewhere below `folder`.
    #[must_use]
    pub fn writes_below(&self, folder: &Path) -> bool {
        let is_below = Cell::new(false);
        self.clone().change_paths(&|path| {
            is_below.set(path.starts_with(folder));
            path.to_owned()
        });
        is_below.get()
    }

    /// Puts what it writes files into somewhere else: `change` says where each path
    /// leads. Sockets stay: another program makes them.
    fn change_paths(&mut self, change: &dyn Fn(&Path) -> PathBuf) {
        let path = match self {
            Self::Files { layout, .. } => match layout {
                FileLayout::Numbered { template, .. } => {
                    let changed = change(Path::new(template));
                    *template = changed.to_string_lossy().into_owned();
                    return;
                }
                FileLayout::Rotated { root, .. } => root,
                FileLayout::Appended { path }
                | FileLayout::Log { path, .. }
                | FileLayout::Mounted { at: path, .. } => path,
            },
            Self::PassthruFile { path } => path,
            Self::FileTree(plan) => &mut plan.root,
            Self::ProcFs(plan) => &mut plan.root,
            _ => return,
        };
        *path = change(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_goes_where_it_is_put_and_sockets_stay() {
        let below = |path: &Path| Path::new("/run/one").join(path.strip_prefix("/").unwrap());
        let numbered = |template: &str| TransportPlan::Files {
            layout: FileLayout::Numbered {
                template: template.to_owned(),
                delete: true,
            },
            bytes_max: stillwell_units::ByteSize::mib(1),
        };
        let socket = |path: &str| TransportPlan::UnixStream { path: path.into() };
        for (mut transport, expected, writes) in [
            (
                numbered("/shared/%NNN%"),
                numbered("/run/one/shared/%NNN%"),
                true,
            ),
            (socket("/shared/one"), socket("/shared/one"), false),
        ] {
            assert_eq!(transport.writes_below(Path::new("/shared")), writes);
            assert!(!transport.writes_below(Path::new("/share")));
            transport.change_paths(&below);
            assert_eq!(transport, expected);
        }
    }
}
