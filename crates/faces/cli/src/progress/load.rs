//! Progress of a load: a live view on a terminal, lines elsewhere.
//!
//! Printed on standard error, by the thread that collects what the workers count; workers
//! know nothing of it.

mod figure;
mod layout;
mod plain;
mod screen;
mod view;

use std::env;

use stillwell_plan::LoadPlan;
use stillwell_run::LoadSnapshot;

use crate::paint::Paint;
use plain::Lines;
use screen::Screen;
use view::View;

/// Shows the progress of a load. The drawn lines are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct LoadDisplay(Way);

#[derive(Debug)]
enum Way {
    /// Not at all.
    Quiet,
    /// Line by line.
    Plain(Box<Lines>),
    /// By a view that is drawn over.
    Live(Box<(View, Screen)>),
}

impl LoadDisplay {
    /// Shows the progress of `plan`, whose target is called `target`.
    pub(crate) fn new(paint: &Paint, quiet: bool, target: &str, plan: &LoadPlan) -> Self {
        let variable = |name: &str| env::var(name).ok();
        if quiet {
            return Self(Way::Quiet);
        }
        if !paint.live || variable("TERM").as_deref() == Some("dumb") {
            return Self(Way::Plain(Box::new(Lines::new())));
        }
        let view = View::new(target.to_owned(), plan);
        let screen = Screen::new(paint.err, shows_unicode(variable));
        let mut live = Box::new((view, screen));
        draw(&mut live);
        Self(Way::Live(live))
    }

    /// Shows the latest second.
    pub(crate) fn show(&mut self, snapshot: &LoadSnapshot<'_>) {
        match &mut self.0 {
            Way::Quiet => {}
            Way::Plain(lines) => {
                if let Some(line) = lines.add(snapshot) {
                    Paint::say(&line);
                }
            }
            Way::Live(live) => {
                live.0.update(snapshot);
                draw(live);
            }
        }
    }
}

fn draw((view, screen): &mut (View, Screen)) {
    let look = screen.look();
    screen.draw(&layout::lines(view, look), look);
}

/// Returns true where the locale's characters are more than ASCII.
fn shows_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let with = |pairs: &[(&str, &str)]| {
            shows_unicode(|name| {
                let pair = pairs.iter().find(|(key, _)| *key == name);
                pair.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!with(&[]));
        assert!(with(&[("LANG", "C.UTF-8")]));
        assert!(with(&[("LC_ALL", ""), ("LANG", "de_AT.utf8")]));
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]));
    }
}
