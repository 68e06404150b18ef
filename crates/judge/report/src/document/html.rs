//! Documents as one HTML page that opens from disk: no network, light and dark, printable. Its one script only
//! adds a cursor to charts and enlarges parts of them; everything can be read without it.

mod inline;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    Alignment, Block, Cell, Column, Datum, Document, Fold, Item, Medium, Section, Severity, Table,
    Text, escape,
};
use crate::{Style, svg};
pub(super) use inline::plain;
use inline::{clean, line};

/// Style sheet of the page.
const STYLE: &str = include_str!("html/page.css");

/// Returns the script of the page without comments and indentation: a cursor over all charts of an experiment, a range of
/// time or a frame that is shown alone, and larger charts.
fn script() -> String {
    let lines = include_str!("html/page.js").lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the policy that lets a page load nothing and run its own script alone.
#[must_use]
pub fn page_policy() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(script().as_bytes()));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'")
}

/// Returns the style sheet of pages and of charts in them.
#[must_use]
pub fn page_style() -> String {
    format!("{}{STYLE}", svg::STYLE)
}

/// Experiments from which on the page has a list of contents.
const CONTENTS_MIN: usize = 3;

/// Returns the document as a page without data.
pub(super) fn render(document: &Document, _style: Style) -> String {
    page(document, "")
}

/// Returns the document as a page that embeds `data`, which is JSON or empty.
pub(super) fn page(document: &Document, data: &str) -> String {
    page_below("", document, data)
}

/// Returns the same page with `header`, which is HTML, above it.
pub(super) fn page_below(header: &str, document: &Document, data: &str) -> String {
    let top = top(&document.blocks);
    let sections = || {
        top.iter().filter_map(|block| match block {
            Block::Section(section) => Some(section),
            _ => None,
        })
    };
    let title = sections()
        .find_map(|section| section.title.as_ref())
        .map_or_else(|| "Stillwell report".to_owned(), plain);
    let contents: Vec<String> = sections()
        .filter(|section| section.level == 2)
        .filter_map(|section| section.title.as_ref().map(plain))
        .collect();
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(page_policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="stillwell";
                title { (title) }
                style { (PreEscaped(svg::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                (PreEscaped(header))
                main {
                    @if let Some((first, further)) = top.split_first() {
                        (block(first))
                        @if contents.len() >= CONTENTS_MIN { (links(&contents)) }
                        @for next in further { (block(next)) }
                    }
                }
                @if !data.is_empty() {
                    script type="application/json" id="stillwell-data" { (PreEscaped(embedded(data))) }
                }
                script { (PreEscaped(script())) }
            }
        }
    };
    markup.into_string()
}

/// Returns JSON without indentation that ends no script element: `<` occurs in its strings only. Fractions keep nine
/// significant digits.
fn embedded(json: &str) -> String {
    let compact = serde_json::from_str(json).map(|value: Value| shorter(value).to_string());
    escape::json(&compact.unwrap_or_default()).replace('<', "\\u003c")
}

/// Returns the value with nine significant digits in each number that is not whole.
fn shorter(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = number.as_f64().map(|number| format!("{number:.8e}"));
            let rounded = text.and_then(|text| text.parse::<f64>().ok());
            rounded.map_or(Value::Number(number), Value::from)
        }
        Value::Array(values) => values.into_iter().map(shorter).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            fields.map(|(key, value)| (key, shorter(value))).collect()
        }
        other => other,
    }
}

/// Returns the outermost blocks that pages show.
fn top(blocks: &[Block]) -> Vec<&Block> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::On(Medium::Page | Medium::Browser, blocks) => all.extend(top(blocks)),
            Block::On(Medium::Screen | Medium::Plain, _) => {}
            _ => all.push(block),
        }
    }
    all
}

/// Returns links to sections.
fn links(names: &[String]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul { @for name in names { li { a href=(format!("#{}", anchor(name))) { (name) } } } }
        }
    }
}

/// Returns the name of a section as an identifier.
fn anchor(name: &str) -> String {
    let character = |c: char| if c.is_alphanumeric() { c } else { '-' };
    name.chars().map(character).collect()
}

fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (self::block(block)) } }
}

fn block(block: &Block) -> Markup {
    match block {
        _ if block.is_empty() => html! {},
        Block::Section(section) => self::section(section),
        Block::Paragraph(text) => html! { p { (line(text)) } },
        Block::List(items) => html! { ul { @for item in items { (self::item(item)) } } },
        Block::KeyValue(rows) => html! {
            dl { @for (name, value) in rows { dt { (line(name)) } dd { (line(value)) } } }
        },
        Block::Table(table) => self::table(table),
        Block::Chart(chart) => html! {
            @if let Some(drawing) = svg::drawn(chart) { (drawing.figure()) }
        },
        Block::Image(..) => html! {},
        Block::Note(severity, text) => html! {
            p class=(severity.class()) { strong { (severity.label()) ":" } " " (line(text)) }
        },
        Block::Code(_, text) => html! { pre tabindex="0" { (code(text)) } },
        Block::On(Medium::Screen | Medium::Plain, _) => html! {},
        Block::On(Medium::Page | Medium::Browser, blocks) => self::blocks(blocks),
        Block::Colophon(text) => html! { footer { (line(text)) } },
    }
}

/// Returns the lines of a text in a fixed layout.
fn code(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}

impl Severity {
    /// Returns the class of a remark.
    const fn class(self) -> &'static str {
        match self {
            Self::Note => "remark note",
            Self::Warning => "remark warning",
            Self::Failure => "remark failure",
        }
    }
}

fn item(item: &Item) -> Markup {
    html! {
        li {
            (line(&item.text))
            @if let Some((purpose, command)) = &item.action {
                " " span class="dim" { (purpose) ": " } code { (clean(command)) }
            }
        }
    }
}

fn section(section: &Section) -> Markup {
    let content = html! {
        @if let Some(summary) = &section.summary { p class="summary" { (line(summary)) } }
        (blocks(&section.blocks))
    };
    let title = section.title.as_ref();
    let id = title.map(|title| anchor(&plain(title)));
    match &section.fold {
        Fold::Open => html! {
            section id=[id] {
                @if let Some(title) = title { (heading(section.level, title)) }
                (content)
            }
        },
        Fold::Folded(summary) => html! {
            details id=[id] { summary { (line(summary)) } (content) }
        },
        Fold::Optional(summary) => html! {
            details class="part" id=[id] open[!section.is_closed] { summary { h2 { (line(summary)) } } (content) }
        },
    }
}

fn heading(level: u8, title: &Text) -> Markup {
    match level {
        0 | 1 => html! { h1 { (line(title)) } },
        2 => html! { h2 { (line(title)) } },
        _ => html! { h3 { (line(title)) } },
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label="Table" {
            table {
                @if table.has_head() {
                    thead { tr {
                        @for column in &table.columns {
                            @match column.head() {
                                "" => td {},
                                head => th scope="col" { (clean(head)) },
                            }
                        }
                    } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                td class=[class(table.columns.get(index), cell)] { (line(&cell.text)) }
                            }
                            // A row may end early; its line does not.
                            @for _ in row.len()..table.columns.len() { td {} }
                        }
                    }
                }
            }
        }
        @if let Some(note) = &table.note { p class="dim" { (line(note)) } }
    }
}

/// Returns true for cells whose digits are aligned.
fn is_number(column: Option<&Column>, datum: Option<Datum>) -> bool {
    datum.is_some() || column.is_some_and(|column| column.alignment == Alignment::Right)
}

/// Returns the classes of a cell; short text stays on one line.
fn class(column: Option<&Column>, cell: &Cell) -> Option<&'static str> {
    const SHORT: usize = 32;
    let is_short = plain(&cell.text).chars().count() <= SHORT;
    match (is_number(column, cell.datum), is_short) {
        (true, _) => Some("number"),
        (false, true) => Some("short"),
        (false, false) => None,
    }
}
