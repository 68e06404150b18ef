//! Files of a case, and their mount points in the target.
//!
//! ```text
//! cases/NAME/experiment.yaml  lading/lading.yaml  TARGET/…     data/…   SMP
//! tests/NAME/                 lading/lading.yaml  TARGET/…     data/…   Vector's soaks of 2022
//! tests/NAME/                 lading.yaml         TARGET.toml  data/…   those of 2021
//! ```

use std::path::{Path, PathBuf};

use stillwell_config::files::{EntryKind, Files};
use stillwell_plan::GeneratorPlan;
use stillwell_plan::target::MountPlan;
use stillwell_text::{Diagnostic, Diagnostics, code};

/// Folder in which generators leave logs for targets that read files.
const SHARED: &str = "/smp-shared";
/// Endings of what may be a target's configuration.
const ENDINGS: [&str; 5] = ["toml", "yaml", "yml", "json", "conf"];
/// Folders with these names are not targets.
const NO_TARGET: [&str; 4] = ["lading", "data", "experiment", "machine"];

/// Files that may be the load of a case.
pub(crate) const LOADS: [&str; 2] = ["lading/lading.yaml", "lading.yaml"];

/// Returns the `lading.yaml` of the case in `folder`, if it has one.
pub(crate) fn load_of(files: &dyn Files, folder: &Path) -> Option<PathBuf> {
    let places = LOADS.map(|place| folder.join(place));
    let mut files_found = places
        .into_iter()
        .filter(|path| files.kind(path) == Some(EntryKind::File));
    files_found.next()
}

/// The target of a case whose `experiment.yaml` names none: what has a configuration
/// in its folder.
pub(super) fn target_of(files: &dyn Files, folder: &Path, diagnostics: &mut Diagnostics) -> String {
    let mut names: Vec<String> = configurations(files, folder)
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.dedup();
    match names.as_slice() {
        [name] => name.clone(),
        [] => "target".to_owned(),
        [first, ..] => {
            let candidates = names.join("`, `");
            let message = format!(
                "{}: its target is ambiguous: `{candidates}`",
                folder.display()
            );
            let warning = Diagnostic::warning(code::NO_TARGET, message);
            diagnostics.push(warning.help(format!(
                "`{first}` is used; name it in an `experiment.yaml`, e.g. `target: {{name: {first}}}`"
            )));
            first.clone()
        }
    }
}

/// Folders, or where the load lies beside them files, that may be a target's.
fn configurations(files: &dyn Files, folder: &Path) -> Vec<PathBuf> {
    let is_flat = files.kind(&folder.join("lading")) != Some(EntryKind::Folder);
    let mut entries = files.list(folder).unwrap_or_default();
    entries.retain(|path| {
        let (name, stem) = (path.file_name(), path.file_stem());
        let name = name.unwrap_or_default().to_string_lossy();
        let stem = stem.unwrap_or_default().to_string_lossy();
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let is_named = !name.starts_with('.') && !NO_TARGET.contains(&stem.as_ref());
        is_named
            && match files.kind(path) {
                Some(EntryKind::Folder) => !is_flat,
                Some(EntryKind::File) => is_flat && ENDINGS.contains(&ending.as_ref()),
                Some(EntryKind::Special) | None => false,
            }
    });
    entries
}

/// Returns the mounts of the target called `name`: the files of the case in `folder`, and folders of the run
/// for its state and for files of `generators`.
pub(super) fn mounts(
    files: &dyn Files,
    folder: &Path,
    name: &str,
    generators: &[GeneratorPlan],
) -> Vec<MountPlan> {
    let mut shown = vec![
        (name.to_owned(), format!("/etc/{name}")),
        ("lading".to_owned(), "/etc/lading".to_owned()),
        ("data".to_owned(), "/data".to_owned()),
    ];
    shown.retain(|(source, _)| files.kind(&folder.join(source)) == Some(EntryKind::Folder));
    if files.kind(&folder.join("lading")) != Some(EntryKind::Folder) {
        for path in configurations(files, folder) {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            shown.push((file.clone().into_owned(), format!("/etc/{name}/{file}")));
        }
        shown.push((
            "lading.yaml".to_owned(),
            "/etc/lading/lading.yaml".to_owned(),
        ));
    }
    let run_folder = |source: &str, at: String| MountPlan {
        source: source.into(),
        at: at.into(),
        writable: true,
    };
    let read_only =
        |(source, at): (String, String)| MountPlan::read_only(folder.join(source), at.into());
    let mut mounts: Vec<MountPlan> = shown.into_iter().map(read_only).collect();
    mounts.push(run_folder("{state}/var-lib", format!("/var/lib/{name}")));
    let mut transports = generators.iter().map(|generator| &generator.transport);
    if transports.any(|transport| transport.writes_below(Path::new(SHARED))) {
        mounts.push(run_folder("{state}/smp-shared", SHARED.to_owned()));
    }
    mounts
}
