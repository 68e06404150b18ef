//! Files that a `lading.yaml` names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_config::files::{EntryKind, Files, files_in, read_source, resolve};
use stillwell_text::{NamedFiles, Source};

use crate::file;

/// Returns the files that `source`, read from `path`, names.
pub(crate) fn named_files(files: &dyn Files, path: &Path, source: &Arc<Source>) -> NamedFiles {
    let folder = path.parent().unwrap_or(path);
    let (texts, sent) = file::names(source);
    let texts = texts.into_iter().map(|name| {
        let read = match find(files, folder, &name) {
            Some((path, EntryKind::File)) => {
                read_source(files, &path).map_err(|error| error.message.clone())
            }
            entry => Err(why_not(entry.as_ref())),
        };
        (name, read)
    });
    let sent = sent.into_iter().map(|name| {
        let content = match find(files, folder, &name) {
            Some((path, EntryKind::File)) => Ok(vec![path]),
            Some((path, EntryKind::Folder)) => files_in(files, &path),
            entry => Err(why_not(entry.as_ref())),
        };
        (name, content)
    });
    NamedFiles {
        texts: texts.collect(),
        files: sent.collect(),
    }
}

fn why_not(entry: Option<&(PathBuf, EntryKind)>) -> String {
    match entry {
        Some((path, EntryKind::Special)) => {
            format!(
                "{} is a pipe, a socket or a device, not a file",
                path.display()
            )
        }
        Some((path, _)) => format!("{} is a folder", path.display()),
        None => "the file does not exist".to_owned(),
    }
}

/// Finds `name`: beside the file, at lading's mount point, or in the current folder.
fn find(files: &dyn Files, folder: &Path, name: &str) -> Option<(PathBuf, EntryKind)> {
    // The load is in a folder beside the data, or in the same folder.
    let data = match folder.ends_with("lading") {
        true => "../data",
        false => "data",
    };
    let shown = [("/etc/lading", "."), ("/data", data)];
    let shown = shown.iter().filter_map(|(at, beside)| {
        let below = Path::new(name).strip_prefix(at).ok()?;
        Some(resolve(folder, &format!("{beside}/{}", below.display())))
    });
    let here = std::path::absolute(name).ok();
    let places = shown.chain([resolve(folder, name)]).chain(here);
    places
        .filter_map(|path| {
            let kind = files.kind(&path)?;
            Some((path, kind))
        })
        .next()
}
