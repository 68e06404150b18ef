use proptest::prelude::*;

use super::*;

/// Returns a document that has `text` in every place that takes text from outside.
pub(crate) fn everywhere(text: &str) -> Document {
    let rows = vec![vec![Cell::from(text), Cell::from(Text::code(text))]];
    let item = Item {
        text: text.into(),
        action: Some(("do", text.to_owned())),
    };
    let interval = IntervalRow {
        name: text.to_owned(),
        text: text.to_owned(),
        sign: None,
        interval: Some(Interval {
            estimate: 0.1,
            low: 0.0,
            high: 0.2,
        }),
        tolerance: 0.05,
        scale: stillwell_plan::goal::Scale::Ratio,
        is_primary: true,
    };
    let blocks = [
        Block::paragraph(text),
        Block::Paragraph(Text::strong("own").and(" ").and(text).and(Text::bad(text))),
        Block::List(vec![item]),
        Block::KeyValue(vec![(text.into(), text.into())]),
        Block::Table(Table::new([text, "own"].map(Column::named), rows)),
        Block::Chart(Chart::Intervals(IntervalChart {
            title: text.to_owned(),
            rows: vec![interval],
            is_from_zero: false,
        })),
        Block::Image(text.to_owned(), "charts/a.svg".to_owned()),
        Block::Note(Severity::Warning, text.into()),
        Block::Paragraph(Text(vec![Inline::Link(text.to_owned(), text.to_owned())])),
        Block::Code(Language::Text, text.to_owned()),
        Block::Colophon(text.into()),
    ];
    let folded = Section {
        summary: Some(text.into()),
        fold: Fold::Folded(text.into()),
        ..Section::titled(2, text, [])
    };
    Document::new([Block::section(1, text, blocks), Block::Section(folded)])
}

/// Returns the structure of a page outside of code: what each line begins with, its cells and its tags.
fn structure(page: &str) -> Vec<(String, usize, usize)> {
    let mut fence = None;
    let mut structure = Vec::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        let start: String = line.chars().take_while(|c| "#*|<>`".contains(*c)).collect();
        if start.starts_with("```") && fence.is_none() {
            fence = Some(start.clone());
        } else if fence.as_deref() == Some(line) {
            fence = None;
        } else if fence.is_some() {
            continue;
        }
        let mut first = line.chars();
        let is_sign = first.next().is_some_and(|c| "+-=".contains(c));
        let is_number = first.next().is_some_and(|c| c.is_ascii_digit());
        assert!(!is_sign || is_number, "a list, a rule or a heading: {line}");
        let unescaped = line.replace("\\\\", "").replace("\\|", "");
        // A table and an action hold code, in which nothing is a tag.
        let has_code = start == "|" || line.starts_with("  do:");
        let tags = if has_code {
            0
        } else {
            line.matches('<').count()
        };
        let start = if start.starts_with('`') {
            String::new()
        } else {
            start
        };
        let cells = if start == "|" {
            unescaped.matches('|').count()
        } else {
            0
        };
        structure.push((start, cells, tags));
    }
    structure
}

proptest! {
    /// For all texts: no control character reaches the terminal, and no line is added.
    #[test]
    fn no_text_steers_a_terminal(text in any::<String>()) {
        let document = everywhere(&text.replace('\n', " "));
        let shown = Format::Terminal.renderer().unwrap()(&document, Style::default());
        prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        let plain = everywhere("plain");
        let plain = Format::Terminal.renderer().unwrap()(&plain, Style::default());
        let lines = if text.is_empty() { plain.lines().count() - 1 } else { plain.lines().count() };
        prop_assert_eq!(shown.lines().count(), lines);
    }

    /// For all texts: a page has the same blocks, cells and tags as with plain text.
    #[test]
    fn no_text_makes_a_structure_of_markdown(text in "[ a1|`<>/*_#=~+.)(:!&@\\[\\]\\\\\r\t-]{1,16}x") {
        let page = |text: &str| Format::Markdown.renderer().unwrap()(&everywhere(text), Style::default());
        prop_assert_eq!(structure(&page(&text)), structure(&page("plain")), "{}", page(&text));
    }

    /// For all texts: no tag, entity or end of an attribute is left in HTML.
    #[test]
    fn no_text_makes_a_tag_of_html(text in any::<String>()) {
        let escaped = escape::html(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
        prop_assert!(!escaped.contains(char::is_control), "{escaped}");
    }
}

#[test]
fn markdown_starts_no_block_and_no_link() {
    for (text, escaped) in [
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("-3.1 %", "-3.1 %"),
        ("1. a", "1\\. a"),
        ("1.5 s", "1.5 s"),
        ("> a", "&gt; a"),
        ("\t\t a", "a"),
        ("[x] a", "\\[x] a"),
        ("a [b](c) [d]: e", "a [b\\](c) [d\\]: e"),
        ("+4.9 % [+4.5, +5.4]", "+4.9 % [+4.5, +5.4]"),
        ("@all <b> & |", "&#64;all &lt;b> &amp; \\|"),
    ] {
        assert_eq!(escape::markdown(text, None, true), escaped);
    }
    assert_eq!(escape::markdown_code("a ``b``", true), "``` a ``b`` ```");
    let code = escape::markdown_code("a|b", true);
    assert_eq!(code, "<code>a\\|b</code>");
}

#[test]
fn long_pages_name_what_they_leave_out() {
    let comment = Comment {
        marker: "<!-- m -->",
        length_max: 2_000,
        end_max: 100,
        table_max: 200,
        text_max: 20,
        noun: ("thing", "things"),
    };
    let row = vec![Cell::from("x".repeat(50))];
    let table = Table::new([Column::named("name")], vec![row; 20]);
    let folded = |place: u32| {
        let line = format!("thing {place}");
        Block::Section(Section {
            fold: Fold::Optional(line.as_str().into()),
            ..Section::titled(2, line, [Block::paragraph("y".repeat(100))])
        })
    };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend((0..40).map(folded));
    blocks.push(Block::paragraph("end"));
    let document = Document {
        comment: Some(comment),
        ..Document::new(blocks)
    };
    let page = Format::Markdown.renderer().unwrap()(&document, Style::default());
    assert!(page.len() < comment.length_max, "{page}");
    assert!(page.starts_with("<!-- m -->\n| name |\n"), "{page}");
    assert!(
        page.contains("more things are left out of this table"),
        "{page}"
    );
    assert!(page.contains("Details of "), "{page}");
    assert!(page.ends_with("\n\nend\n"), "{page}");
}

#[test]
fn lines_of_a_plot_are_whole_and_aligned_with_their_scale_on_a_terminal_of_any_width() {
    let row = |name: &str| IntervalRow {
        name: name.to_owned(),
        text: String::new(),
        sign: None,
        interval: Some(Interval {
            estimate: 0.05,
            low: 0.03,
            high: 0.08,
        }),
        tolerance: 0.02,
        scale: stillwell_plan::goal::Scale::Ratio,
        is_primary: true,
    };
    let long = "an experiment with a long name: latency p99.9 of GET /orders";
    for names in [["CPU", "memory"], [long, "memory"]] {
        let chart = IntervalChart::of_changes(names.map(row).to_vec());
        let chart = Block::Chart(Chart::Intervals(chart));
        let document = Document::new([Block::section(2, "title", [chart])]);
        for width in [40, 50, 80, 120] {
            let style = Style {
                width,
                ..Style::default()
            };
            let text = terminal::render(&document, style);
            let scale = text.lines().find(|line| line.contains('%')).unwrap();
            let zero = scale.find(" 0 ").map(|at| at + 1);
            assert!(zero.is_some(), "{width}: {text}");
            let is_plot = |line: &&str| line.contains('[') && !line.contains("zero");
            let plots: Vec<&str> = text.lines().filter(is_plot).collect();
            assert_eq!(plots.len(), names.len(), "{width}: {text}");
            for line in plots {
                assert_eq!(line.find('|'), zero, "{width}: {text}");
                assert!(line.len() <= usize::from(width), "{width}: {text}");
            }
        }
    }
}

#[test]
fn the_address_of_an_image_may_have_spaces_and_parentheses() {
    let image = |address: &str| {
        let image = Block::Image("a chart".to_owned(), address.to_owned());
        Format::Markdown.renderer().unwrap()(&Document::new([image]), Style::default())
    };
    for (address, expected) in [
        ("charts/a.svg", "![a chart](<charts/a.svg>)\n"),
        ("my charts (1)/a.svg", "![a chart](<my charts (1)/a.svg>)\n"),
        ("a>b\n/a.svg", "![a chart](<ab/a.svg>)\n"),
    ] {
        assert_eq!(image(address), expected);
    }
}

#[test]
fn texts_break_at_the_width_of_a_narrow_terminal_and_commands_do_not() {
    let long = "word ".repeat(30);
    let command = format!("stillwell run {}", "x".repeat(90));
    let document = Document::new([Block::section(
        2,
        Text::answer(Sign::Worse, "an answer").and(format!(": {long}")),
        [
            Block::list([Text::bad(long.clone()), Text::code(command.clone())]),
            Block::Note(Severity::Note, Text::from(long)),
        ],
    )]);
    for width in [50, 80] {
        let style = Style {
            width,
            ..Style::default()
        };
        let text = terminal::render(&document, style);
        let command = format!("  {command}");
        for line in text.lines().filter(|line| *line != command) {
            assert!(line.chars().count() < usize::from(width), "{line}");
        }
        assert!(text.contains(&command), "{text}");
        assert_eq!(text.matches("word").count(), 90, "{text}");
    }
}

#[test]
fn a_narrow_terminal_leaves_out_columns_until_a_table_fits() {
    let cell = "0123456789".repeat(2);
    let names = ["goal", "mean", "change", "verdict"];
    let row = || names.map(|_| Cell::from(cell.as_str())).to_vec();
    let table = Table::new(names.map(Column::named), [row()]).with_optional(&["mean", "change"]);
    let document = Document::new([Block::Table(table)]);
    let heads = |width: u16| {
        let style = Style {
            width,
            ..Style::default()
        };
        let text = terminal::render(&document, style);
        let head = text.lines().next().unwrap_or_default();
        head.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(heads(100), names);
    assert_eq!(heads(86), names);
    assert_eq!(heads(80), ["goal", "change", "verdict"]);
    assert_eq!(heads(60), ["goal", "verdict"]);
}

#[test]
fn a_table_is_never_wider_than_a_narrow_terminal_if_its_cells_are_not() {
    let widths = [18, 12, 12, 10, 16, 10];
    let row = widths.map(|width| Cell::from("x".repeat(width).as_str()));
    let heads = ["metric", "a", "b", "change", "interval", "verdict"];
    let table = Table::new(heads.map(Column::named), [row.to_vec(), row.to_vec()]);
    let document = Document::new([Block::Table(table)]);
    for width in 67..=100 {
        let style = Style {
            width,
            ..Style::default()
        };
        let text = terminal::render(&document, style);
        let longest = text.lines().map(str::len).max().unwrap_or(0);
        assert!(longest <= usize::from(width), "{width}: {text}");
        let lines = if width < 83 { 6 } else { 3 };
        assert_eq!(text.lines().count(), lines, "{width}: {text}");
    }
}

#[test]
fn the_last_cell_of_a_row_is_broken_at_the_width_of_the_terminal() {
    let rows = vec![vec![
        Cell::from("name"),
        Cell::from("some words ".repeat(12).trim()),
    ]];
    let document = Document::new([Block::Table(Table::new([], rows))]);
    let style = Style {
        width: 60,
        ..Style::default()
    };
    let text = terminal::render(&document, style);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 60),
        "{text}"
    );
    assert!(
        lines[1].starts_with("      words") || lines[1].starts_with("      some"),
        "{text}"
    );
}

#[test]
fn long_lines_are_broken_on_a_terminal_of_any_width_and_stay_whole_in_a_file() {
    let warning = Block::list(["some words ".repeat(30)]);
    let lines = |width: u16| {
        let style = Style {
            width,
            ..Style::default()
        };
        let text = terminal::render(&Document::new([warning.clone()]), style);
        let widths = text.lines().map(|line| line.chars().count());
        (text.lines().count(), widths.max().unwrap())
    };
    for width in [80, 120, 200] {
        let (count, widest) = lines(width);
        assert!(
            count > 1 && widest <= usize::from(width),
            "{width}: {widest}"
        );
    }
    assert_eq!(lines(Style::default().width).0, 1);
}
