//! Profiles that the target serves, stored unchanged.
//!
//! Requests run beside the beats, one at a time for each page. A request may take as long as the profile
//! covers. The first one is at a beat, each further one when it is due.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stillwell_plan::observer::ProfilePlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;

use crate::scrape::{PageRequest, fetch};

/// Longest duration of a request.
const LONGEST: Nanos = Nanos::from_secs(120);

/// Shortest time from the end of a request to the next one of its page: a closed port refuses each at once.
const EVERY_MIN: Nanos = Nanos::from_millis(100);

/// Profiles of one target.
#[derive(Debug)]
pub(crate) struct Profiler {
    pages: Vec<Rc<ProfiledPage>>,
    tasks: Tasks,
}

#[derive(Debug)]
struct ProfiledPage {
    /// `None` if the URL is none.
    request: Option<PageRequest>,
    every: Nanos,
    /// Path of its files without their number.
    path: PathBuf,
    state: RefCell<ProfileState>,
}

#[derive(Debug, Default)]
struct ProfileState {
    is_running: bool,
    due: Option<Moment>,
    stored: u32,
}

impl Profiler {
    /// Requests `plans` and stores the profiles in `folder`.
    pub(crate) fn new(plans: &[ProfilePlan], folder: &Path) -> Self {
        let page = |(index, plan): (usize, &ProfilePlan)| ProfiledPage {
            request: PageRequest::new(&plan.url, "*/*"),
            every: plan.every.max(EVERY_MIN),
            path: folder.join(name_of(&plan.url, index)),
            state: RefCell::default(),
        };
        Self {
            pages: plans
                .iter()
                .enumerate()
                .map(|plan| Rc::new(page(plan)))
                .collect(),
            tasks: Tasks::new(plans.len().max(1)),
        }
    }

    /// Requests each profile that is due at `now`.
    pub(crate) fn begin(&mut self, now: Moment) {
        for page in &self.pages {
            let mut state = page.state.borrow_mut();
            let is_due = state.due.is_none_or(|due| now >= due);
            if state.is_running || !is_due || !self.tasks.has_room() {
                continue;
            }
            state.is_running = true;
            let page = Rc::clone(page);
            self.tasks.spawn(async move {
                // A missing profile is visible to readers as a missing file.
                let stored = page.keep().await.is_ok();
                let mut state = page.state.borrow_mut();
                state.is_running = false;
                state.stored += u32::from(stored);
                state.due = Some(clock::now() + page.every);
            });
        }
    }

    /// Returns the time from which [`begin`](Self::begin) requests one more profile; `None` before the first call of
    /// it, and while no request can begin before another one ends.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if !self.tasks.has_room() {
            return None;
        }
        let states = self.pages.iter().map(|page| page.state.borrow());
        let waiting = states.filter(|state| !state.is_running);
        waiting.filter_map(|state| state.due).min()
    }

    /// Forgets a task that has ended, as soon as there is one. Cancel-safe.
    pub(crate) async fn tidy(&mut self) {
        if self.tasks.is_empty() {
            std::future::pending::<()>().await;
        }
        self.tasks.next_end().await;
    }
}

impl ProfiledPage {
    async fn keep(&self) -> io::Result<()> {
        let failed = || io::Error::from(io::ErrorKind::InvalidData);
        let request = self.request.as_ref().ok_or_else(failed)?;
        let mut timer = Timer::new()?;
        let profile = tokio::select! {
            // A cancelled request leaves only a closed connection.
            profile = fetch(request) => profile.map_err(|_| failed())?,
            // Cancel-safe.
            () = timer.until(clock::now() + LONGEST) => return Err(failed()),
        };
        let number = self.state.borrow().stored;
        let path = format!("{}.{number:04}.pb.gz", self.path.display());
        let path = Path::new(&path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, profile)
    }
}

/// A name for the files of a page: the last part of its path, and its number.
fn name_of(url: &str, index: usize) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let last = path.rsplit('/').next().unwrap_or(path);
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
    let plain: String = last.chars().filter(is_plain).collect();
    format!("{plain}-{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_after_their_page() {
        for (url, name) in [
            ("http://a:1/debug/pprof/heap", "heap-0"),
            ("http://a:1/debug/pprof/profile?seconds=5", "profile-0"),
            ("http://a:1/../..", "-0"),
            ("http://a:1", "a1-0"),
        ] {
            assert_eq!(name_of(url, 0), name);
        }
    }
}
