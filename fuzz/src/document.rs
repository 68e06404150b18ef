//! Reports of any text and shape.

use stillwell_report::document::escape::is_steering;
use stillwell_report::document::{
    Block, Cell, Chart, Column, Curve, Document, Interval, IntervalChart, IntervalRow, Language,
    Medium, Severity, Sign, Table, Text,
};
use stillwell_report::{Format, Style};

/// Deepest nesting: reports have three levels.
const DEPTH_MAX: usize = 8;

/// A document is rendered in every form, and steers neither a terminal nor a browser. Each line is a block: its first
/// byte says of what kind, the rest is its text.
pub fn document(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let document = Document::new(blocks(&mut lines, 0));
    for format in Format::ALL {
        let Some(render) = format.renderer() else {
            continue;
        };
        let shown = render(&document, Style::default());
        let steering = shown.chars().find(|c| is_steering(*c) && *c != '\n');
        assert!(steering.is_none(), "{steering:?} in {format}: {shown}");
        if format == Format::Html {
            assert_eq!(shown.matches("<script").count(), 1, "{shown}");
        }
    }
}

fn blocks<'t>(lines: &mut impl Iterator<Item = &'t str>, depth: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        let mut characters = line.chars();
        let kind = characters.next().unwrap_or(' ');
        let text = characters.as_str();
        if kind == '}' {
            break;
        }
        blocks.push(match kind {
            '{' if depth < DEPTH_MAX => {
                let level = u8::try_from(depth % 3 + 1).unwrap_or(1);
                Block::section(level, text, self::blocks(lines, depth + 1))
            }
            '[' if depth < DEPTH_MAX => {
                let medium = match text.len() % 4 {
                    0 => Medium::Screen,
                    1 => Medium::Page,
                    2 => Medium::Browser,
                    _ => Medium::Plain,
                };
                Block::On(medium, self::blocks(lines, depth + 1))
            }
            '-' => Block::list([text, "own"]),
            '=' => Block::KeyValue(vec![(text.into(), Text::code(text))]),
            '|' => table(text),
            '!' => Block::Note(Severity::Warning, text.into()),
            '`' => Block::Code(Language::Text, text.to_owned()),
            '~' => Block::Chart(curve(text)),
            '%' => Block::Chart(intervals(text)),
            '.' => Block::Colophon(text.into()),
            _ => Block::Paragraph(Text::strong(text).and(" ").and(Text::bad(text))),
        });
    }
    blocks
}

fn table(text: &str) -> Block {
    let cells: Vec<&str> = text.split('|').collect();
    let columns = cells.iter().map(|name| Column::named(*name));
    let row: Vec<Cell> = cells.iter().map(|cell| Cell::from(*cell)).collect();
    Block::Table(Table::new(columns, [row.clone(), row]))
}

/// A line through the bytes of `text`.
fn curve(text: &str) -> Chart {
    let heights = text.bytes().map(f64::from);
    let points = (0_u32..).map(f64::from).zip(heights);
    Chart::Curve(Curve {
        x: (text.to_owned(), "s"),
        y: (text.to_owned(), "ns"),
        series: vec![(text.to_owned(), points.collect())],
        ..Curve::default()
    })
}

fn intervals(text: &str) -> Chart {
    let estimate = text.bytes().next().map_or(f64::NAN, f64::from) / 100.0;
    Chart::Intervals(IntervalChart {
        title: text.to_owned(),
        rows: vec![IntervalRow {
            name: text.to_owned(),
            text: text.to_owned(),
            sign: Some(Sign::Unclear),
            interval: Some(Interval {
                estimate,
                low: estimate - 0.1,
                high: estimate + 0.1,
            }),
            tolerance: 0.05,
            scale: stillwell_plan::goal::Scale::Ratio,
            is_primary: true,
        }],
        is_from_zero: false,
    })
}
