//! The newest pages of metrics, for every receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use stillwell_units::{Moment, Nanos};
use tokio::sync::watch;

use crate::format::page::MetricsPage;

/// Maximum number of last pages that are kept for receivers after the next run has published. A receiver that is
/// more runs behind loses the oldest: an export takes two seconds at most.
const REPLACED_MAX: usize = 64;

/// The newest page of each writer: of the load, or of each run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// In the order in which the writers began, so of two pages of a series the newer one comes last.
    pages: BTreeMap<PageWriter, PublishedPage>,
    /// Number of writers so far.
    writers: u64,
    /// Number of flushes so far.
    pub(crate) flush: u64,
    pub(crate) is_last: bool,
}

/// A load or a run that publishes pages.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PageWriter(u64);

#[derive(Clone, Debug)]
struct PublishedPage {
    page: Arc<MetricsPage>,
    /// The last flush in which it is exported; 0 if none was due.
    flush: u64,
    state: PageState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PageState {
    /// Its writer publishes more pages.
    Live,
    /// It is the last one of its writer.
    Ended,
    /// The same, and the next run has published.
    Replaced,
}

impl Published {
    /// Adds a writer, which has no page yet.
    pub(crate) fn add_writer(published: &watch::Sender<Self>) -> PageWriter {
        let mut writer = PageWriter(0);
        published.send_modify(|published| {
            writer = PageWriter(published.writers);
            published.writers += 1;
        });
        writer
    }

    /// Replaces the page of `writer`. Receivers export it if it `is_due`.
    pub(crate) fn publish(&mut self, writer: PageWriter, page: MetricsPage, is_due: bool) {
        self.flush += u64::from(is_due);
        let page = Arc::new(page);
        if let Some(published) = self.pages.get_mut(&writer) {
            published.page = page;
            if is_due {
                published.flush = self.flush;
            }
            return;
        }
        self.replace_ended();
        let published = PublishedPage {
            page,
            flush: if is_due { self.flush } else { 0 },
            state: PageState::Live,
        };
        self.pages.insert(writer, published);
    }

    /// Ends `writer`: receivers export its last page, and it is shown until the next run publishes.
    pub(crate) fn end(&mut self, writer: PageWriter) {
        if let Some(published) = self.pages.get_mut(&writer) {
            self.flush += 1;
            published.flush = self.flush;
            published.state = PageState::Ended;
        }
    }

    /// Ends the export: receivers export all shown pages for the last time.
    pub(crate) fn finish(&mut self) {
        self.flush += 1;
        self.is_last = true;
        let pages = self.pages.values_mut();
        let shown = pages.filter(|published| published.state != PageState::Replaced);
        shown.for_each(|published| published.flush = self.flush);
    }

    /// Returns the pages that a receiver exports which has seen flush number `seen`.
    pub(crate) fn due_after(&self, seen: u64) -> Vec<Arc<MetricsPage>> {
        self.pages_with(|published| published.flush > seen)
    }

    /// Returns the pages to scrape.
    pub(crate) fn shown(&self) -> Vec<Arc<MetricsPage>> {
        self.pages_with(|published| published.state != PageState::Replaced)
    }

    fn pages_with(&self, is_wanted: impl Fn(&PublishedPage) -> bool) -> Vec<Arc<MetricsPage>> {
        let pages = self.pages.values().filter(|published| is_wanted(published));
        pages.map(|published| Arc::clone(&published.page)).collect()
    }

    fn replace_ended(&mut self) {
        for published in self.pages.values_mut() {
            if published.state == PageState::Ended {
                published.state = PageState::Replaced;
            }
        }
        let is_replaced = |published: &PublishedPage| published.state == PageState::Replaced;
        let replaced = self.pages.values().filter(|page| is_replaced(page)).count();
        let mut surplus = replaced.saturating_sub(REPLACED_MAX);
        self.pages.retain(|_, published| {
            let is_surplus = surplus > 0 && is_replaced(published);
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
    }
}

/// Times of flushes on an absolute schedule: a late flush does not move the next one, and missed ones are skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushTimer {
    every: Nanos,
    next: Moment,
}

impl FlushTimer {
    /// Starts a schedule at `now`.
    pub(crate) fn new(every: Nanos, now: Moment) -> Self {
        let next = now + every;
        Self { every, next }
    }

    /// Starts the schedule again at `now`.
    pub(crate) fn restart(&mut self, now: Moment) {
        *self = Self::new(self.every, now);
    }

    /// Returns true if a flush is due at `now`. The next one is due later.
    pub(crate) fn take_due(&mut self, now: Moment) -> bool {
        if now < self.next {
            return false;
        }
        let every = self.every.as_u64().max(1);
        let missed = now.since(self.next).as_u64() / every;
        self.next = self.next + Nanos::new(every.saturating_mul(missed.saturating_add(1)));
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::fixture;

    /// The counts of requests in `pages` of the fixture.
    fn counts(pages: &[Arc<MetricsPage>]) -> Vec<u64> {
        let known = (0..100).map(fixture::page).collect::<Vec<_>>();
        let count = |page: &Arc<MetricsPage>| known.iter().position(|known| *known == **page);
        pages
            .iter()
            .map(|page| count(page).unwrap() as u64)
            .collect()
    }

    fn writers(count: usize) -> (Published, Vec<PageWriter>) {
        let sender = watch::Sender::new(Published::default());
        let writers = (0..count).map(|_| Published::add_writer(&sender)).collect();
        (sender.borrow().clone(), writers)
    }

    #[test]
    fn the_last_page_of_a_run_is_due_at_its_end_and_once() {
        let (mut published, writers) = writers(2);
        published.publish(writers[0], fixture::page(1), false);
        assert!(published.due_after(0).is_empty(), "no flush was due");
        published.end(writers[0]);
        let seen = published.flush;
        assert_eq!(counts(&published.due_after(0)), [1]);
        assert_eq!(counts(&published.shown()), [1]);
        published.publish(writers[1], fixture::page(2), true);
        // A slow receiver gets both, a fast one only the new page.
        assert_eq!(counts(&published.due_after(0)), [1, 2]);
        assert_eq!(counts(&published.due_after(seen)), [2]);
        assert_eq!(counts(&published.shown()), [2]);
    }

    #[test]
    fn a_run_without_a_page_is_not_exported() {
        let (mut published, writers) = writers(1);
        published.end(writers[0]);
        published.finish();
        assert!(published.due_after(0).is_empty());
    }

    #[test]
    fn two_runs_at_once_have_a_page_each() {
        let (mut published, writers) = writers(3);
        published.publish(writers[0], fixture::page(1), true);
        published.publish(writers[1], fixture::page(2), false);
        assert_eq!(counts(&published.shown()), [1, 2]);
        assert_eq!(counts(&published.due_after(0)), [1]);
        published.publish(writers[1], fixture::page(3), true);
        published.publish(writers[0], fixture::page(4), false);
        // Of a page that is due, a receiver exports the newest state.
        assert_eq!(counts(&published.due_after(0)), [4, 3]);
        assert_eq!(counts(&published.due_after(1)), [3]);
        published.end(writers[0]);
        assert_eq!(counts(&published.due_after(2)), [4]);
        assert_eq!(counts(&published.shown()), [4, 3]);
        published.publish(writers[2], fixture::page(5), false);
        assert_eq!(counts(&published.shown()), [3, 5]);
    }

    #[test]
    fn the_last_flush_has_all_shown_pages() {
        let (mut published, writers) = writers(3);
        for (index, writer) in writers.iter().enumerate() {
            published.publish(*writer, fixture::page(index as u64), false);
            published.end(*writer);
        }
        let seen = published.flush;
        published.finish();
        assert_eq!(counts(&published.due_after(seen)), [2]);
        assert!(published.is_last);
    }

    #[test]
    fn pages_that_wait_for_receivers_are_limited() {
        let (mut published, writers) = writers(REPLACED_MAX + 10);
        for writer in &writers {
            published.publish(*writer, fixture::page(1), false);
            published.end(*writer);
        }
        assert_eq!(published.due_after(0).len(), REPLACED_MAX + 1);
        assert_eq!(published.shown().len(), 1);
    }

    proptest! {
        #[test]
        fn for_all_delays_the_next_flush_is_the_next_of_the_schedule(
            every in 1_u64..1000, delay in 0_u64..100_000,
        ) {
            let begun = Moment::new(7);
            let mut timer = FlushTimer::new(Nanos::new(every), begun);
            let due = timer.next;
            prop_assert!(!timer.take_due(due - Nanos::new(1)));
            let now = due + Nanos::new(delay);
            prop_assert!(timer.take_due(now));
            prop_assert!(timer.next > now && timer.next.since(now).as_u64() <= every);
            prop_assert_eq!(timer.next.since(begun).as_u64() % every, 0);
        }
    }
}
