//! Files that a `lading.yaml` names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_config::files::{EntryKind, Files, files_in, read_source, resolve};
use stillwell_text::{NamedFiles, Source};

use crate::rig;

/// What the files are that `source`, read from `path`, names.
pub(crate) fn named_files(files: &dyn Files, path: &Path, source: &Arc<Source>) -> NamedFiles {
    let folder = path.parent().unwrap_or(path);
    let (texts, sent) = rig::names(source);
    let texts = texts.into_iter().map(|name| {
        let read = match find(files, folder, &name) {
            Some((path, EntryKind::File)) => {
                read_source(files, &path).map_err(|error| error.message.clone())
            }
            found => Err(why_not(found.as_ref())),
        };
        (name, read)
    });
    let sent = sent.into_iter().map(|name| {
        let found = match find(files, folder, &name) {
            Some((path, EntryKind::File)) => Ok(vec![path]),
            Some((path, EntryKind::Folder)) => files_in(files, &path),
            None => Err(why_not(None)),
        };
        (name, found)
    });
    NamedFiles {
        texts: texts.collect(),
        files: sent.collect(),
    }
}

fn why_not(found: Option<&(PathBuf, EntryKind)>) -> String {
    match found {
        Some((path, _)) => format!("{} is a folder", path.display()),
        None => "there is no such file".to_owned(),
    }
}

/// What `name` stands for: beside the file, where lading was shown it, or from
/// where we are.
fn find(files: &dyn Files, folder: &Path, name: &str) -> Option<(PathBuf, EntryKind)> {
    // The load lies in a folder beside the data, or beside it in one folder.
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
