//! `matrix`: one file, an experiment for each combination of its parameters.
//!
//! Every value of the rest of the file may name a parameter as
//! `{matrix.NAME}`; it is filled in before the file is read, so a rate, a
//! size or a flag is checked as if it had been typed there.

use stillwell_text::{Entry, Key, Node, Reader, Span, code};

use crate::element::Shape;

mod fill;
mod list;
mod name;

pub(crate) use fill::{check_uses, fill};
pub(crate) use name::names_of;

/// More cells than this are a slip, or the work of weeks.
const CELLS_MAX: usize = 1_000;

/// Parameters and their values; and the two lists of cells that are not among
/// the combinations, or are besides.
pub(crate) const SHAPE: Shape = Shape::Map(&Shape::List(&Shape::Any(&[
    Shape::Text,
    Shape::Number,
    Shape::Boolean,
    Shape::Map(&Shape::Any(&[Shape::Text, Shape::Number, Shape::Boolean])),
])));

/// The parameters of a file, and its cells.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) parameters: Vec<Key>,
    /// At least one, at most [`CELLS_MAX`]; the last parameter changes first.
    pub(crate) cells: Vec<Cell>,
}

/// A value for each parameter. Without any, the cell of a file without matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) settings: Vec<Setting>,
}

/// One parameter of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) parameter: String,
    /// As typed.
    pub(crate) text: String,
    /// Place of the value.
    pub(crate) span: Span,
}

impl Cell {
    /// Parameters and values, as typed, in the order of the file.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let settings = self.settings.iter();
        settings
            .map(|setting| (setting.parameter.clone(), setting.text.clone()))
            .collect()
    }

    fn text_of(&self, parameter: &str) -> Option<&str> {
        let mut settings = self.settings.iter();
        let setting = settings.find(|setting| setting.parameter == parameter)?;
        Some(&setting.text)
    }

    /// Returns true if all of `settings` hold here.
    fn has(&self, settings: &[Setting]) -> bool {
        settings
            .iter()
            .all(|setting| self.text_of(&setting.parameter) == Some(&setting.text))
    }
}

/// One parameter and its values.
struct Axis {
    key: Key,
    values: Vec<(String, Span)>,
}

/// Reads the matrix at `entry`; nothing if it has a mistake.
pub(crate) fn read_matrix(reader: &Reader, entry: &Entry) -> Option<Matrix> {
    let Some(entries) = entry.value.entries() else {
        reader.wrong_shape(&entry.value, "a map of parameters and their values");
        return None;
    };
    let is_list = |entry: &&Entry| matches!(entry.key.text.as_str(), "exclude" | "include");
    let axes: Vec<Option<Axis>> = entries
        .iter()
        .filter(|entry| !is_list(entry))
        .map(|entry| read_axis(reader, entry))
        .collect();
    let axes = axes.into_iter().collect::<Option<Vec<Axis>>>();
    let listed = |key| {
        let node = entry.value.entry(key);
        node.map_or(Some(Vec::new()), |node| list::read(reader, node))
    };
    // All mistakes are reported before the first of them ends it.
    let (included, excluded) = (listed("include"), listed("exclude"));
    let (axes, included, excluded) = (axes?, included?, excluded?);
    let parameters = list::parameters(reader, entry, &axes, &included)?;
    check_size(reader, entry.key.span, &axes, included.len())?;
    let mut cells = combinations(&axes);
    list::exclude(reader, &axes, &mut cells, &excluded)?;
    list::include(reader, &parameters, &mut cells, included)?;
    if cells.is_empty() {
        let message = "this matrix has no combinations";
        let error = reader.error(code::MATRIX, entry.key.span, message);
        reader.report(error.label("`exclude` removes all of them; remove an item of it"));
        return None;
    }
    Some(Matrix { parameters, cells })
}

fn read_axis(reader: &Reader, entry: &Entry) -> Option<Axis> {
    check_name(reader, &entry.key)?;
    let items = reader.list(&entry.value)?;
    if items.is_empty() {
        let message = format!("`{}` has no values", entry.key.text);
        let error = reader.error(code::MATRIX, entry.key.span, message);
        reader.report(error.label("expected at least one value"));
        return None;
    }
    let mut values: Vec<(String, Span)> = Vec::new();
    let mut is_right = true;
    for item in items {
        let Some(text) = read_value(reader, item) else {
            is_right = false;
            continue;
        };
        if let Some((_, first)) = values.iter().find(|(earlier, _)| earlier == text) {
            let message = format!("`{}` is `{text}` twice", entry.key.text);
            reader.report(
                reader
                    .error(code::SAME_NAME, item.span, message)
                    .label("the second")
                    .context(reader.place(*first), "the first"),
            );
            is_right = false;
        }
        values.push((text.to_owned(), item.span));
    }
    let key = entry.key.clone();
    is_right.then_some(Axis { key, values })
}

/// The value of a parameter: anything that fits on its place.
fn read_value<'n>(reader: &Reader, node: &'n Node) -> Option<&'n str> {
    let text = reader.text(node)?;
    if text.contains(fill::OPENING) {
        let error = reader.error(code::MATRIX, node.span, "a parameter within a parameter");
        reader.report(error.label("write the value itself"));
        return None;
    }
    Some(text)
}

/// Names become parts of folders.
fn check_name(reader: &Reader, key: &Key) -> Option<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let starts_plain = key.text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_plain && key.text.chars().all(is_plain) && key.text.len() <= 64 {
        return Some(());
    }
    let message = format!("`{}` cannot be the name of a parameter", key.text);
    let error = reader.error(code::MATRIX, key.span, message);
    reader.report(error.label("a letter, then up to 63 letters, digits, `-` and `_`"));
    None
}

fn check_size(reader: &Reader, span: Span, axes: &[Axis], included: usize) -> Option<()> {
    let lengths = axes.iter().map(|axis| axis.values.len());
    let product = lengths.fold(1_usize, usize::saturating_mul);
    let count = product.saturating_add(included);
    if count <= CELLS_MAX {
        return Some(());
    }
    let error = reader.error(
        code::OUT_OF_RANGE,
        span,
        format!("this matrix has {count} combinations"),
    );
    reader.report(error.label(format!("at most {CELLS_MAX}, before any is excluded")));
    None
}

/// Every value with every other; none without parameters.
fn combinations(axes: &[Axis]) -> Vec<Cell> {
    if axes.is_empty() {
        return Vec::new();
    }
    let mut cells = vec![Cell::default()];
    for axis in axes {
        let more = cells.iter().flat_map(|cell| {
            axis.values.iter().map(|(text, span)| {
                let mut cell = cell.clone();
                cell.settings.push(Setting {
                    parameter: axis.key.text.clone(),
                    text: text.clone(),
                    span: *span,
                });
                cell
            })
        });
        cells = more.collect();
    }
    cells
}
