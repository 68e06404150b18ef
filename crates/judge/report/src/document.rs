//! A report as a tree of blocks, before it has a form.
//!
//! Each family of reports has one function that makes a [`Document`] of its data; the text of a report is made
//! there, once. A renderer lays any document out in one form: a terminal, Markdown, HTML. [`Format`] is the catalogue
//! of forms. JSON is no renderer: it is a stable serialisation of the data.
//!
//! Text carries roles, such as [`Role::Bad`], and cells carry the numbers that they show, so each renderer
//! chooses its own colours, signs and units. Text from outside passes [`escape`] in the renderer, never before.
//!
//! ```
//! use stillwell_report::document::{Block, Cell, Column, Document, Section, Table, Text};
//! use stillwell_report::{Format, Style};
//!
//! let rows = vec![vec![Cell::from("CPU"), Cell::number("4.10 µs", 4_100.0, "ns")]];
//! let table = Table::new(["goal", "mean"].map(Column::named), rows);
//! let document = Document::new([Block::section(1, "relay", [Block::Table(table)])]);
//! let text = Format::Terminal.renderer().unwrap()(&document, Style::default());
//! assert_eq!(text, "relay\n  goal  mean\n  CPU   4.10 µs\n");
//! ```

pub mod escape;
mod full;
mod html;
mod inline;
mod markdown;
mod table;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::str::FromStr;

pub use self::terminal::forest_lines;
pub use full::{FullReport, NamedChart};
pub use html::{page_policy, page_style};
pub use inline::{Inline, Role, Sign, Sparkline, Text};
pub use table::{
    Alignment, AxisScale, Band, Cell, Chart, Column, Curve, Datum, FlameChart, Interval,
    IntervalChart, IntervalRow, Mark, PairSeries, PairStage, Table,
};

use crate::Style;

/// Declares [`Format`]: the catalogue of forms, each with its name, what it is for, and the renderer of its documents.
macro_rules! catalogue {
    ($($format:ident, $name:literal, $about:literal, $renderer:expr;)+) => {
        /// A form of a report.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Format { $(#[doc = $about] $format),+ }

        impl Format {
            /// All forms.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$format),+];

            /// Returns the name by which the form is requested.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$format => $name),+ }
            }

            /// Returns what the form is for, as a line of help.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$format => $about),+ }
            }

            /// Returns the renderer of documents; `None` where a form serialises the data itself.
            #[must_use]
            pub fn renderer(self) -> Option<fn(&Document, Style) -> String> {
                match self { $(Self::$format => $renderer),+ }
            }
        }
    };
}

catalogue! {
    Terminal, "terminal", "For people at a terminal", Some(terminal::render);
    Markdown, "markdown", "For a comment on a pull request", Some(markdown::render);
    Json, "json", "For programs", None;
    Html, "html", "For a browser: one file with charts, which needs no network", Some(html::render);
}

impl Format {
    /// Returns the document in this form, or `data` where the form serialises the data itself.
    pub(crate) fn render(
        self,
        style: Style,
        document: impl FnOnce() -> Document,
        data: impl FnOnce() -> String,
    ) -> String {
        match self.renderer() {
            Some(_) if self == Self::Html => html::page(&document(), &data()),
            Some(render) => render(&document(), style),
            None => escape::json(&data()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.name() == text)
            .ok_or_else(|| FormatError {
                format: text.to_owned(),
            })
    }
}

/// A form that is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{format}` is not a report format: write {}", names())]
pub struct FormatError {
    /// The typed value.
    pub format: String,
}

/// Returns the names of all forms: `terminal, markdown or json`.
fn names() -> String {
    let names = Format::ALL.map(Format::name);
    match names.as_slice() {
        [remaining @ .., last] => format!("{} or {last}", remaining.join(", ")),
        [] => String::new(),
    }
}

/// A report before it has a form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// Limits of a page that is posted as a comment.
    pub comment: Option<Comment>,
    /// True if a terminal wraps paragraphs and remarks at its width.
    pub is_wrapped: bool,
}

/// Limits of a page that is posted as a comment on a pull request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Comment {
    /// A hidden first line, by which a bot finds its comment again.
    pub marker: &'static str,
    /// Maximum length of the page, in bytes.
    pub length_max: usize,
    /// The part of it that is kept free for the end of the page.
    pub end_max: usize,
    /// Maximum length of one table, in bytes.
    pub table_max: usize,
    /// Maximum length of one text, in characters.
    pub text_max: usize,
    /// The word for what rows and foldable sections show, for one and for many.
    pub noun: (&'static str, &'static str),
}

/// One block of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Blocks under a heading, or set apart without one.
    Section(Section),
    /// One paragraph.
    Paragraph(Text),
    /// Items, one line each.
    List(Vec<Item>),
    /// Names and values.
    KeyValue(Vec<(Text, Text)>),
    /// A table.
    Table(Table),
    /// A chart; renderers without graphics draw what fits in characters, or skip it.
    Chart(Chart),
    /// A chart in a file of its own, with its title and the address of the file.
    Image(String, String),
    /// A remark with its severity.
    Note(Severity, Text),
    /// Text in a fixed layout, such as that of another tool.
    Code(Language, String),
    /// Blocks for one kind of medium.
    On(Medium, Vec<Self>),
    /// The origin of a page: command and version. Terminals leave it out, because their readers typed the command.
    Colophon(Text),
}

impl Block {
    /// Returns a section of `level` with a title.
    pub fn section(
        level: u8,
        title: impl Into<Text>,
        blocks: impl IntoIterator<Item = Self>,
    ) -> Self {
        Self::Section(Section::titled(level, title, blocks))
    }

    /// Returns blocks that are set apart from those before, without a heading.
    pub fn group(blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::Section(Section {
            blocks: blocks.into_iter().collect(),
            ..Section::default()
        })
    }

    /// Returns a paragraph.
    pub fn paragraph(text: impl Into<Text>) -> Self {
        Self::Paragraph(text.into())
    }

    /// Returns a list with one item for each text.
    pub fn list<T: Into<Text>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Item::new).collect())
    }

    /// Returns blocks that only readers at a terminal see.
    pub fn on_screen(blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::On(Medium::Screen, blocks.into_iter().collect())
    }

    /// Returns blocks that only readers of pages see.
    pub fn on_page(blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::On(Medium::Page, blocks.into_iter().collect())
    }

    /// Returns true if it shows nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Section(section) => {
                section.title.is_none() && section.blocks.iter().all(Self::is_empty)
            }
            Self::List(items) => items.is_empty(),
            Self::KeyValue(rows) => rows.is_empty(),
            Self::On(_, blocks) => blocks.iter().all(Self::is_empty),
            Self::Chart(Chart::Intervals(chart)) => {
                chart.rows.iter().all(|row| row.interval.is_none())
            }
            _ => false,
        }
    }
}

/// Blocks that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// 1 for the title of the document, 2 for a section of it, and so on.
    pub level: u8,
    /// Its heading; `None` for blocks that are only set apart.
    pub title: Option<Text>,
    /// One line about its content.
    pub summary: Option<Text>,
    /// Folding on a page.
    pub fold: Fold,
    /// True if a browser shows the content of [`Fold::Optional`] only when the reader opens it.
    pub is_closed: bool,
    /// Content of the section.
    pub blocks: Vec<Block>,
}

impl Section {
    /// Returns a section with a title.
    pub fn titled(
        level: u8,
        title: impl Into<Text>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Self {
        Self {
            level,
            title: Some(title.into()),
            blocks: blocks.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Folding of a section on a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fold {
    /// Not at all.
    #[default]
    Open,
    /// Under this line.
    Folded(Text),
    /// Under this line; a page that grows too long leaves it out and says so.
    Optional(Text),
}

/// One item of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Its text, one line.
    pub text: Text,
    /// Suggested action: the purpose of a command, and the command.
    pub action: Option<(&'static str, String)>,
}

impl Item {
    /// Returns an item without an action.
    pub fn new(text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            action: None,
        }
    }
}

/// Gravity of a remark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// Good to know.
    Note,
    /// The numbers are unreliable.
    Warning,
    /// Something went wrong.
    Failure,
}

impl Severity {
    /// Returns the word before the remark.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failure => "failed",
        }
    }
}

/// The language of a text in a fixed layout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    /// Plain text.
    Text,
    /// Markdown, escaped already.
    Markdown,
}

/// The kind of medium that a block is meant for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Medium {
    /// A terminal: read at once, by who typed the command.
    Screen,
    /// A page: read later, by others.
    Page,
    /// A page in a browser, which shows charts.
    Browser,
    /// A terminal, or a page without charts.
    Plain,
}

impl Document {
    /// Returns a document of these blocks.
    pub fn new(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self {
            blocks: blocks.into_iter().collect(),
            ..Self::default()
        }
    }
}
