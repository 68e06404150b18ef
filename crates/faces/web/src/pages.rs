//! Pages as functions of data.

mod cluster;
mod compare;
mod edit;
mod frame;
mod job;
mod keys;
mod message;
mod results;
mod start;

use maud::{DOCTYPE, Markup, html};

pub(crate) use cluster::cluster;
pub(crate) use compare::{CompareChoice, choices, compare, history, only};
pub(crate) use edit::{EditView, edit, files};
pub(crate) use frame::{report_header, stored};
pub(crate) use job::{job, job_event};
pub(crate) use message::{greeting, message, refused};
pub(crate) use results::results;
pub(crate) use start::{StartView, start};

/// Sections of the navigation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Section {
    Results,
    History,
    Start,
    Files,
    Cluster,
    None,
}

/// Facts that every page shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chrome<'c> {
    /// Commands that run or wait.
    pub(crate) unfinished: usize,
    /// The first root, for the footer.
    pub(crate) folder: &'c str,
    /// True if there are stores of clusters.
    pub(crate) has_cluster: bool,
}

const LINKS: [(Section, &str, &str); 5] = [
    (Section::Results, "/", "Results"),
    (Section::History, "/history", "History"),
    (Section::Start, "/start", "Start"),
    (Section::Files, "/files", "Experiments"),
    (Section::Cluster, "/cluster", "Cluster"),
];

/// Returns the navigation.
fn navigation(section: Section, chrome: Chrome<'_>) -> Markup {
    let shown = LINKS.into_iter();
    let shown = shown.filter(|(this, ..)| *this != Section::Cluster || chrome.has_cluster);
    html! {
        header class="bar" {
            nav aria-label="Pages" {
                strong class="brand" { "stillwell" }
                ul {
                    @for (this, link, name) in shown {
                        li { a href=(link) aria-current=[(this == section).then_some("page")] { (name) } }
                    }
                }
                @if chrome.unfinished > 0 {
                    a class="running" href="/start#commands" { (chrome.unfinished) " running or waiting" }
                }
            }
        }
    }
}

/// Returns a remark on a list that is not complete.
fn cut_remark(is_cut: bool) -> Markup {
    html! {
        @if is_cut {
            p class="remark warning" { "The folder has more entries than are shown: open a smaller one." }
        }
    }
}

/// Returns a page. `refresh` reloads it every few seconds in browsers without scripts.
fn page(section: Section, title: &str, chrome: Chrome<'_>, refresh: bool, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · stillwell" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/ui.css";
                @if refresh { noscript { meta http-equiv="refresh" content="2"; } }
                script src="/ui.js" defer {}
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                (navigation(section, chrome))
                main id="content" { (body) }
                @if !chrome.folder.is_empty() { footer class="foot" { "Folder " code { (chrome.folder) } } }
            }
        }
    };
    markup.into_string()
}

#[cfg(test)]
mod tests;
