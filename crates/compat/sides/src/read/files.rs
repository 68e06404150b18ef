//! Files and folders of one side.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use stillwell_config::files::open_input;
use stillwell_lading::capture::SNIFF_BYTES;
use stillwell_others::results::parse_number;

/// No result and no file of numbers is nearly as large; captures may be.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Maximum depth of folders, and maximum number of files.
const DEPTH_MAX: u32 = 8;
const FILES_MAX: usize = 20_000;
/// Endings of files that are taken from folders.
const ENDINGS: [&str; 5] = ["captures", "json", "jsonl", "parquet", "zst"];
/// Folders of results without runs to compare.
const SKIPPED: [&str; 2] = ["discarded", "probe"];

/// The paths of a side, each with what was chosen of it.
pub(super) fn items(typed: &str) -> anyhow::Result<Vec<(PathBuf, Option<String>)>> {
    let existing = |text: &str| -> Option<(PathBuf, Option<String>)> {
        if Path::new(text).exists() {
            return Some((text.into(), None));
        }
        let (path, choice) = text.rsplit_once('@')?;
        let there = !choice.is_empty() && Path::new(path).exists();
        there.then(|| (path.into(), Some(choice.to_owned())))
    };
    if let Some(item) = existing(typed) {
        return Ok(vec![item]);
    }
    let parts = typed
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    // Numbers beside it are not wrong.
    let wrong = parts
        .clone()
        .find(|part| existing(part).is_none() && parse_number(part).is_err());
    let items = parts.map(|part| {
        let wrong = wrong.unwrap_or(part);
        existing(part)
            .ok_or_else(|| anyhow!("`{wrong}` is neither a file, nor a folder, nor a number"))
    });
    let items = items.collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!items.is_empty(), "an empty argument cannot be compared");
    Ok(items)
}

/// The folder of the capture that `path` is, or is a file of.
pub(super) fn capture_folder(path: &Path) -> Option<PathBuf> {
    if path.join("manifest.json").is_file() {
        return Some(path.to_path_buf());
    }
    const FILES: [&str; 4] = [
        "manifest.json",
        "series.jsonl",
        "series.parquet",
        "summary.json",
    ];
    let name = path.file_name()?.to_str()?;
    let parent = path.parent()?;
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    (FILES.contains(&name) && parent.join("manifest.json").is_file()).then(|| parent.to_path_buf())
}

/// Captures and files of results below `folder`, by name.
pub(super) fn walk(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let read = || format!("list the files in {}", folder.display());
    let entries = fs::read_dir(folder).with_context(read)?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.with_context(read)?;
        // What a link names counts where it is, and a link to a folder above would never end.
        if !entry.file_type().with_context(read)?.is_symlink() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    for path in paths {
        ensure!(
            files.len() < FILES_MAX,
            "more than {FILES_MAX} runs below one folder"
        );
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if path.join("manifest.json").is_file() {
                if !SKIPPED.contains(&&*name) {
                    files.push(path);
                }
            } else if depth < DEPTH_MAX && !SKIPPED.contains(&&*name) && !name.starts_with('.') {
                walk(&path, depth + 1, files)?;
            }
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads the first bytes of a file, by which its kind is detected.
pub(super) fn start_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || format!("read {}", path.display());
    let file = open_input(path).with_context(read)?;
    let mut start = Vec::new();
    let most = u64::try_from(SNIFF_BYTES)?;
    file.take(most).read_to_end(&mut start).with_context(read)?;
    Ok(start)
}

/// All of a file of text.
pub(crate) fn text_of(path: &Path) -> anyhow::Result<String> {
    let read = || format!("read {}", path.display());
    let mut file = open_input(path)
        .with_context(read)?
        .take(TEXT_BYTES_MAX + 1);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(read)?;
    ensure!(
        u64::try_from(bytes.len())? <= TEXT_BYTES_MAX,
        "{} is larger than 64 MiB and not a capture",
        path.display()
    );
    String::from_utf8(bytes).with_context(read)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A link to a result would count it twice, and one to a folder above has no end.
    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run.json");
        fs::write(&run, "{}").unwrap();
        symlink(&run, folder.path().join("latest.json")).unwrap();
        symlink(folder.path(), folder.path().join("above")).unwrap();
        let mut files = Vec::new();
        walk(folder.path(), 0, &mut files).unwrap();
        assert_eq!(files, [run]);
    }
}
