//! Messages in place of a page.

use maud::{DOCTYPE, html};

use super::{Chrome, Section, page};
use crate::guard::Reason;
use crate::program::Refusal;

/// Returns a page with a message.
pub(crate) fn message(title: &str, refusal: &Refusal, chrome: Chrome<'_>) -> String {
    let body = html! {
        h1 { (title) }
        p class="remark failure" { (refusal.message) }
        @if let Some(hint) = &refusal.hint { p { (hint) } }
        p { a href="/" { "All results" } }
    };
    page(Section::None, title, chrome, false, &body)
}

/// Returns the page of a refused request. It has no style and no script: those need the token, too.
pub(crate) fn refused(reason: Reason) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="color-scheme" content="light dark";
                title { "Refused · stillwell" }
            }
            body { main { h1 { "Refused" } p { (reason.message()) } } }
        }
    };
    markup.into_string()
}
