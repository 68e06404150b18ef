//! Configuration files: their list, and one in an editor.

use maud::{Markup, html};

use super::start::is_experiment;
use super::{Chrome, Section, cut_remark, keys, page};
use crate::program::{CheckedFile, FileFinding};
use stillwell_experiment::library::{PlaceBelow, ResultListing};

/// Returns the list of configuration files.
pub(crate) fn files(listing: &ResultListing, chrome: Chrome<'_>) -> String {
    let files = &listing.files;
    let body = html! {
        h1 { "Experiments" }
        p { a class="button" href="/start?form=init#init" { "New experiment" } }
        @if files.is_empty() {
            p { "There is no YAML file in this folder." }
        } @else {
            ul { @for file in files { li { a href={ "/edit/" (file.link()) } { (file.shown()) } } } }
        }
        (cut_remark(listing.are_files_cut))
    };
    page(Section::Files, "Experiments", chrome, false, &body)
}

/// Content of an editor.
#[derive(Clone, Debug)]
pub(crate) struct EditView<'v> {
    pub(crate) place: &'v PlaceBelow,
    pub(crate) text: &'v str,
    /// Identifies the text on the disk, to notice changes by others.
    pub(crate) version: &'v str,
    /// The result of the last action in one sentence, and true if it failed.
    pub(crate) outcome: Option<(&'v str, bool)>,
    /// Findings in the text on the disk; `None` if it is another text.
    pub(crate) checked: Option<&'v CheckedFile>,
}

/// Returns the editor of one file.
pub(crate) fn edit(view: &EditView<'_>, chrome: Chrome<'_>) -> String {
    let title = view.place.shown();
    let rows = (view.text.lines().count() + 2).clamp(12, 40);
    let is_unsaved = view.outcome.is_some_and(|(_, is_failure)| is_failure);
    let body = html! {
        h1 { (title) }
        @if let Some((text, is_failure)) = view.outcome {
            p class={ "remark " (if is_failure { "failure" } else { "note" }) } role="status" { (text) }
        }
        @if let Some(checked) = view.checked { (findings(checked, view.text)) }
        div class="editor" {
            form action={ "/edit/" (view.place.link()) } method="post" {
                input type="hidden" name="version" value=(view.version);
                label for="text" { "Text" }
                div class="code" {
                    textarea id="text" name="text" rows=(rows) spellcheck="false" autocomplete="off" wrap="off"
                        data-lines data-unsaved[is_unsaved] { "\n" (view.text) }
                }
                div class="tools" {
                    button type="submit" { "Save and check" }
                    @if is_experiment(view.place) { a href={ "/start?file=" (view.place.link()) "#run" } { "Run this experiment" } }
                }
            }
            (keys::help())
        }
    };
    page(Section::Files, &title, chrome, false, &body)
}

fn findings(checked: &CheckedFile, text: &str) -> Markup {
    let errors = checked
        .findings
        .iter()
        .filter(|finding| finding.is_error)
        .count();
    let further = checked.findings.len() - errors;
    let answer = match (errors, further) {
        (0, 0) => "No errors.".to_owned(),
        (0, count) => format!("No errors; warnings and notes: {count}."),
        (count, 0) => format!("Errors: {count}."),
        (count, further) => format!("Errors: {count}; warnings and notes: {further}."),
    };
    html! {
        section aria-label="Check" {
            p class=(if errors > 0 { "remark failure" } else { "remark note" }) { (answer) }
            @if !checked.findings.is_empty() {
                ul class="findings" { @for finding in &checked.findings { (self::finding(finding, text)) } }
            }
            @if let Some(summary) = &checked.summary {
                details { summary { "The runs of this file" } pre tabindex="0" { (summary) } }
            }
        }
    }
}

fn finding(finding: &FileFinding, text: &str) -> Markup {
    let source = finding
        .line
        .and_then(|line| text.lines().nth(line.checked_sub(1)?));
    html! {
        li {
            @if let Some(line) = finding.line {
                a href="#text" data-line=(line) { "line " (line) }
                ": "
            }
            span class=(if finding.is_error { "worse" } else { "different" }) {
                (if finding.is_error { "error" } else { "warning" }) " " (finding.code)
            }
            " " (finding.message)
            @if let Some(source) = source { pre tabindex="0" { (finding.line.unwrap_or(0)) " │ " (source) } }
            @for help in &finding.help { div class="dim" { (help) } }
        }
    }
}
