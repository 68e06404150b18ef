//! A suite as a comment on a pull request: findings first, one line if nothing was found.

use stillwell_units::count;
use stillwell_verdict::{ExperimentVerdict, Gate};

use super::{
    COMMENT, LENGTH_MAX, MARKER, OVERVIEW, by_attention, finding, method, overview, problems,
    section,
};
use crate::document::{
    Block, Column, Document, Fold, Format, Inline, Language, Section, Table, Text,
};
use crate::{Style, SuiteReport, words};

/// Most experiments whose details are in a comment.
const DETAILS_MAX: usize = 20;
/// Most lines of the details of a problem.
const PROBLEM_LINES_MAX: usize = 40;
/// Room for the line that says that a comment was cut, and for the ends of folds.
const CUT_ROOM: usize = 1_000;

/// Parts of a comment besides the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommentOptions {
    /// Name of the suite: one comment of each name is kept on a pull request.
    pub suite: String,
    /// Links, with their texts.
    pub links: Vec<(String, String)>,
}

impl CommentOptions {
    /// Returns the hidden first line, by which the comment is found again.
    #[must_use]
    pub fn marker(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let suite = self.suite.chars();
        let suite: String = suite
            .map(|c| if is_plain(c) { c } else { '-' })
            .take(100)
            .collect();
        // `--` would end the hidden part.
        let parts = suite.split('-').filter(|part| !part.is_empty());
        let suite = parts.collect::<Vec<_>>().join("-");
        let begin = MARKER.trim_end_matches(" -->");
        match suite.is_empty() {
            true => MARKER.to_owned(),
            false => format!("{begin} suite={suite} -->"),
        }
    }
}

/// Returns the comment: the finding, a row for each experiment that needs attention, and everything else folded. If
/// every gate held, it is one line and a fold. Never longer than [`LENGTH_MAX`] bytes.
#[must_use]
pub fn comment(report: &SuiteReport, options: &CommentOptions) -> String {
    let text = Format::Markdown.render(Style::default(), || document(report, options), String::new);
    let text = text.strip_prefix(MARKER).unwrap_or(&text);
    cut(&format!("{}{text}", options.marker()))
}

fn document(report: &SuiteReport, options: &CommentOptions) -> Document {
    let blocks = match report.experiments.is_empty() {
        true => could_not_run(report, options),
        false => verdicts(report, options),
    };
    Document {
        comment: Some(COMMENT),
        ..Document::new([Block::on_page(blocks)])
    }
}

/// Returns the reason why there are no verdicts, and the command to repeat.
fn could_not_run(report: &SuiteReport, options: &CommentOptions) -> Vec<Block> {
    let mut top: Vec<Block> = Vec::new();
    for problem in report.problems.iter().take(DETAILS_MAX) {
        top.push(Block::paragraph(problem.line()));
        let details: Vec<&str> = problem.reason.lines().skip(1).collect();
        if !details.is_empty() {
            let from = details.len().saturating_sub(PROBLEM_LINES_MAX);
            let details = details[from..].join("\n");
            top.push(folded("Details", Block::Code(Language::Text, details)));
        }
    }
    if !report.command.is_empty() {
        top.push(Block::paragraph(
            Text::from("Repeat: ").and(Text::code(&report.command)),
        ));
    }
    top.extend(links(options));
    vec![Block::section(1, finding(report), top)]
}

fn verdicts(report: &SuiteReport, options: &CommentOptions) -> Vec<Block> {
    let ordered = by_attention(&report.experiments);
    let is_open = |entry: &&ExperimentVerdict| entry.gate != Gate::Held && !entry.erratic;
    let (open, held): (Vec<_>, Vec<_>) = ordered.into_iter().partition(is_open);
    let mut blocks = Vec::new();
    if open.is_empty() && report.problems.is_empty() {
        blocks.push(Block::paragraph(finding(report)));
        blocks.extend(links(options));
    } else {
        let tally = format!("{}.", words::tally(&report.experiments));
        let mut top = vec![Block::paragraph(tally), problems(report)];
        if !open.is_empty() {
            top.push(table(&open));
        }
        top.extend(links(options));
        blocks.push(Block::section(1, finding(report), top));
        blocks.extend(
            open.iter()
                .take(DETAILS_MAX)
                .map(|entry| section(entry, report)),
        );
    }
    if !held.is_empty() {
        let number = words::counted(count(held.len()), "experiment", "experiments");
        blocks.push(folded(&format!("{number} without a finding"), table(&held)));
    }
    blocks.push(method(report));
    blocks
}

fn table(experiments: &[&ExperimentVerdict]) -> Block {
    let rows = experiments.iter().map(|entry| overview(entry));
    Block::Table(Table::new(OVERVIEW.map(Column::named), rows))
}

fn folded(title: &str, block: Block) -> Block {
    Block::Section(Section {
        fold: Fold::Folded(title.into()),
        blocks: vec![block],
        ..Section::default()
    })
}

fn links(options: &CommentOptions) -> Option<Block> {
    let mut inlines = Vec::new();
    for (text, address) in &options.links {
        if !inlines.is_empty() {
            inlines.extend(Text::from(" · ").0);
        }
        inlines.push(Inline::Link(text.clone(), address.clone()));
    }
    (!inlines.is_empty()).then_some(Block::Paragraph(Text(inlines)))
}

/// Returns the first lines that fit, with all folds closed.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= LENGTH_MAX {
        return text.to_owned();
    }
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        if kept.len() + line.len() + CUT_ROOM > LENGTH_MAX {
            break;
        }
        kept.push_str(line);
    }
    let open = kept.matches("<details>").count();
    let closed = kept.matches("</details>").count();
    kept.push_str(&"\n</details>\n".repeat(open.saturating_sub(closed).min(20)));
    kept.push_str(
        "\nThe rest is left out, because a comment has to stay short; the results folder has it.\n",
    );
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_verdict::Verdict;

    use super::*;
    use crate::SuiteProblem;
    use crate::fixture::{
        equivalent, experiment, failed_check, invalid, of_kinds, regressed, report,
    };

    fn options() -> CommentOptions {
        CommentOptions {
            suite: "quick start".to_owned(),
            links: vec![("job".to_owned(), "https://example.com/1".to_owned())],
        }
    }

    #[test]
    fn a_comment_without_a_finding() {
        insta::assert_snapshot!(comment(&report(vec![equivalent()]), &options()));
    }

    #[test]
    fn a_comment_with_findings() {
        let experiments = vec![equivalent(), regressed(), invalid(), failed_check()];
        insta::assert_snapshot!(comment(&report(experiments), &options()));
    }

    fn problem(experiment: Option<&str>, reason: &str) -> SuiteProblem {
        SuiteProblem {
            experiment: experiment.map(str::to_owned),
            reason: reason.to_owned(),
            exit_code: 3,
        }
    }

    #[test]
    fn a_comment_on_a_run_that_could_not_start() {
        let reason = "build revision `1a2b3c4`: exit status 2; the log is build.log\nmain.go:3: undefined: x";
        let failed = SuiteReport {
            problems: vec![problem(None, reason)],
            ..report(Vec::new())
        };
        insta::assert_snapshot!(comment(&failed, &options()));
    }

    #[test]
    fn a_comment_on_a_suite_with_a_problem() {
        let failed = SuiteReport {
            problems: vec![problem(Some("http"), "port 9000 is taken\nmore")],
            ..report(vec![equivalent()])
        };
        let text = comment(&failed, &options());
        let (visible, _) = text.split_once("<details>").unwrap();
        insta::assert_snapshot!(visible);
    }

    #[test]
    fn a_comment_without_a_finding_has_one_visible_line() {
        let experiments = (0..500).map(|number| {
            let name = format!("case {number}");
            experiment(&name, Verdict::Equivalent, [0.001, -0.004, 0.006])
        });
        let text = comment(&report(experiments.collect()), &CommentOptions::default());
        let (visible, folds) = text.split_once("<details>").unwrap();
        let visible = visible.lines().filter(|line| !line.is_empty()).count();
        // The marker is hidden.
        assert_eq!(visible, 2, "{text}");
        assert!(folds.contains("left out"));
    }

    #[test]
    fn the_marker_is_one_hidden_line_of_the_suite() {
        for (suite, expected) in [
            ("", "<!-- stillwell:report:v1 -->"),
            ("a b", "<!-- stillwell:report:v1 suite=a-b -->"),
            ("a --> b\n", "<!-- stillwell:report:v1 suite=a-b -->"),
        ] {
            let options = CommentOptions {
                suite: suite.to_owned(),
                links: Vec::new(),
            };
            let marker = options.marker();
            assert_eq!(marker, expected);
            let text = comment(&report(vec![regressed()]), &options);
            assert_eq!(text.lines().next(), Some(marker.as_str()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn for_all_suites_a_comment_is_short_and_its_folds_are_closed(
            kinds in proptest::collection::vec(0_u8..7, 0..150),
            name in ".{0,300}",
        ) {
            let experiments = of_kinds(&kinds, &name);
            let text = comment(&report(experiments), &options());
            prop_assert!(text.len() <= LENGTH_MAX, "{}", text.len());
            prop_assert!(LENGTH_MAX <= 60_000);
            let count = |tag: &str| text.lines().filter(|line| line.starts_with(tag)).count();
            prop_assert_eq!(count("<details>"), count("</details>"));
        }
    }
}
