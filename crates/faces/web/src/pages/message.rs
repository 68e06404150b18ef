//! Messages in place of a page.

use maud::{DOCTYPE, Markup, html};

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

/// Returns the page of a refused request.
pub(crate) fn refused(reason: Reason) -> String {
    let body = html! { h1 { "Refused" } p { (reason.message()) } };
    bare("Refused", None, &body)
}

/// Returns the page that opens `path` with the new cookie. A redirection would not do: a browser that came from another
/// site would send it without the cookie, as a request of that site.
pub(crate) fn greeting(path: &str) -> String {
    let body = html! { p { a href=(path) { "Continue" } } };
    bare("Welcome", Some(path), &body)
}

/// Returns a page without style and script: those need the cookie, too. It opens the path `next`.
fn bare(title: &str, next: Option<&str>, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="color-scheme" content="light dark";
                title { (title) " · stillwell" }
                @if let Some(next) = next { meta http-equiv="refresh" content={ "0;url=" (next) }; }
            }
            body { main { (body) } }
        }
    };
    markup.into_string()
}
