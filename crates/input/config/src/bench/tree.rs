//! Trees of bench folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stillwell_text::{Diagnostic, Diagnostics, Keys, Node, Reader, Value, code};

use crate::discover::Lookup;
use crate::files::{EntryKind, Files, read_source, resolve};

mod step;

pub use step::{Await, BenchStep};

/// Folders within folders that are looked through.
const DEPTH_MAX: usize = 16;

/// File name endings; JSON is YAML too.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// All benches below a folder.
#[derive(Clone, Debug, Default)]
pub struct BenchTree {
    /// In the order of their paths.
    pub folders: Vec<BenchFolder>,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// One bench with the files beside it.
#[derive(Clone, Debug)]
pub struct BenchFolder {
    /// Its path below the tree's root; of the root itself its own name.
    pub name: String,
    /// Its path.
    pub folder: PathBuf,
    /// Arguments of `stillwell bench`.
    pub file: PathBuf,
    /// The tags of all folders down to it, and its own name.
    pub tags: Vec<String>,
    /// Variables of the environment.
    pub environment: BTreeMap<String, String>,
    /// Programs that are started before it and end after it.
    pub before: Vec<BenchStep>,
    /// Programs that are run after it, one after another.
    pub after: Vec<BenchStep>,
    /// Conditions on its result.
    pub asserts: BenchAsserts,
}

/// Conditions on a bench.
#[derive(Clone, Debug, Default)]
pub struct BenchAsserts {
    /// Name in reports.
    pub name: Option<String>,
    /// Its exit code; 0 unless something else is said.
    pub status: u8,
    /// About texts.
    pub texts: Vec<TextAssert>,
    /// About numbers of its report.
    pub figures: Vec<FigureAssert>,
}

/// Condition on a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextAssert {
    /// `stdout`, `stderr`, or a file.
    pub source: String,
    /// All of these are in it.
    pub contains: Vec<String>,
    /// None of these is.
    pub lacks: Vec<String>,
    /// It is what is in this file, ends of lines aside.
    pub equals_file: Option<PathBuf>,
    /// It is what is in this file, byte by byte.
    pub equals_file_binary: Option<PathBuf>,
}

/// Condition on a number.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureAssert {
    /// Its place in the JSON report, names between dots.
    pub name: String,
    /// It is no less.
    pub min: Option<f64>,
    /// It is no more.
    pub max: Option<f64>,
}

/// Returns true if a bench with `tags` is selected. A tag in `includes` selects it, a tag in
/// `excludes` does not. Without either, it is selected if `includes` is empty.
#[must_use]
pub fn is_wanted(tags: &[String], includes: &[String], excludes: &[String]) -> bool {
    let has = |wanted: &[String]| wanted.iter().any(|tag| tags.contains(tag));
    has(includes) || (includes.is_empty() && !has(excludes))
}

/// [`Loader::bench_tree`](crate::Loader::bench_tree) for an absolute `root`.
pub(crate) fn load_bench_tree(lookup: Lookup<'_>, root: &Path) -> Result<BenchTree, Diagnostics> {
    let mut walk = Walk {
        lookup,
        files: lookup.files,
        root,
        folders: Vec::new(),
        diagnostics: Diagnostics::new(),
    };
    walk.folder(root, &[], 0);
    let Walk {
        folders,
        mut diagnostics,
        ..
    } = walk;
    if folders.is_empty() && !diagnostics.has_errors() {
        let message = format!("there is no bench at or below {}", root.display());
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        diagnostics.push(error.help("a bench is a folder with a file `bench.yaml`"));
    }
    if diagnostics.has_errors() {
        return Err(diagnostics.sorted());
    }
    Ok(BenchTree {
        folders,
        warnings: diagnostics,
    })
}

struct Walk<'f> {
    lookup: Lookup<'f>,
    files: &'f dyn Files,
    root: &'f Path,
    folders: Vec<BenchFolder>,
    diagnostics: Diagnostics,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, above: &[String], depth: usize) {
        let mut tags = above.to_vec();
        let read = |reader: &Reader, node: &Node| Some(reader.texts(node));
        tags.extend(self.read(folder, "tags", read).unwrap_or_default());
        let entries = match self.files.list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let message = format!("cannot read the folder {}: {error}", folder.display());
                self.diagnostics
                    .push(Diagnostic::error(code::UNREADABLE, message));
                return;
            }
        };
        let file = self.file(folder, "bench");
        if let Some(file) = file.or_else(|| self.foreign(&entries)) {
            let mut unique: Vec<String> = Vec::new();
            for tag in tags.iter().cloned().chain(folder_name(folder)) {
                if !unique.contains(&tag) {
                    unique.push(tag);
                }
            }
            self.bench(folder, file, unique);
        }
        if depth < DEPTH_MAX {
            for entry in entries {
                let is_hidden = folder_name(&entry).is_none_or(|name| name.starts_with('.'));
                if !is_hidden && self.files.kind(&entry) == Some(EntryKind::Folder) {
                    self.folder(&entry, &tags, depth + 1);
                }
            }
        }
    }

    fn bench(&mut self, folder: &Path, file: PathBuf, tags: Vec<String>) {
        let below = folder.strip_prefix(self.root).unwrap_or(folder);
        let name = below.to_string_lossy().into_owned();
        let default_name = || folder_name(folder).unwrap_or_else(|| "bench".to_owned());
        let environment =
            |reader: &Reader, node: &Node| Some(reader.text_map(node).into_iter().collect());
        let steps = |reader: &Reader, node: &Node| Some(step::read_steps(reader, folder, node));
        let asserts = |reader: &Reader, node: &Node| read_asserts(reader, folder, node);
        let bench = BenchFolder {
            name: if name.is_empty() {
                default_name()
            } else {
                name
            },
            folder: folder.to_path_buf(),
            file,
            tags,
            environment: self.read(folder, "env", environment).unwrap_or_default(),
            before: self.read(folder, "before", steps).unwrap_or_default(),
            after: self.read(folder, "after", steps).unwrap_or_default(),
            asserts: self.read(folder, "assert", asserts).unwrap_or_default(),
        };
        self.folders.push(bench);
    }

    /// The bench of another format among `entries`; of several, the first.
    fn foreign(&mut self, entries: &[PathBuf]) -> Option<PathBuf> {
        let is_bench = |path: &&PathBuf| self.lookup.format_of_bench(path, None).is_some();
        let mut files = entries.iter().filter(is_bench);
        let (first, second) = (files.next()?.clone(), files.next());
        if let Some(second) = second {
            let message = format!(
                "{} is ignored: the bench of its folder is {}",
                second.display(),
                first.display()
            );
            let warning = Diagnostic::warning(code::NOT_BUILT, message);
            self.diagnostics
                .push(warning.help("move it to a folder of its own"));
        }
        Some(first)
    }

    /// The file of `folder` that is called `stem`.
    fn file(&self, folder: &Path, stem: &str) -> Option<PathBuf> {
        let names = ENDINGS.iter().map(|ending| format!("{stem}.{ending}"));
        let mut paths = names.map(|name| folder.join(name));
        paths.find(|path| self.files.kind(path) == Some(EntryKind::File))
    }

    /// Content of that file, if it exists.
    fn read<T>(
        &mut self,
        folder: &Path,
        stem: &str,
        read: impl Fn(&Reader, &Node) -> Option<T>,
    ) -> Option<T> {
        let path = self.file(folder, stem)?;
        let source = match read_source(self.files, &path) {
            Ok(source) => source,
            Err(error) => {
                self.diagnostics.push(*error);
                return None;
            }
        };
        let reader = Reader::new(source);
        let keys = reader.parse().and_then(|root| match root.value {
            Value::Null => None,
            _ => read(&reader, &root),
        });
        self.diagnostics.append(reader.finish());
        keys
    }
}

fn folder_name(folder: &Path) -> Option<String> {
    let name = folder.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// One text, or a list of them.
fn texts(reader: &Reader, node: &Node) -> Vec<String> {
    match &node.value {
        Value::List(_) => reader.texts(node),
        _ => reader.text(node).map(str::to_owned).into_iter().collect(),
    }
}

fn read_asserts(reader: &Reader, folder: &Path, node: &Node) -> Option<BenchAsserts> {
    let keys = Keys::new("assert", &["status", "name", "asserts", "figures"]);
    let map = reader.map(node, &keys)?;
    let status = map.take("status");
    let status = status.and_then(|node| reader.whole(node, 0, u8::MAX));
    let name = map.take("name").and_then(|node| reader.text(node));
    let of_texts = map.take("asserts").and_then(|node| reader.list(node));
    let of_texts = of_texts.unwrap_or_default().iter();
    let figures = map.take("figures");
    Some(BenchAsserts {
        name: name.map(str::to_owned),
        status: status.unwrap_or(0),
        texts: of_texts
            .filter_map(|node| read_text_assert(reader, folder, node))
            .collect(),
        figures: figures.map_or_else(Vec::new, |node| read_figures(reader, node)),
    })
}

fn read_text_assert(reader: &Reader, folder: &Path, node: &Node) -> Option<TextAssert> {
    let names = [
        "source",
        "contains",
        "doesnt_contain",
        "equals_file",
        "equals_file_binary",
    ];
    let map = reader.map(node, &Keys::new("assert", &names))?;
    let list = |key| {
        let node = map.take(key);
        node.map_or_else(Vec::new, |node| texts(reader, node))
    };
    let file = |key| {
        let text = map.take(key).and_then(|node| reader.text(node))?;
        Some(resolve(folder, text))
    };
    let source = map.required("source").and_then(|node| reader.text(node));
    let assert = TextAssert {
        source: source.unwrap_or_default().to_owned(),
        contains: list("contains"),
        lacks: list("doesnt_contain"),
        equals_file: file("equals_file"),
        equals_file_binary: file("equals_file_binary"),
    };
    source.map(|_| assert)
}

fn read_figures(reader: &Reader, node: &Node) -> Vec<FigureAssert> {
    let Some(entries) = node.entries() else {
        reader.wrong_shape(node, "a map of figures and their bounds");
        return Vec::new();
    };
    let number = |node: &Node| {
        let text = reader.text(node)?;
        let number: Option<f64> = text.replace('_', "").parse().ok();
        if number.is_none() {
            let message = format!("`{text}` is not a number");
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
        }
        number
    };
    let figures = entries.iter().filter_map(|entry| {
        let name = entry.key.text.clone();
        if let Value::Scalar { .. } = &entry.value.value {
            let exactly = number(&entry.value);
            let (min, max) = (exactly, exactly);
            return Some(FigureAssert { name, min, max });
        }
        let map = reader.map(&entry.value, &Keys::new("bound", &["min", "max"]))?;
        Some(FigureAssert {
            name,
            min: map.take("min").and_then(number),
            max: map.take("max").and_then(number),
        })
    });
    figures.collect()
}
