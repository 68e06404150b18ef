//! A report of any family: its document, and its data.

use super::{Block, Chart, Document, Format, Medium, Section, escape, html, markdown};
use crate::{Style, svg};

/// A report: a document for readers, and JSON for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FullReport {
    pub(crate) document: Document,
    pub(crate) data: String,
    /// Data that a page embeds, if it is less than `data`.
    pub(crate) page_data: Option<String>,
}

/// A chart of a report as a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedChart {
    /// Name of the file without its extension, unique in the report: letters, digits and `-`.
    pub name: String,
    /// One line about the content.
    pub title: String,
    /// The file.
    pub svg: String,
}

impl FullReport {
    /// Returns the report in this form; `style` is for terminals.
    #[must_use]
    pub fn render(&self, format: Format, style: Style) -> String {
        match format.renderer() {
            Some(_) if format == Format::Html => html::page(&self.document, self.embedded()),
            Some(render) => render(&self.document, style),
            None => escape::json(&self.data),
        }
    }

    fn embedded(&self) -> &str {
        self.page_data.as_ref().unwrap_or(&self.data)
    }

    /// Returns the report as a page with `header`, which is HTML, above it.
    #[must_use]
    pub fn html_below(&self, header: &str) -> String {
        html::page_below(header, &self.document, self.embedded())
    }

    /// Returns all charts, in the order of the page.
    #[must_use]
    pub fn charts(&self) -> Vec<NamedChart> {
        let mut names = ChartNames::default();
        names.of_blocks(&self.document.blocks, "");
        names.charts
    }

    /// Returns the report as Markdown that shows the charts, which are files in `folder`.
    #[must_use]
    pub fn markdown_with_charts(&self, folder: &str) -> String {
        let mut names = ChartNames {
            folder: Some(folder.trim_end_matches('/').to_owned()),
            ..ChartNames::default()
        };
        let blocks = names.of_blocks(&self.document.blocks, "");
        let document = Document {
            blocks,
            ..self.document.clone()
        };
        markdown::render(&document, Style::default())
    }
}

/// Names of charts, given in the order of the page.
#[derive(Debug, Default)]
struct ChartNames {
    charts: Vec<NamedChart>,
    /// Address of the folder of the files.
    folder: Option<String>,
}

impl ChartNames {
    /// Returns the blocks of a page with charts, each in its own file; `section` is the name of the section.
    fn of_blocks(&mut self, blocks: &[Block], section: &str) -> Vec<Block> {
        let blocks = blocks.iter().filter(|block| !block.is_empty());
        blocks
            .flat_map(|block| self.of_block(block, section))
            .collect()
    }

    fn of_block(&mut self, block: &Block, section: &str) -> Vec<Block> {
        match block {
            Block::On(Medium::Screen | Medium::Plain, _) => Vec::new(),
            Block::On(Medium::Page | Medium::Browser, blocks) => self.of_blocks(blocks, section),
            Block::Section(part) => {
                let title = part.title.as_ref().filter(|_| part.level == 2);
                let title = title.map(|title| slug(&html::plain(title)));
                let blocks = self.of_blocks(&part.blocks, title.as_deref().unwrap_or(section));
                vec![Block::Section(Section {
                    blocks,
                    ..part.clone()
                })]
            }
            Block::Chart(chart) => self.of_chart(chart, section).into_iter().collect(),
            other => vec![other.clone()],
        }
    }

    fn of_chart(&mut self, chart: &Chart, section: &str) -> Option<Block> {
        let drawing = svg::drawn(chart)?;
        let base = match chart {
            Chart::Intervals(_) => "changes".to_owned(),
            Chart::Pairs(pairs) => format!("{}-pairs", slug(&pairs.name)),
            Chart::Curve(curve) => slug(&svg::curve_title(curve)),
            Chart::Flame(flame) => format!("flame-{}", slug(flame.quantity.name())),
        };
        let base = match section {
            "" => base,
            section => format!("{section}-{base}"),
        };
        let is_free = |name: &str| self.charts.iter().all(|chart| chart.name != name);
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let name = names.find(|name| is_free(name))?;
        let image = self.folder.as_ref().map(|folder| {
            let address = format!("{folder}/{name}.svg");
            Block::Image(drawing.title.clone(), address)
        });
        self.charts.push(NamedChart {
            name,
            title: drawing.title.clone(),
            svg: drawing.standalone(),
        });
        image
    }
}

/// Returns a name in letters, digits and single `-`.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::{Curve, IntervalChart};
    use super::*;

    fn curve() -> Block {
        Block::Chart(Chart::Curve(Curve {
            x: ("time".to_owned(), "s"),
            y: ("latency (p99)".to_owned(), "ns"),
            series: vec![("a".to_owned(), vec![(0.0, 1.0), (1.0, 2.0)])],
            ..Curve::default()
        }))
    }

    fn report() -> FullReport {
        let part = Block::section(2, "Case: one", [curve(), curve()]);
        let empty = Block::Chart(Chart::Intervals(IntervalChart::default()));
        let blocks = [
            Block::On(Medium::Browser, vec![part]),
            Block::On(Medium::Plain, vec![Block::paragraph("no charts here")]),
            empty,
        ];
        FullReport {
            document: Document::new(blocks),
            data: "{}\n".to_owned(),
            page_data: None,
        }
    }

    #[test]
    fn each_chart_has_its_own_name() {
        let charts = report().charts();
        let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "case-one-latency-p99-over-time",
                "case-one-latency-p99-over-time-2"
            ]
        );
        assert!(charts[0].svg.starts_with("<svg xmlns="));
    }

    #[test]
    fn markdown_refers_to_every_chart_and_leaves_out_their_replacement() {
        let text = report().markdown_with_charts("docs/charts/");
        for chart in report().charts() {
            let address = format!("](<docs/charts/{}.svg>)", chart.name);
            assert!(text.contains(&address), "{text}");
        }
        assert!(!text.contains("no charts here"), "{text}");
        let plain = report().render(Format::Markdown, Style::default());
        assert!(
            plain.contains("no charts here") && !plain.contains(".svg"),
            "{plain}"
        );
    }
}
