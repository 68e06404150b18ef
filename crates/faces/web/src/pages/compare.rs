//! Choices around comparisons and histories.

use maud::{Markup, html};

use super::{Chrome, Section, cut_remark, page};
use crate::program::Refusal;
use stillwell_experiment::library::ResultListing;

/// Two sides of a comparison, as addresses; empty if not chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompareChoice<'c> {
    pub(crate) a: &'c str,
    pub(crate) b: &'c str,
}

/// Returns the form that chooses two results.
pub(crate) fn choices(listing: &ResultListing, choice: CompareChoice<'_>) -> Markup {
    let results = || {
        listing
            .results
            .iter()
            .filter(|entry| entry.kind.is_comparable())
    };
    html! {
        form action="/compare" method="get" class="inline" {
            @for (name, label, chosen) in [("a", "A, the baseline", choice.a), ("b", "B", choice.b)] {
                label { (label) " "
                    select name=(name) {
                        @for entry in results() {
                            @let address = entry.place.address();
                            option value=(address) selected[address == chosen] { (entry.place.shown()) }
                        }
                    }
                }
            }
            button type="submit" { "Compare" }
        }
        (cut_remark(listing.is_cut))
    }
}

/// Returns the page for two results that are not chosen or cannot be compared.
pub(crate) fn compare(
    listing: &ResultListing,
    choice: CompareChoice<'_>,
    refusal: Option<&Refusal>,
    chrome: Chrome<'_>,
) -> String {
    let body = html! {
        h1 { "Compare" }
        @if let Some(refusal) = refusal {
            p class="remark failure" { (refusal.message) }
            @if let Some(hint) = &refusal.hint { p { (hint) } }
        }
        (choices(listing, choice))
    };
    page(Section::Results, "Compare", chrome, false, &body)
}

/// Returns the form that chooses the experiments of a history, with a remark if the list of results is cut.
pub(crate) fn only(only: &str, is_cut: bool) -> Markup {
    html! {
        form action="/history" method="get" class="inline" {
            label { "Experiments " input name="only" value=(only) placeholder="all; * matches any text"; }
            button type="submit" { "Show" }
        }
        (cut_remark(is_cut))
    }
}

/// Returns the page of a history that cannot be shown.
pub(crate) fn history(
    only_name: &str,
    is_cut: bool,
    refusal: &Refusal,
    chrome: Chrome<'_>,
) -> String {
    let body = html! {
        h1 { "History" }
        p class="remark note" { (refusal.message) }
        @if let Some(hint) = &refusal.hint { p { (hint) } }
        (only(only_name, is_cut))
    };
    page(Section::History, "History", chrome, false, &body)
}
