//! Forms that start commands, and the commands so far.

use maud::{Markup, html};
use stillwell_units::Moment;

use super::job::{line, status};
use super::{Chrome, Section, cut_remark, page};
use crate::fields::Fields;
use crate::jobs::JobView;
use crate::orders::{FieldError, FieldInput, OrderField, OrderKind};
use stillwell_experiment::library::{PlaceBelow, ResultListing};

/// Content of the page.
#[derive(Debug)]
pub(crate) struct StartView<'v> {
    /// The form that is filled in, with its fields.
    pub(crate) filled: Option<(OrderKind, &'v Fields)>,
    /// The field that is not accepted; its name may be empty for the whole form.
    pub(crate) error: Option<&'v FieldError>,
    /// Everything below the roots, for the choice of a file.
    pub(crate) listing: &'v ResultListing,
    pub(crate) jobs: &'v [JobView],
    pub(crate) now: Moment,
}

/// Returns the page.
pub(crate) fn start(view: &StartView<'_>, chrome: Chrome<'_>) -> String {
    let filled_kind = view.filled.map(|(kind, _)| kind);
    let body = html! {
        h1 { "Start" }
        p class="dim" { "One command runs at a time, in the folder of this server, and its results stay there." }
        @for kind in OrderKind::ALL {
            @let is_open = filled_kind.unwrap_or(OrderKind::Load) == kind;
            details class="form" name="form" open[is_open] id=(kind.command()) {
                summary { h2 { (title(kind)) } " " span class="dim" { (purpose(kind)) } }
                (form(kind, view))
            }
        }
        h2 id="commands" { "Commands" }
        @if view.jobs.is_empty() {
            p class="dim" { "None yet." }
        } @else {
            ul class="jobs" {
                @for job in view.jobs {
                    li {
                        a href={ "/commands/" (job.id) } { "Command " (job.id) } " " (status(&job.state, view.now))
                        div class="dim command" { (line(&job.words)) }
                    }
                }
            }
        }
    };
    page(Section::Start, "Start", chrome, false, &body)
}

/// Returns true for files that `run` reads and that lie where commands run.
pub(super) fn is_experiment(file: &PlaceBelow) -> bool {
    file.root == 0
        && file
            .names
            .last()
            .is_some_and(|name| name == "experiment.yaml")
}

const fn title(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Load => "Load",
        OrderKind::Ab => "A/B",
        OrderKind::Experiment => "Experiment",
        OrderKind::Init => "New experiment",
    }
}

const fn purpose(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Load => "send requests to a URL, and measure throughput and latency",
        OrderKind::Ab => "send the same requests to two URLs in turn, and judge the difference",
        OrderKind::Experiment => "run an experiment file: start, load and compare two variants",
        OrderKind::Init => "write an experiment file for a program or for two services",
    }
}

fn form(kind: OrderKind, view: &StartView<'_>) -> Markup {
    let fields = view
        .filled
        .filter(|(filled, _)| *filled == kind)
        .map(|(_, fields)| fields);
    let error = view.error.filter(|_| fields.is_some());
    let files = &view.listing.files;
    let remark = cut_remark(kind == OrderKind::Experiment && view.listing.are_files_cut);
    if kind == OrderKind::Experiment && !files.iter().any(is_experiment) {
        return html! { (remark) p { "There is no experiment file in this folder. " a href="/start?form=init#init" { "Make one" } } };
    }
    html! {
        form action={ "/start/" (kind.command()) } method="post" class="fields" {
            @if let Some(error) = error.filter(|error| error.field.is_empty()) {
                p class="remark failure" role="alert" { (error.message) }
            }
            (remark)
            @for field in kind.fields() {
                (input(kind, field, fields, error, files))
            }
            div { button type="submit" { "Start" } }
        }
    }
}

fn input(
    kind: OrderKind,
    field: &OrderField,
    fields: Option<&Fields>,
    error: Option<&FieldError>,
    files: &[PlaceBelow],
) -> Markup {
    let value = fields.map_or(field.preset, |fields| fields.text(field.name));
    let id = format!("{}-{}", kind.command(), field.name);
    let hint_id = (!field.hint.is_empty()).then(|| format!("{id}-hint"));
    let hint_id = hint_id.as_deref();
    let error = error.filter(|error| error.field == field.name);
    let invalid = error.map(|_| "true");
    let name = field.name;
    html! {
        div class="field" {
            @if field.input == FieldInput::Switch {
                label { input type="checkbox" name=(name) checked[!value.is_empty()]; " " (field.label) }
            } @else {
                label for=(id) { (field.label) }
            }
            @match field.input {
                FieldInput::Url => input id=(id) name=(name) value=(value) type="url" required inputmode="url"
                    autocomplete="off" aria-describedby=[hint_id] aria-invalid=[invalid];,
                FieldInput::Line => input id=(id) name=(name) value=(value) autocomplete="off"
                    aria-describedby=[hint_id] aria-invalid=[invalid];,
                FieldInput::Folder => input id=(id) name=(name) value=(value) required autocomplete="off"
                    aria-describedby=[hint_id] aria-invalid=[invalid];,
                FieldInput::Lines | FieldInput::Body => textarea id=(id) name=(name) rows="2" spellcheck="false"
                    aria-describedby=[hint_id] aria-invalid=[invalid] { (value) },
                FieldInput::Choice(words) => select id=(id) name=(name) {
                    @for word in words { option selected[*word == value] { (word) } }
                },
                FieldInput::File => select id=(id) name=(name) {
                    @for file in files.iter().filter(|file| is_experiment(file)) {
                        @let address = file.address();
                        option value=(address) selected[address == value] { (file.shown()) }
                    }
                },
                FieldInput::Switch => {},
            }
            @if let Some(hint_id) = hint_id { span class="dim" id=(hint_id) { (field.hint) } }
            @if let Some(error) = error { span class="worse" role="alert" { (error.message) } }
        }
    }
}
