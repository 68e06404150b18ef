//! Reports within the server.

use maud::{Markup, PreEscaped, html};

use super::{Chrome, Section, navigation, page};
use stillwell_experiment::library::PlaceBelow;

/// Styles of the navigation in a report, which has no style sheet of this server.
const BAR_STYLE: &str = include_str!("../assets/bar.css");

/// Returns the navigation above a report, and what is around it.
pub(crate) fn report_header(
    section: Section,
    title: &str,
    around: &Markup,
    chrome: Chrome<'_>,
) -> String {
    let markup = html! {
        style { (PreEscaped(BAR_STYLE)) }
        (navigation(section, chrome))
        aside class="around" aria-label="About this page" {
            @if !title.is_empty() { p class="dim" { (title) } }
            (around)
        }
    };
    markup.into_string()
}

/// Returns a page with a report that was stored as a page. Its scripts run in a frame of their own.
pub(crate) fn stored(place: &PlaceBelow, chrome: Chrome<'_>) -> String {
    let link = format!("/stored/{}", place.link());
    let body = html! {
        h1 { (place.shown()) }
        p { a href=(link) { "Open alone" } ", for example to print it" }
        iframe class="stored" src=(link) title={ "Report " (place.shown()) } sandbox="allow-scripts" {}
    };
    page(Section::Results, &place.shown(), chrome, false, &body)
}
