//! Tables, and the numbers that cells and charts show.

use stillwell_plan::goal::Scale;
use stillwell_profile::{FlameNode, ProfileQuantity};
use stillwell_verdict::Change;

use super::{Role, Sign, Text};

/// A table; cells beyond the columns are not shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its columns; without names the table has no head.
    pub columns: Vec<Column>,
    /// Its cells, row by row.
    pub rows: Vec<Vec<Cell>>,
    /// Note for readers of the table.
    pub note: Option<Text>,
    /// Names of columns that a narrow terminal leaves out, in this order, until the table fits.
    pub optional: Vec<String>,
}

impl Table {
    /// Returns a table without a note.
    pub fn new(
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: rows.into_iter().collect(),
            note: None,
            optional: Vec::new(),
        }
    }

    /// Returns the table with columns that a narrow terminal leaves out, the first one first.
    #[must_use]
    pub fn with_optional(self, optional: &[&str]) -> Self {
        let optional = optional.iter().map(|name| (*name).to_owned()).collect();
        Self { optional, ..self }
    }

    /// Returns the table without one column.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let names = self.columns.iter().map(|column| column.name.as_str());
        self.select(&names.filter(|column| *column != name).collect::<Vec<_>>())
    }

    /// Returns the table with these columns only, in this order; unknown names are left out.
    #[must_use]
    pub fn select(&self, names: &[&str]) -> Self {
        let places: Vec<usize> = names
            .iter()
            .filter_map(|name| self.columns.iter().position(|column| column.name == **name))
            .collect();
        let row = |row: &Vec<Cell>| {
            let cells = places.iter().map(|place| row.get(*place).cloned());
            cells.map(Option::unwrap_or_default).collect()
        };
        Self {
            columns: places
                .iter()
                .map(|place| self.columns[*place].clone())
                .collect(),
            rows: self.rows.iter().map(row).collect(),
            note: self.note.clone(),
            optional: self.optional.clone(),
        }
    }

    /// Returns true if the head is shown.
    pub(crate) fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.name.is_empty())
    }
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its name; may be empty.
    pub name: String,
    /// Head for readers in place of the name.
    pub title: Option<String>,
    /// Alignment in graphical renderers; terminals and Markdown align all columns to the left.
    pub alignment: Alignment,
    /// The unit that all its numbers share, where they do.
    pub unit: Option<&'static str>,
}

impl Column {
    /// Returns a column of text.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the column with another head for readers.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self {
            title: Some(title.into()),
            ..self
        }
    }

    /// Returns the head for readers.
    pub fn head(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns a column of numbers.
    pub fn of_numbers(name: impl Into<String>) -> Self {
        Self {
            alignment: Alignment::Right,
            ..Self::named(name)
        }
    }
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Alignment {
    /// To the left, as text.
    #[default]
    Left,
    /// To the right, as numbers.
    Right,
}

/// A cell: its text, and the number behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// For readers.
    pub text: Text,
    /// For programs.
    pub datum: Option<Datum>,
}

impl Cell {
    /// Returns a cell with a number.
    pub fn number(text: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            text: Text::of(Role::Number, text),
            datum: Some(Datum::Number { value, unit }),
        }
    }

    /// Returns a cell with an interval of shares.
    pub fn interval(text: impl Into<Text>, change: Change) -> Self {
        Self {
            text: text.into(),
            datum: Some(Datum::Interval(change.into())),
        }
    }
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            datum: None,
        }
    }
}

/// The number behind a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum {
    /// One number in a base unit.
    Number {
        /// The number.
        value: f64,
        /// Its unit, such as `ns`; empty for a count.
        unit: &'static str,
    },
    /// An estimate with its interval, as shares.
    Interval(Interval),
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Change> for Interval {
    fn from(change: Change) -> Self {
        Self {
            estimate: change.estimate,
            low: change.lower,
            high: change.upper,
        }
    }
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Relative changes with their intervals and tolerances on one axis.
    Intervals(IntervalChart),
    /// Lines over one axis; terminals and Markdown skip them.
    Curve(Curve),
    /// Changes of pairs in the order of their runs; terminals and Markdown skip them.
    Pairs(PairSeries),
    /// Call stacks of one variant or two; terminals and Markdown skip them.
    Flame(FlameChart),
}

/// Call stacks of one variant, or of two in one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameChart {
    /// The caption on a page.
    pub title: String,
    /// Quantity of the amounts.
    pub quantity: ProfileQuantity,
    /// True if the second amount of each node is that of the comparison; else only the first is used.
    pub is_difference: bool,
    /// Maximum number of drawn frames; the widest ones are drawn.
    pub frames_max: usize,
    /// The stacks.
    pub root: FlameNode,
}

/// Relative changes on one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalChart {
    /// The caption on a page.
    pub title: String,
    /// The rows, from top to bottom.
    pub rows: Vec<IntervalRow>,
    /// True for values on an axis from zero; false for changes on both sides of it.
    pub is_from_zero: bool,
}

impl IntervalChart {
    /// Returns a chart of changes with their tolerances.
    #[must_use]
    pub fn of_changes(rows: Vec<IntervalRow>) -> Self {
        Self {
            title: "Changes with their 95 % intervals; the band is the tolerance".to_owned(),
            rows,
            is_from_zero: false,
        }
    }
}

/// One row of a chart of intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    /// Its name.
    pub name: String,
    /// The change in words; terminals have it in a table.
    pub text: String,
    /// Kind of the answer; `None` without a verdict.
    pub sign: Option<Sign>,
    /// The change, as a share; a row without one only widens the axis.
    pub interval: Option<Interval>,
    /// The tolerance on both sides of zero, as a share.
    pub tolerance: f64,
    /// Shares of the baseline, or points.
    pub scale: Scale,
    /// True for the row of a goal that decides.
    pub is_primary: bool,
}

/// Lines over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Scales of the horizontal and the vertical axis.
    pub scales: (AxisScale, AxisScale),
    /// Name and unit of the horizontal axis.
    pub x: (String, &'static str),
    /// Name and unit of the vertical axis.
    pub y: (String, &'static str),
    /// The lines, each with its name and its points.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// Areas around lines.
    pub bands: Vec<Band>,
    /// Shaded ranges of the horizontal axis, each with its name.
    pub shades: Vec<(String, (f64, f64))>,
    /// Single points.
    pub marks: Vec<Mark>,
}

/// A single point of a [`Curve`], with a meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Meaning of the point.
    pub sign: Sign,
    /// Text about the point, which a pointer shows.
    pub text: String,
}

/// An area around a line of a [`Curve`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// Index of the line.
    pub series: usize,
    /// Points with both bounds: `(x, low, high)`.
    pub points: Vec<(f64, f64, f64)>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AxisScale {
    /// Linear, with zero.
    #[default]
    FromZero,
    /// Linear, from the lowest value.
    Linear,
    /// As linear, for numbers of runs or results: no tick between two of them.
    Numbers,
    /// Logarithmic.
    Log,
    /// Logarithmic in 1 / (1 − share), with percentiles as labels.
    Percentiles,
}

/// Changes of pairs in the order of their runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSeries {
    /// Name of the goal.
    pub name: String,
    /// The stages of the experiment, in order.
    pub stages: Vec<PairStage>,
    /// The tolerance on both sides of zero, as a share.
    pub tolerance: f64,
    /// Shares of the baseline, or points.
    pub scale: Scale,
}

/// The pairs of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct PairStage {
    /// Name of the stage.
    pub name: &'static str,
    /// Number of pairs that the answer uses: the first of them.
    pub used: usize,
    /// True for pairs that confirm.
    pub is_fresh: bool,
    /// The change of each pair, as a share.
    pub changes: Vec<f64>,
    /// The mean of all pairs up to each one with its 95 % interval; `None` before there are two.
    pub running: Vec<Option<Interval>>,
}
