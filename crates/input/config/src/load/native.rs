//! Native files: opened once, read once for each cell of their matrix.

use std::path::PathBuf;
use std::sync::Arc;

use stillwell_text::{Diagnostics, Node, Place, Reader, Source, Span, Value};

use crate::discover::CaseFile;
use crate::files::Files;
use crate::matrix::{Cell, Matrix, check_uses, fill, read_matrix};
use crate::spec::{ExperimentSpec, ReadContext, read_experiment};

/// A native file that is YAML.
#[derive(Debug)]
pub(super) struct NativeFile {
    source: Arc<Source>,
    folder: PathBuf,
    root: Node,
    matrix: Option<Matrix>,
}

impl NativeFile {
    /// The place for a message about the whole file.
    pub(super) fn place(&self) -> Place {
        Place::new(&self.source, self.root.span)
    }

    /// Parses `file`; the reason why it was not read and mistakes in its matrix go to
    /// `found`.
    pub(super) fn parse(file: &CaseFile, diagnostics: &mut Diagnostics) -> Option<Self> {
        let source = match &file.source {
            Ok(source) => Arc::clone(source),
            Err(error) => {
                diagnostics.push(error.as_ref().clone());
                return None;
            }
        };
        let reader = Reader::new(Arc::clone(&source));
        let root = reader.parse();
        let matrix = root.as_ref().map(|root| open_matrix(&reader, root));
        diagnostics.append(reader.finish());
        Some(Self {
            source,
            folder: file.path.parent().unwrap_or(&file.path).to_path_buf(),
            root: root?,
            matrix: matrix.flatten(),
        })
    }

    /// The cells of its matrix, if it has one without mistakes.
    pub(super) fn cells(&self) -> Option<&[Cell]> {
        self.matrix.as_ref().map(|matrix| matrix.cells.as_slice())
    }

    /// Returns true if `key` at its top has a value.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let value = self.root.entry(key).map(|node| &node.value);
        value.is_some_and(|value| !matches!(value, Value::Null))
    }

    /// Returns its content in `cell`, and the place of missing keys.
    pub(super) fn read(
        &self,
        files: &dyn Files,
        cell: &Cell,
        diagnostics: &mut Diagnostics,
    ) -> Option<(ExperimentSpec, Place)> {
        let filled = fill(&self.root, cell);
        let reader = Reader::new(Arc::clone(&self.source));
        let context = ReadContext {
            reader: &reader,
            files,
            folder: &self.folder,
            target_url: target_url(&filled.root),
        };
        let spec = read_experiment(&context, &filled.root);
        let place = reader.place(spec.as_ref().map_or_else(Span::default, |spec| spec.span));
        diagnostics.append(filled.explain(reader));
        Some((spec?, place))
    }
}

/// Returns the URL of the target that `root` describes, valid or invalid.
fn target_url(root: &Node) -> Option<&str> {
    match &root.entry("target")?.entry("url")?.value {
        Value::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

fn open_matrix(reader: &Reader, root: &Node) -> Option<Matrix> {
    let mut entries = root.entries().unwrap_or_default().iter();
    let Some(entry) = entries.find(|entry| entry.key.text == "matrix") else {
        check_uses(reader, root, None);
        return None;
    };
    let matrix = read_matrix(reader, entry)?;
    check_uses(reader, root, Some(&matrix));
    Some(matrix)
}
