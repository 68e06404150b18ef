//! Documents for readers at a terminal.
//!
//! Sections are set apart by an empty line and their blocks are indented; within a section blocks follow each
//! other closely. Columns are as wide as their widest cell.

mod forest;

pub use forest::forest_lines;

use super::{
    Block, Chart, Document, Inline, IntervalRow, Item, Medium, Role, Section, Severity, Sign,
    Table, Text, escape,
};
use crate::Style;

/// Columns by which each level of sections is indented.
const INDENT: usize = 2;

/// Space between the columns of a table, and where it would be too wide for the terminal.
const GAP: usize = 2;
const GAP_MIN: usize = 1;

/// Terminals as wide, and files, show all columns of a table.
const NARROW_MAX: usize = 100;

/// Narrower paragraphs are not broken further.
const WRAPPED_MIN: usize = 40;
/// Wider paragraphs are hard to read.
const WRAPPED_MAX: usize = 100;

/// Returns the document as text for a terminal.
pub(super) fn render(document: &Document, style: Style) -> String {
    let mut screen = Screen {
        text: String::new(),
        style,
        indent: 0,
        is_wrapped: document.is_wrapped || usize::from(style.width) < NARROW_MAX,
    };
    screen.blocks(&document.blocks);
    screen.text
}

/// Returns each row of cells as text in columns; its last cell may be broken.
fn columns(rows: &[Vec<Text>], indent: usize, gap: usize, style: Style) -> Vec<String> {
    let widths = column_widths(rows);
    let screen = style.line_max().unwrap_or(usize::MAX);
    let row_text = |row: &Vec<Text>| {
        let mut line = " ".repeat(indent);
        let mut before = indent;
        for (at, (cell, column)) in row.iter().zip(&widths).enumerate() {
            let is_last = at + 1 == row.len();
            match cell.0.as_slice() {
                [Inline::Run(Role::Plain, run)]
                    if is_last && before + self::width(cell) > screen =>
                {
                    let lines = broken(&escape::terminal(run), screen.saturating_sub(before));
                    let next = format!("\n{}", " ".repeat(before));
                    line.push_str(&lines.join(&next));
                }
                _ => {
                    line.push_str(&paint(cell, style));
                    line.push_str(&" ".repeat(column - self::width(cell) + gap));
                }
            }
            before += column + gap;
        }
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(row_text).collect()
}

/// Returns a text in lines of at most `max` columns, or of one word.
fn broken(text: &str, max: usize) -> Vec<String> {
    let max = max.max(WRAPPED_MIN);
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A screen being written.
#[derive(Debug)]
struct Screen {
    text: String,
    style: Style,
    indent: usize,
    is_wrapped: bool,
}

impl Screen {
    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            _ if block.is_empty() => {}
            Block::Section(section) => self.section(section),
            Block::Paragraph(text) => self.prose(None, text),
            Block::List(items) => self.list(items),
            Block::KeyValue(rows) => {
                let rows = rows.iter().map(|(name, value)| [name, value]);
                let rows: Vec<Vec<Text>> = rows.map(|row| row.map(Clone::clone).to_vec()).collect();
                self.columns(&rows, GAP);
            }
            Block::Table(table) => self.table(table),
            Block::Chart(Chart::Intervals(chart)) => {
                let width = usize::from(self.style.width);
                // An unreliable interval would look like any other.
                let rows: Vec<IntervalRow> = chart
                    .rows
                    .iter()
                    .filter(|row| row.interval.is_some() && row.sign != Some(Sign::Invalid))
                    .cloned()
                    .collect();
                if !rows.is_empty() {
                    self.plot(&forest::rows(&rows, width));
                }
            }
            Block::Chart(_)
            | Block::Image(..)
            | Block::Colophon(_)
            | Block::On(Medium::Page | Medium::Browser, _) => {}
            Block::Note(severity, text) => self.prose(Some(*severity), text),
            Block::Code(_, code) => {
                for line in code.lines() {
                    self.text.push_str(&escape::terminal(line));
                    self.text.push('\n');
                }
            }
            Block::On(Medium::Screen | Medium::Plain, blocks) => self.blocks(blocks),
        }
    }

    fn section(&mut self, section: &Section) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let before = self.indent;
        if let Some(title) = &section.title {
            let indent = INDENT * usize::from(section.level.saturating_sub(2));
            let mut title = title.clone();
            if section.level == 2 {
                title = title.with_default(Role::Strong);
            }
            if let Some(summary) = &section.summary {
                title = title.and(": ").and(summary.clone());
            }
            self.line(indent, &title);
            self.indent = indent + INDENT;
        }
        self.blocks(&section.blocks);
        self.indent = before;
    }

    fn list(&mut self, items: &[Item]) {
        for item in items {
            self.line(self.indent, &item.text);
            if let Some((purpose, command)) = &item.action {
                let indent = self.indent + INDENT;
                self.line(indent, &Text::from(format!("{purpose}:")));
                self.line(indent, &Text::code(command));
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let width = usize::from(self.style.width);
        let mut rows = cells(table);
        if width < NARROW_MAX {
            let mut narrowed = table.clone();
            for name in &table.optional {
                if self.indent + total_width(&rows, GAP) <= width {
                    break;
                }
                narrowed = narrowed.without(name);
                rows = cells(&narrowed);
            }
        }
        let is_wide = |rows: &[Vec<Text>], gap| self.indent + least_width(rows, gap) > width;
        if width >= NARROW_MAX || !table.has_head() || !is_wide(&rows, GAP) {
            self.columns(&rows, GAP);
        } else if !is_wide(&rows, GAP_MIN) {
            self.columns(&rows, GAP_MIN);
        } else {
            self.named_rows(&rows);
        }
        if let Some(note) = &table.note {
            self.line(self.indent, note);
        }
    }

    fn columns(&mut self, rows: &[Vec<Text>], gap: usize) {
        let lines = columns(rows, self.indent, gap, self.style);
        self.text.extend(lines);
    }

    /// Writes a plot. Where a line beside its name would be too wide for the terminal, which would break it, the line is
    /// below its name.
    fn plot(&mut self, rows: &[Vec<Text>]) {
        let columns_max = self.style.line_max().unwrap_or(usize::MAX);
        if self.indent + total_width(rows, GAP) > columns_max {
            self.named_rows(rows);
        } else {
            self.columns(rows, GAP);
        }
        self.line(self.indent, &Text::dim(forest::LEGEND));
    }

    /// Writes a table too wide for the terminal: the first cell of each row on a line of its own, the others below it.
    fn named_rows(&mut self, rows: &[Vec<Text>]) {
        let split = rows.iter().filter_map(|row| row.split_first());
        let (names, lines): (Vec<&Text>, Vec<Vec<Text>>) =
            split.map(|(name, line)| (name, line.to_vec())).unzip();
        let indent = self.indent + INDENT;
        let is_wide = indent + least_width(&lines, GAP) > usize::from(self.style.width);
        let gap = if is_wide { GAP_MIN } else { GAP };
        let lines = columns(&lines, indent, gap, self.style);
        for (name, line) in names.into_iter().zip(lines) {
            // The scale of a plot has no name.
            if width(name) > 0 {
                self.line(self.indent, name);
            }
            self.text.push_str(&line);
        }
    }

    /// Writes a paragraph or a remark, broken where the terminal ends if the document is.
    fn prose(&mut self, severity: Option<Severity>, text: &Text) {
        let label = severity.map(|severity| {
            let role = match severity {
                Severity::Note => Role::Plain,
                Severity::Warning | Severity::Failure => Role::Bad,
            };
            Text::of(role, format!("{}:", severity.label()))
        });
        let text = match (&label, text.0.as_slice()) {
            (_, [Inline::Run(Role::Plain, run)]) if self.is_wrapped => {
                return self.wrapped(label.as_ref(), run);
            }
            (Some(label), _) => &label.clone().and(" ").and(text.clone()),
            (None, _) => text,
        };
        self.line(self.indent, text);
    }

    /// Writes words behind a label; later lines are indented once more where there is one.
    fn wrapped(&mut self, label: Option<&Text>, text: &str) {
        // Some terminals go on to the next line when the last column is written.
        let max = usize::from(self.style.width).saturating_sub(1);
        let max = max.clamp(WRAPPED_MIN, WRAPPED_MAX);
        let mut line = " ".repeat(self.indent);
        let mut column = self.indent;
        let mut is_first = true;
        if let Some(label) = label {
            line.push_str(&paint(label, self.style));
            column += width(label);
            is_first = false;
        }
        let indent = self.indent + if label.is_some() { INDENT } else { 0 };
        for word in escape::terminal(text).split(' ') {
            let length = word.chars().count();
            if !is_first && column + 1 + length > max {
                line.push('\n');
                line.push_str(&" ".repeat(indent));
                column = indent;
            } else if !is_first {
                line.push(' ');
                column += 1;
            }
            line.push_str(word);
            column += length;
            is_first = false;
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn line(&mut self, indent: usize, text: &Text) {
        let max = usize::from(self.style.width).saturating_sub(1);
        let is_command =
            |part: &Inline| matches!(part, Inline::Link(..) | Inline::Run(Role::Code, _));
        let is_screen = self.style.line_max().is_some();
        if is_screen && indent + width(text) > max && !text.0.iter().any(is_command) {
            let max = max.max(WRAPPED_MIN);
            self.text.push_str(&flowed(text, indent, max, self.style));
            return;
        }
        let indent = " ".repeat(indent);
        // One run is painted with its indentation.
        let line = match text.0.as_slice() {
            [Inline::Run(role, run)] => self
                .style
                .role(*role, &format!("{indent}{}", escape::terminal(run))),
            _ => format!("{indent}{}", paint(text, self.style)),
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

/// Returns a text in lines of at most `max` columns, or of one word; later lines are indented once more.
fn flowed(text: &Text, indent: usize, max: usize, style: Style) -> String {
    let mut text_lines = " ".repeat(indent);
    let mut line: Vec<(Role, String)> = Vec::new();
    let mut column = indent;
    for word in words(text) {
        let length: usize = word.iter().map(|(_, part)| part.chars().count()).sum();
        if !line.is_empty() && column + 1 + length > max {
            text_lines.push_str(&painted(&line, style));
            line.clear();
            column = indent + INDENT;
            text_lines.push_str(&format!("\n{}", " ".repeat(column)));
        } else if let Some((_, last)) = line.last_mut() {
            last.push(' ');
            column += 1;
        }
        for (role, part) in word {
            match line.last_mut() {
                Some((known, last)) if *known == role => last.push_str(&part),
                _ => line.push((role, part)),
            }
        }
        column += length;
    }
    text_lines.push_str(&painted(&line, style));
    text_lines.push('\n');
    text_lines
}

fn painted(line: &[(Role, String)], style: Style) -> String {
    let parts = line.iter().map(|(role, part)| style.role(*role, part));
    parts.collect()
}

/// Returns the words of a text, each with its parts and their roles.
fn words(text: &Text) -> Vec<Vec<(Role, String)>> {
    let mut words: Vec<Vec<(Role, String)>> = vec![Vec::new()];
    for part in &text.0 {
        let (role, text) = shown(part);
        for (index, word) in text.split(' ').enumerate() {
            if index > 0 {
                words.push(Vec::new());
            }
            if let Some(last) = words.last_mut().filter(|_| !word.is_empty()) {
                last.push((role, word.to_owned()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the cells of a table by rows, the head first.
fn cells(table: &Table) -> Vec<Vec<Text>> {
    let mut rows = Vec::new();
    if table.has_head() {
        let heads = table.columns.iter().map(super::Column::head);
        rows.push(heads.map(Text::from).collect());
    }
    let cells = table.rows.iter();
    rows.extend(cells.map(|row| row.iter().map(|cell| cell.text.clone()).collect()));
    rows
}

/// Returns the columns that rows of cells take, with the space between.
fn total_width(rows: &[Vec<Text>], gap: usize) -> usize {
    let widths = column_widths(rows);
    widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
}

/// Returns the columns that rows of cells take if plain text in their last cells is broken.
fn least_width(rows: &[Vec<Text>], gap: usize) -> usize {
    let mut widths = column_widths(rows);
    let Some(last) = widths.len().checked_sub(1) else {
        return 0;
    };
    let least = |cell: &Text| match cell.0.as_slice() {
        [Inline::Run(Role::Plain, _)] => width(cell).min(WRAPPED_MIN),
        _ => width(cell),
    };
    let cells = rows.iter().filter_map(|row| row.get(last));
    widths[last] = cells.map(least).max().unwrap_or(0);
    widths.iter().sum::<usize>() + gap * last
}

/// Returns the width of the widest cell of each column.
fn column_widths(rows: &[Vec<Text>]) -> Vec<usize> {
    let width = |row: &Vec<Text>, at: usize| row.get(at).map_or(0, width);
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..count)
        .map(|at| rows.iter().map(|row| width(row, at)).max().unwrap_or(0))
        .collect()
}

/// Returns the columns that a text takes.
fn width(text: &Text) -> usize {
    text.0
        .iter()
        .map(|part| shown(part).1.chars().count())
        .sum()
}

fn paint(text: &Text, style: Style) -> String {
    let parts = text.0.iter().map(|part| {
        let (role, text) = shown(part);
        style.role(role, &text)
    });
    parts.collect()
}

/// Returns the role and the characters of a part.
fn shown(part: &Inline) -> (Role, String) {
    match part {
        Inline::Run(role, text) => (*role, escape::terminal(text)),
        Inline::Answer(sign, word) => (
            sign.role(),
            format!("{} {}", symbol(*sign), escape::terminal(word)),
        ),
        Inline::Link(text, target) => (
            Role::Plain,
            format!("{} ({})", escape::terminal(text), escape::terminal(target)),
        ),
        Inline::Sparkline(line) => (Role::Plain, line.bars()),
    }
}

/// Returns a character that repeats what the word behind it says.
const fn symbol(sign: Sign) -> char {
    match sign {
        Sign::Worse => '✗',
        Sign::Better => '✓',
        Sign::Same => '=',
        Sign::Different => '~',
        Sign::Unclear => '?',
        Sign::Invalid => '!',
    }
}
