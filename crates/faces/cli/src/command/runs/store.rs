//! Results in an object store.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::json;
use stillwell_capture::{make_private, write_private};
use stillwell_config::files::open_input;
use stillwell_experiment::ObjectStore;
use stillwell_experiment::library::{PlaceBelow, is_result_file, is_result_head};
use stillwell_units::{ByteSize, float_from_u64, human};

use super::{ResultFile, table};
use crate::command::places;
use crate::paint::Paint;

/// Maximum size of one file.
const FILE_MAX: ByteSize = ByteSize::mib(1024);

/// Returns the store that a place names; `None` for a folder.
pub(super) fn of(place: &Path) -> anyhow::Result<Option<ObjectStore>> {
    Ok(ObjectStore::from_env(place)?)
}

/// Files that describe a result, at its top.
const HEADS: [&str; 5] = [
    "manifest.json",
    "suite.json",
    "targets.json",
    "capacity.json",
    "bisect.json",
];

/// Returns true if these are the files of one result, and neither of several results nor of another program.
pub(super) fn is_result(store: &ObjectStore, files: &[ResultFile]) -> anyhow::Result<bool> {
    match files {
        [(name, _)] if name.is_empty() => {
            let content = store.download("", FILE_MAX)?;
            Ok(is_result_file(store.address("").as_ref(), &content))
        }
        _ => {
            for head in heads(files) {
                if is_result_head(&store.download(head, FILE_MAX)?) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// Returns the files that may describe a result, by their names.
fn heads(files: &[ResultFile]) -> impl Iterator<Item = &str> {
    let names = files.iter().map(|(name, _)| name.as_str());
    names.filter(|name| HEADS.contains(name))
}

/// Removes the files of a result, those last that describe it: what an interruption leaves can be removed later.
pub(super) fn remove(store: &ObjectStore, mut files: Vec<ResultFile>) -> anyhow::Result<()> {
    files.sort_by_key(|(name, _)| HEADS.contains(&name.as_str()));
    files
        .iter()
        .try_for_each(|(name, _)| store.delete(name).map_err(anyhow::Error::from))
}

/// Returns the files of a result in a store; at least one. A result that is one file has no name in it.
pub(super) fn files(store: &ObjectStore) -> anyhow::Result<Vec<ResultFile>> {
    let listing = store.list()?;
    ensure!(
        !listing.is_cut,
        "{} has more files than one result",
        store.address("")
    );
    let mut objects = listing.objects;
    if objects.is_empty() {
        objects.extend(store.object_at_prefix()?);
    }
    ensure!(
        !objects.is_empty(),
        "{} is empty or does not exist",
        store.address("")
    );
    Ok(objects
        .into_iter()
        .map(|object| (object.key, object.size))
        .collect())
}

/// Prints the results below the prefix of a store.
pub(super) fn list(store: &ObjectStore, is_json: bool, paint: &Paint) -> anyhow::Result<()> {
    let mut results: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let listing = store.list()?;
    for object in listing.objects {
        let name = object.key.split('/').next().unwrap_or_default();
        let (files, bytes) = results.entry(name.to_owned()).or_default();
        *files += 1;
        *bytes += object.size;
    }
    if is_json {
        for (name, (files, bytes)) in &results {
            let line = json!({ "path": store.address(name), "files": files, "bytes": bytes });
            Paint::data(&format!("{line}\n"))?;
        }
    } else {
        let rows = results.iter().map(|(name, (files, bytes))| {
            let size = human::bytes(float_from_u64(*bytes));
            let cells = [store.address(name), files.to_string(), size];
            cells.iter().map(|cell| cell.as_str().into()).collect()
        });
        table(&["path", "files", "size"], rows.collect(), paint)?;
    }
    if listing.is_cut {
        Paint::print_message("note: the list is not complete: give a prefix with fewer objects");
    }
    Ok(())
}

/// Uploads the files of a result under its name.
pub(super) fn push(store: &ObjectStore, result: &Path, files: &[ResultFile]) -> anyhow::Result<()> {
    let absolute = std::path::absolute(result)?;
    let name = absolute.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no name", result.display()))?;
    let mut files = files.to_vec();
    files.sort_by_key(|(name, _)| !HEADS.contains(&name.as_str()));
    for (file, _) in &files {
        let (path, key) = match file.as_str() {
            "" => (result.to_path_buf(), name.to_owned()),
            file => (result.join(file), format!("{name}/{file}")),
        };
        store.upload(&key, read(&path)?)?;
    }
    Paint::print_message(&format!(
        "pushed {}, files: {}",
        store.address(name),
        files.len()
    ));
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = || format!("read {}", path.display());
    let file = open_input(path).with_context(read)?;
    file.take(FILE_MAX.bytes() + 1)
        .read_to_end(&mut bytes)
        .with_context(read)?;
    ensure!(
        u64::try_from(bytes.len())? <= FILE_MAX.bytes(),
        "{} is larger than {FILE_MAX}",
        path.display()
    );
    Ok(bytes)
}

/// Downloads a result into a new folder, or a new file.
pub(super) fn pull(place: &Path, folder: Option<&Path>) -> anyhow::Result<()> {
    let store = of(place)?
        .with_context(|| format!("{} is not s3://BUCKET/PREFIX/NAME", place.display()))?;
    let address = store.address("");
    let name = address
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let default = Path::new(places::HOME).join("results");
    let into = folder.unwrap_or(&default).join(name);
    let files = files(&store)?;
    // Names come from the store: all are checked before the first is written.
    for (file, _) in files.iter().filter(|(file, _)| !file.is_empty()) {
        PlaceBelow::parse(&format!("0/{file}"))
            .with_context(|| format!("{address}: an object has the name {file:?}"))?;
    }
    ensure!(!into.exists(), "{} already exists", into.display());
    for (file, _) in &files {
        let path = match file.as_str() {
            "" => into.clone(),
            file => into.join(file),
        };
        if let Some(parent) = path.parent() {
            make_private(parent).with_context(|| format!("make {}", parent.display()))?;
        }
        let bytes = store.download(file, FILE_MAX)?;
        write_private(&path, bytes).with_context(|| format!("write {}", path.display()))?;
    }
    Paint::print_message(&format!(
        "pulled {}, files: {}",
        into.display(),
        files.len()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_above_results_is_no_result() {
        let files = |names: &[&str]| -> Vec<ResultFile> {
            names.iter().map(|name| ((*name).to_owned(), 1)).collect()
        };
        let single = files(&["report.md", "suite.json"]);
        assert_eq!(heads(&single).collect::<Vec<_>>(), ["suite.json"]);
        let several = files(&["a/suite.json", "b/suite.json", "photo.jpg"]);
        assert_eq!(heads(&several).count(), 0);
    }
}
