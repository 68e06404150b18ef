//! The list of results.

use maud::{Markup, html};
use stillwell_report::history::utc_minute;

use super::{Chrome, Section, cut_remark, page};
use stillwell_experiment::library::{ResultEntry, ResultListing};

/// Returns the list of results, newest first. Any two can be compared.
pub(crate) fn results(listing: &ResultListing, chrome: Chrome<'_>) -> String {
    let body = html! {
        h1 { "Results" }
        @if listing.results.is_empty() {
            p { "There are no results in this folder yet. Commands such as " code { "stillwell run" } ", "
                code { "ab" } " and " code { "load --capture DIR" } " create them." }
            p { a class="button" href="/start" { "Start a load" } }
        } @else {
            (table(&listing.results))
        }
        (cut_remark(listing.is_cut))
    };
    page(Section::Results, "Results", chrome, false, &body)
}

fn table(results: &[ResultEntry]) -> Markup {
    let can_compare = results
        .iter()
        .filter(|entry| entry.kind.is_comparable())
        .count()
        > 0;
    html! {
        form action="/compare" method="get" {
            div class="tools" {
                label class="filter" hidden { "Filter " input type="search" data-filter="#results tbody tr"; }
                @if can_compare {
                    span class="dim" { "Choose two results to compare" }
                    button type="submit" { "Compare A with B" }
                }
            }
            div class="scroll" tabindex="0" role="group" aria-label="Results" {
                table id="results" class="list" {
                    thead { tr {
                        th scope="col" { abbr title="The baseline of a comparison" { "A" } }
                        th scope="col" { abbr title="Compared with the baseline" { "B" } }
                        th scope="col" { "Result" }
                        th scope="col" { "Kind" }
                        th scope="col" { "Verdict" }
                        th scope="col" { "Started (UTC)" }
                    } }
                    tbody { @for entry in results { (row(entry)) } }
                }
            }
        }
    }
}

fn row(entry: &ResultEntry) -> Markup {
    let address = entry.place.address();
    let shown = entry.place.shown();
    let name_start = shown.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, name) = shown.split_at(name_start);
    html! {
        tr {
            @for (name, side) in [("a", "A"), ("b", "B")] {
                td class="pick" {
                    @if entry.kind.is_comparable() {
                        input type="radio" name=(name) value=(address) aria-label={ (side) ": " (shown) };
                    }
                }
            }
            td {
                a href={ "/report/" (entry.place.link()) } { span class="dim" { (folder) } (name) }
                @if !entry.command.is_empty() { div class="dim command" { (entry.command) } }
            }
            td class="short" { (entry.kind.name()) }
            td {
                @if let Some(headline) = &entry.headline {
                    span class=(headline.class) {
                        span class="sign" aria-hidden="true" { (headline.sign) } " " (headline.text)
                    }
                }
            }
            td class="short number" { (utc_minute(entry.started_millis)) }
        }
    }
}
