//! Documents as GitHub's Markdown: for pages, and for comments of a limited length.

use super::{
    Block, Comment, Document, Fold, Inline, Item, Language, Medium, Role, Section, Sign, Table,
    Text, escape,
};
use crate::Style;

/// Longest address of a link in a comment, in bytes.
const LINK_MAX: usize = 2000;

/// Returns the document as Markdown.
pub(super) fn render(document: &Document, _style: Style) -> String {
    let mut page = Page::new(document.comment, String::new());
    if let Some(comment) = document.comment {
        page.text = format!("{}\n", comment.marker);
    }
    page.blocks(&document.blocks);
    page.write_left_out();
    page.text
}

/// A page being written.
#[derive(Debug)]
struct Page {
    comment: Option<Comment>,
    text: String,
    /// True if the next block is the first, which has no empty line before it.
    is_first: bool,
    /// True if the last block was a list, which the next list continues.
    in_list: bool,
    /// Sections that were left out and not counted in the text yet.
    left_out: u32,
}

impl Page {
    const fn new(comment: Option<Comment>, text: String) -> Self {
        Self {
            comment,
            text,
            is_first: true,
            in_list: false,
            left_out: 0,
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            _ if block.is_empty() => {}
            Block::Section(section) => self.section(section),
            Block::Paragraph(text) => self.set_apart(&format!("{}\n", self.line(text))),
            Block::List(items) => {
                for item in items {
                    self.item(item);
                }
            }
            Block::KeyValue(rows) => {
                for (name, value) in rows {
                    let text = name.clone().and(": ").and(value.clone());
                    self.item(&Item::new(text));
                }
            }
            Block::Note(severity, text) => {
                let label = format!("{}: ", severity.label());
                self.item(&Item::new(Text::from(label).and(text.clone())));
            }
            Block::Table(table) => self.table(table),
            Block::Chart(_) | Block::On(Medium::Screen | Medium::Browser, _) => {}
            Block::Image(title, address) => {
                let title = escape::markdown(title, None, true);
                let address = escape::target(address);
                self.set_apart(&format!("![{title}](<{address}>)\n"));
            }
            Block::Code(Language::Markdown, text) => self.set_apart(text),
            Block::Code(Language::Text, text) => {
                let fence = "`".repeat(3.max(longest_quote(text) + 1));
                let text = escape::lines(text.trim_end());
                self.set_apart(&format!("{fence}text\n{text}\n{fence}\n"));
            }
            Block::On(Medium::Page | Medium::Plain, blocks) => self.blocks(blocks),
            Block::Colophon(text) => {
                let text = self.inline(text, Place::Heading);
                self.set_apart(&format!("<sub>{text}</sub>\n"));
            }
        }
    }

    /// Writes a block behind an empty line.
    fn set_apart(&mut self, text: &str) {
        self.write_left_out();
        if !std::mem::take(&mut self.is_first) {
            self.text.push('\n');
        }
        self.in_list = false;
        self.text.push_str(text);
    }

    fn item(&mut self, item: &Item) {
        let mut text = format!("* {}\n", self.line(&item.text));
        if let Some((purpose, command)) = &item.action {
            let purpose = escape::markdown(purpose, Some(':'), true);
            let command = escape::markdown_code(command, false);
            text.push_str(&format!("  {purpose}: {command}\n"));
        }
        if self.in_list {
            self.text.push_str(&text);
        } else {
            self.set_apart(&text);
        }
        self.in_list = true;
    }

    fn section(&mut self, section: &Section) {
        match &section.fold {
            Fold::Open => {
                self.in_list = false;
                if let Some(title) = &section.title {
                    let level =
                        usize::from(section.level) + if self.comment.is_some() { 2 } else { 1 };
                    let title = self.inline(title, Place::Heading);
                    self.set_apart(&format!("{} {title}\n", "#".repeat(level)));
                }
                self.summary_and_blocks(section);
                self.in_list = false;
            }
            Fold::Folded(line) => {
                let text = self.folded(line, section);
                self.set_apart(&text);
            }
            Fold::Optional(line) => {
                let text = self.folded(line, section);
                let limits = self.comment;
                if limits.is_some_and(|entry| {
                    self.text.len() + text.len() + entry.end_max > entry.length_max
                }) {
                    self.left_out += 1;
                } else {
                    let left_out = std::mem::take(&mut self.left_out);
                    self.set_apart(&text);
                    self.left_out = left_out;
                }
            }
        }
    }

    fn summary_and_blocks(&mut self, section: &Section) {
        if let Some(summary) = &section.summary {
            self.block(&Block::Paragraph(summary.clone()));
        }
        self.blocks(&section.blocks);
    }

    fn folded(&self, line: &Text, section: &Section) -> String {
        let line = self.inline(line, Place::Html);
        let head = format!("<details><summary>{line}</summary>\n");
        let mut inner = Self::new(self.comment, head);
        inner.is_first = false;
        inner.summary_and_blocks(section);
        format!("{}\n</details>\n", inner.text)
    }

    /// Says how many sections were left out since it was last said.
    fn write_left_out(&mut self) {
        let count = std::mem::take(&mut self.left_out);
        if let Some(comment) = self.comment.filter(|_| count > 0) {
            let (singular, many) = comment.noun;
            let count = stillwell_units::human::counted(count, singular, many);
            self.set_apart(&format!(
                "Details of {count} are left out, because a comment has to stay short; the results \
                 folder has them.\n"
            ));
        }
    }

    fn table(&mut self, table: &Table) {
        let columns = table.columns.len();
        let heads = table.columns.iter();
        let heads = heads.map(|column| self.inline(&Text::from(column.head()), Place::Cell));
        let mut text = row(heads);
        text.push_str(&format!("|{}\n", " --- |".repeat(columns)));
        let max = self.comment.map_or(usize::MAX, |entry| entry.table_max);
        for (index, cells) in table.rows.iter().enumerate() {
            let line = row(cells
                .iter()
                .map(|cell| self.inline(&cell.text, Place::Cell)));
            if text.len() + line.len() > max {
                let more = table.rows.len() - index;
                let noun = self.comment.map_or("rows", |entry| entry.noun.1);
                text.push_str(&format!(
                    "\n{more} more {noun} are left out of this table.\n"
                ));
                break;
            }
            text.push_str(&line);
        }
        self.set_apart(&text);
        if let Some(note) = &table.note {
            self.block(&Block::Paragraph(note.clone()));
        }
    }

    fn line(&self, text: &Text) -> String {
        self.inline(text, Place::Line)
    }

    fn inline(&self, text: &Text, place: Place) -> String {
        let max = self.comment.map_or(usize::MAX, |entry| entry.text_max);
        let mut line = String::new();
        for (at, part) in text.0.iter().enumerate() {
            let next = text.0.get(at + 1).and_then(first_character);
            let is_start = place == Place::Line && at == 0;
            let plain = |text: &str| {
                let text = shortened(text, max);
                match place {
                    Place::Html => escape::html(&text),
                    _ => escape::markdown(&text, next, is_start),
                }
            };
            line.push_str(&match part {
                Inline::Run(Role::Code, text) if place == Place::Html => {
                    format!("<code>{}</code>", plain(text))
                }
                Inline::Run(Role::Code, text) => {
                    escape::markdown_code(&shortened(text, max), place == Place::Cell)
                }
                Inline::Run(Role::Strong, text)
                    if matches!(place, Place::Line | Place::Cell) && !text.trim().is_empty() =>
                {
                    format!("**{}**", plain(text))
                }
                Inline::Run(Role::Bad, text) => format!("❌ {}", plain(text)),
                Inline::Run(_, text) => plain(text),
                Inline::Answer(sign, word) => format!("{} {}", symbol(*sign), plain(word)),
                // A part of an address leads elsewhere.
                Inline::Link(text, target) if self.comment.is_some() && target.len() > LINK_MAX => {
                    plain(text)
                }
                Inline::Link(text, target) => {
                    format!("[{}](<{}>)", plain(text), escape::target(target))
                }
                Inline::Sparkline(values) => plain(&values.bars()),
            });
        }
        line
    }
}

/// Position of a text in the document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// At the start of a line.
    Line,
    /// Within a line that looks alike throughout, such as a heading.
    Heading,
    /// In a cell of a table.
    Cell,
    /// Within a tag, where Markdown means nothing.
    Html,
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn first_character(part: &Inline) -> Option<char> {
    match part {
        Inline::Run(_, text) | Inline::Link(text, _) => text.chars().next(),
        Inline::Answer(..) | Inline::Sparkline(_) => None,
    }
}

fn longest_quote(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Returns the first `max` characters of a text, and that there are more.
fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns a sign that repeats what the word behind it says.
const fn symbol(sign: Sign) -> &'static str {
    match sign {
        Sign::Worse => "❌",
        Sign::Better => "🟢",
        Sign::Same => "✅",
        Sign::Different => "🔶",
        Sign::Unclear => "❔",
        Sign::Invalid => "⚠️",
    }
}
