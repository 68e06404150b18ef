//! The results below the roots: found by the files in their folders, described by the first of them.

mod places;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;

pub use places::{PlaceBelow, PlaceError, ResultRoots};

/// Maximum number of entries of folders that one walk looks at.
const ENTRIES_MAX: usize = 50_000;
/// Maximum number of results.
const RESULTS_MAX: usize = 2_000;
/// Maximum number of configuration files.
const FILES_MAX: usize = 500;
/// Maximum depth below a root.
const DEPTH_MAX: usize = 8;
/// Maximum size of a file that describes a result.
const HEAD_MAX: u64 = 32 << 20;
/// Files that describe the result in their folder; the first one that does so decides.
const HEADS: [&str; 4] = [
    "manifest.json",
    "targets.json",
    "suite.json",
    "capacity.json",
];
/// Bytes of the start of a file that say what it is.
const START_BYTES: u64 = 4096;
/// Folders without results of users.
const SKIPPED: [&str; 4] = ["target", "node_modules", "calibrations", "bisects"];

/// Kind of a result.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ResultKind {
    /// Results of `run` with variants.
    Suite,
    /// Results of `ab`.
    Ab,
    /// Results of `run` with several targets.
    Targets,
    /// The capture of a load.
    Load,
    /// The capture of a single run.
    Run,
    /// The capture of a bench.
    Bench,
    /// A search for capacity.
    Capacity,
    /// The result of a load as JSON.
    LoadFile,
    /// A report as a page.
    Page,
}

impl ResultKind {
    /// Returns the kind for readers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suite => "experiments",
            Self::Ab => "ab",
            Self::Targets => "targets",
            Self::Load | Self::LoadFile => "load",
            Self::Run => "run",
            Self::Bench => "bench",
            Self::Capacity => "capacity",
            Self::Page => "report file",
        }
    }

    /// Returns true for results that only have a page that was made with them.
    pub const fn has_stored_page_only(self) -> bool {
        matches!(self, Self::Page)
    }

    /// Returns true for results that `compare` reads.
    pub const fn is_comparable(self) -> bool {
        !matches!(self, Self::Capacity | Self::Targets)
    }
}

/// One result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResultEntry {
    /// Its place.
    pub place: PlaceBelow,
    /// Its kind.
    pub kind: ResultKind,
    /// The command line, or empty.
    pub command: String,
    /// Its verdict; `None` if there is no verdict.
    pub headline: Option<Headline>,
    /// Start, or last change if that is unknown, in milliseconds since 1970.
    pub started_millis: u64,
}

/// A verdict in one line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Headline {
    /// Class of the style sheet for its kind.
    pub class: &'static str,
    /// Sign of its kind, which every font has.
    pub sign: &'static str,
    /// The verdict.
    pub text: String,
}

/// Everything below the roots.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResultListing {
    /// Results, newest first.
    pub results: Vec<ResultEntry>,
    /// Configuration files, by path.
    pub files: Vec<PlaceBelow>,
    /// True if there are more results, or may be.
    pub is_cut: bool,
    /// True if there are more files, or may be.
    pub are_files_cut: bool,
}

/// Finds results, and remembers what it has read of them.
#[derive(Debug, Default)]
pub struct Library {
    known: Mutex<BTreeMap<PlaceBelow, ([u64; 2], ResultEntry)>>,
}

impl Library {
    /// Returns everything below the roots.
    pub fn survey(&self, roots: &ResultRoots) -> ResultListing {
        self.survey_at_most(roots, RESULTS_MAX)
    }

    /// Of too many results, those that changed last are described.
    fn survey_at_most(&self, roots: &ResultRoots, results_max: usize) -> ResultListing {
        let mut walk = Walk::new(self);
        for (root, folder) in roots.folders().iter().enumerate() {
            let place = PlaceBelow {
                root,
                names: Vec::new(),
            };
            walk.folder(folder, &place);
        }
        let Walk {
            mut listing,
            mut located,
            ..
        } = walk;
        located.sort_by(|a, b| {
            let newest = b.stamp.cmp(&a.stamp);
            newest.then_with(|| a.place.cmp(&b.place))
        });
        listing.is_cut |= located.len() > results_max;
        located.truncate(results_max);
        listing.results = located.iter().map(|located| self.entry(located)).collect();
        listing.results.sort_by(|a, b| {
            let newest = b.started_millis.cmp(&a.started_millis);
            newest.then_with(|| a.place.cmp(&b.place))
        });
        listing.files.sort();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|place, _| listing.results.iter().any(|entry| entry.place == *place));
        listing
    }

    /// Returns the result at `place`.
    pub fn result(&self, path: &Path, place: &PlaceBelow) -> Option<ResultEntry> {
        let located = self.locate(path.to_path_buf(), place)?;
        Some(self.entry(&located))
    }

    /// Returns the result at `path`, if there is one. A known result is read again only if it has changed.
    fn locate(&self, path: PathBuf, place: &PlaceBelow) -> Option<Located> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.get(place);
        let last = last.map(|(stamp, entry)| (*stamp, entry.kind));
        drop(known);
        let unchanged = last.filter(|(stamp, kind)| stamp_of(&path, *kind) == *stamp);
        let (stamp, kind) = match unchanged {
            Some(unchanged) => unchanged,
            None => {
                let kind = kind_of(&path)?;
                (stamp_of(&path, kind), kind)
            }
        };
        Some(Located {
            path,
            place: place.clone(),
            kind,
            stamp,
        })
    }

    fn entry(&self, located: &Located) -> ResultEntry {
        let (place, stamp) = (&located.place, located.stamp);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, entry)) = known.get(place).filter(|(known, _)| *known == stamp) {
            return entry.clone();
        }
        let entry = describe(&located.path, place, located.kind, stamp);
        known.insert(place.clone(), (stamp, entry.clone()));
        entry
    }
}

/// Returns the result in a folder or file by itself; `None` if there is no result.
#[must_use]
pub fn describe_result(path: &Path) -> Option<ResultEntry> {
    let place = PlaceBelow {
        root: 0,
        names: Vec::new(),
    };
    Library::default().result(path, &place)
}

/// A result that is not described yet.
struct Located {
    path: PathBuf,
    place: PlaceBelow,
    kind: ResultKind,
    stamp: [u64; 2],
}

struct Walk<'l> {
    library: &'l Library,
    listing: ResultListing,
    located: Vec<Located>,
    entries: usize,
}

impl<'l> Walk<'l> {
    fn new(library: &'l Library) -> Self {
        Self {
            library,
            listing: ResultListing::default(),
            located: Vec::new(),
            entries: 0,
        }
    }

    fn folder(&mut self, folder: &Path, place: &PlaceBelow) {
        if place.names.len() > DEPTH_MAX {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.listing.is_cut = true;
                self.listing.are_files_cut = true;
                return;
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                continue;
            };
            let (path, inner) = (entry.path(), place.join(&name));
            if kind.is_dir() {
                let is_hidden = name.starts_with('.') && name != ".stillwell";
                if is_hidden || SKIPPED.contains(&name.as_str()) {
                    continue;
                }
                match self.library.locate(path.clone(), &inner) {
                    Some(located) => self.located.push(located),
                    None => self.folder(&path, &inner),
                }
            } else if kind.is_file() && !name.starts_with('.') {
                self.file(path, &name, inner);
            }
        }
    }

    fn file(&mut self, path: PathBuf, name: &str, place: PlaceBelow) {
        if name.ends_with(".yaml") || name.ends_with(".yml") {
            match self.listing.files.len() < FILES_MAX {
                true => self.listing.files.push(place),
                false => self.listing.are_files_cut = true,
            }
        } else {
            self.located.extend(self.library.locate(path, &place));
        }
    }
}

/// Returns the kind of the result in a folder or file, by the rules of `stillwell report`.
fn kind_of(path: &Path) -> Option<ResultKind> {
    if path.is_file() {
        return kind_of_file(path, || start_of(path).ok(), || read_head(path));
    }
    HEADS.into_iter().find_map(|name| {
        let head = read_head(&path.join(name)).filter(Head::is_of_result)?;
        Some(kind_of_head(path, name, &head))
    })
}

/// Returns the kind of the result in `folder`, which the file `name` describes.
fn kind_of_head(folder: &Path, name: &str, head: &Head) -> ResultKind {
    let above = folder.parent().and_then(Path::file_name);
    match name {
        "manifest.json" if head.schema.starts_with("stillwell/load-capture/") => ResultKind::Load,
        "manifest.json" if above.is_some_and(|above| above == "benches") => ResultKind::Bench,
        "manifest.json" => ResultKind::Run,
        "targets.json" => ResultKind::Targets,
        "suite.json" if head.is_of_ab() => ResultKind::Ab,
        "suite.json" => ResultKind::Suite,
        _ => ResultKind::Capacity,
    }
}

/// Returns the kind of the result that is one file with this name. Its start is read first: most files are no results.
fn kind_of_file(
    name: &Path,
    start: impl FnOnce() -> Option<String>,
    head: impl FnOnce() -> Option<Head>,
) -> Option<ResultKind> {
    let (kind, is_result) = match name.extension()?.to_str()? {
        "html" => {
            let mark = "name=\"generator\" content=\"stillwell\"";
            (ResultKind::Page, start()?.contains(mark))
        }
        "json" => {
            // A JSON Schema of results has the mark too, and so may a list.
            let start = start()?;
            let is_marked =
                start.trim_start().starts_with('{') && start.contains("\"stillwell/load");
            (ResultKind::LoadFile, is_marked && head()?.is_of_load())
        }
        _ => return None,
    };
    is_result.then_some(kind)
}

/// Returns true if a file with this name and content is a result by itself.
#[must_use]
pub fn is_result_file(name: &Path, content: &[u8]) -> bool {
    let head = || serde_json::from_slice::<Head>(content).ok();
    kind_of_file(name, || start_in(content).ok(), head).is_some()
}

/// Returns true if a file with this content describes a result in its folder. Many programs have files with the same
/// names.
#[must_use]
pub fn is_result_head(content: &[u8]) -> bool {
    serde_json::from_slice(content).is_ok_and(|head: Head| head.is_of_result())
}

/// Returns the start of a file as text.
fn start_of(path: &Path) -> io::Result<String> {
    start_in(File::open(path)?)
}

fn start_in(content: impl io::Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    content.take(START_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the name of the file that describes a result; empty for the result itself.
const fn head_of(kind: ResultKind) -> &'static str {
    match kind {
        ResultKind::Suite | ResultKind::Ab => "suite.json",
        ResultKind::Targets => "targets.json",
        ResultKind::Load | ResultKind::Run | ResultKind::Bench => "manifest.json",
        ResultKind::Capacity => "capacity.json",
        ResultKind::LoadFile | ResultKind::Page => "",
    }
}

/// Returns when a result changed last, and when the file that describes it did, in milliseconds since 1970.
fn stamp_of(path: &Path, kind: ResultKind) -> [u64; 2] {
    let changed = |path: &Path| {
        let changed = path.symlink_metadata().and_then(|data| data.modified());
        let since = changed.ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    };
    let head = match head_of(kind) {
        "" => path.to_path_buf(),
        name => path.join(name),
    };
    let [head, report] = [head, path.join("report.md")].map(|path| changed(&path).unwrap_or(0));
    [head.max(report), head]
}

/// The part of a describing file that identifies it or is shown.
#[derive(Default, Deserialize)]
struct Head {
    schema: String,
    #[serde(default)]
    command: Option<serde_json::Value>,
    /// Of suites and runs.
    #[serde(default)]
    started_wall_millis: Option<u64>,
    /// Of loads, in nanoseconds.
    #[serde(default)]
    started: Option<u64>,
}

impl Head {
    fn is_of_result(&self) -> bool {
        self.schema.starts_with("stillwell/")
    }

    /// Returns true for results of loads as one file.
    fn is_of_load(&self) -> bool {
        let mut schemas = ["stillwell/load/", "stillwell/load-summary/"].into_iter();
        schemas.any(|schema| self.schema.starts_with(schema))
    }

    fn is_of_ab(&self) -> bool {
        let words = self.command.as_ref().and_then(serde_json::Value::as_array);
        words.is_some_and(|words| words.get(1).is_some_and(|word| word == "ab"))
    }
}

fn describe(path: &Path, place: &PlaceBelow, kind: ResultKind, stamp: [u64; 2]) -> ResultEntry {
    let head = match head_of(kind) {
        "" => Head::default(),
        name => read_head(&path.join(name)).unwrap_or_default(),
    };
    let command = match head.command {
        Some(serde_json::Value::String(line)) => line,
        Some(serde_json::Value::Array(words)) => line_of(&words),
        _ => String::new(),
    };
    ResultEntry {
        place: place.clone(),
        kind,
        command,
        headline: headline(&path.join("report.md")),
        started_millis: head
            .started_wall_millis
            .or_else(|| head.started.map(|nanos| nanos / 1_000_000))
            .unwrap_or(stamp[0]),
    }
}

/// Returns words as one line; the program is `stillwell` wherever it lies.
fn line_of(words: &[serde_json::Value]) -> String {
    let words = words.iter().skip(1).filter_map(serde_json::Value::as_str);
    let line: Vec<&str> = std::iter::once("stillwell").chain(words).collect();
    line.join(" ")
}

fn read_head(path: &Path) -> Option<Head> {
    // To open a pipe would wait for its writer.
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the heading of a report as Markdown: the verdict, before what was compared.
fn headline(report: &Path) -> Option<Headline> {
    let start = start_of(report).ok()?;
    let line = start.lines().find_map(|line| line.strip_prefix("### "))?;
    let verdict = line.split(" · ").next().unwrap_or(line).replace('`', "");
    let text = verdict.trim_start_matches(|c: char| !c.is_alphanumeric());
    let sign = verdict.trim().chars().next().unwrap_or(' ');
    let (class, sign) = match sign {
        '❌' => ("worse", "▲"),
        '✅' => ("same", "✓"),
        '🟢' => ("better", "▼"),
        '⚠' => ("invalid", "!"),
        '❔' => ("unclear", "?"),
        _ => ("different", "≠"),
    };
    Some(Headline {
        class,
        sign,
        text: text.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests;
