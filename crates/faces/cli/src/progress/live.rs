//! A view at the end of a terminal that is drawn over while a command runs.
//!
//! A view is plain data: [`LiveView::draw`] makes a frame of it and the time. A thread reads the keys and draws it
//! again, so a clock goes on between two updates.

#[cfg(test)]
pub(super) mod frames;
mod keys;
mod look;
mod screen;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use rustix::process::{Signal, getpid, kill_process};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Nanos};

use self::keys::Key;
pub(super) use self::look::{Look, Row, Tone};
use self::screen::Screen;
use crate::paint::Paint;

/// Time between two looks at the keys.
const KEYS_EVERY: Duration = Duration::from_millis(100);
/// Looks at the keys between two drawings without a change.
const TICKS_BETWEEN_DRAWINGS: u32 = 5;

/// Plain data that becomes a frame.
pub(super) trait LiveView: fmt::Debug + Send + 'static {
    /// Returns the rows that the view takes on a terminal like this.
    fn height(&self, look: Look) -> u16;

    /// Draws the view at the time `now` into `area`.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, now: Moment, look: Look);

    /// Shows the next panel.
    fn show_next_panel(&mut self) {}

    /// Pauses after the present pair, or goes on. Views that cannot do so ignore it.
    fn toggle_pause(&mut self, _now: Moment) {}

    /// Marks the end that the user requested.
    fn end(&mut self);
}

/// A view on the terminal of standard error. Dropping it takes the view away and restores the terminal.
#[derive(Debug)]
pub(super) struct Live<V: LiveView> {
    shared: Arc<SharedStage<V>>,
    scope: Option<Scope>,
}

#[derive(Debug)]
struct SharedStage<V> {
    stage: Mutex<Stage<V>>,
    /// Notified after keys.
    keys: Condvar,
}

#[derive(Debug)]
struct Stage<V> {
    view: V,
    screen: Screen,
    is_changed: bool,
    ticks: u32,
}

impl<V: LiveView> Live<V> {
    /// Shows `view`; gives it back where the terminal cannot show it.
    pub(super) fn start(view: V, paint: &Paint) -> Result<Self, V> {
        if !paint.live {
            return Err(view);
        }
        let Some(screen) = Screen::open(paint.err) else {
            return Err(view);
        };
        let shared = Arc::new(SharedStage {
            stage: Mutex::new(Stage {
                view,
                screen,
                is_changed: true,
                ticks: 0,
            }),
            keys: Condvar::new(),
        });
        let mut scope = Scope::new(&Token::new());
        let of_thread = Arc::clone(&shared);
        let started = scope.worker(Place::default(), "terminal", move |token| async move {
            while !token.is_cancelled() {
                if of_thread.locked().tick() {
                    of_thread.keys.notify_all();
                }
                tokio::select! {
                    () = token.cancelled() => {}
                    () = tokio::time::sleep(KEYS_EVERY) => {}
                }
            }
            Ok(())
        });
        // Without the thread there are no keys, and every update is drawn all the same.
        let scope = started.is_ok().then_some(scope);
        Ok(Self { shared, scope })
    }

    /// Changes the view.
    pub(super) fn update(&self, change: impl FnOnce(&mut V)) {
        let mut stage = self.shared.locked();
        change(&mut stage.view);
        stage.is_changed = true;
        if self.scope.is_none() {
            stage.draw();
        }
    }

    /// Returns a part of the view.
    pub(super) fn read<T>(&self, part: impl FnOnce(&V) -> T) -> T {
        part(&self.shared.locked().view)
    }

    /// Waits for a key, at most for a moment.
    pub(super) fn wait_for_key(&self) {
        let stage = self.shared.locked();
        let waited = self.shared.keys.wait_timeout(stage, KEYS_EVERY);
        drop(waited);
    }

    /// Prints a line whose secrets are masked already above the view.
    pub(super) fn print_masked(&self, text: &str) {
        let mut stage = self.shared.locked();
        stage.screen.clear();
        Paint::print_masked(text);
        stage.draw();
    }
}

impl<V: LiveView> Drop for Live<V> {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            scope.close(Nanos::SECOND);
        }
        self.shared.locked().screen.close();
    }
}

impl<V: LiveView> Stage<V> {
    /// Reads the keys, and draws what has changed. Returns true if there were keys.
    fn tick(&mut self) -> bool {
        let keys = self.screen.keys();
        let has_keys = !keys.is_empty();
        for key in keys {
            self.is_changed = true;
            match key {
                Key::End => {
                    self.view.end();
                    // As if the terminal had sent it: the command ends by the same way.
                    kill_process(getpid(), Signal::INT).ok();
                }
                Key::Pause => self.view.toggle_pause(clock::now()),
                Key::NextPanel => self.view.show_next_panel(),
            }
        }
        self.ticks += 1;
        if self.is_changed || self.ticks >= TICKS_BETWEEN_DRAWINGS {
            self.draw();
        }
        has_keys
    }

    fn draw(&mut self) {
        (self.is_changed, self.ticks) = (false, 0);
        let (view, now) = (&self.view, clock::now());
        self.screen.draw(
            |look| view.height(look),
            |frame, look| view.draw(frame, frame.area(), now, look),
        );
    }
}

impl<V> SharedStage<V> {
    /// A view stays usable where a thread that drew it has panicked.
    fn locked(&self) -> MutexGuard<'_, Stage<V>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
