//! Signs of life of a task, beside which it looks for an abort.

use stillwell_run::Interrupt;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::Nanos;

use crate::job::{ABORT, beat_name};
use crate::pause::pause;
use crate::store::JobStore;

/// Time between two signs of life.
const BEAT_EVERY: Nanos = Nanos::from_secs(10);
/// Time between two looks for an abort.
const ABORT_EVERY: Nanos = Nanos::from_millis(500);
/// Time between two looks whether the task has ended.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Ends a task from inside, as SIGTERM does.
const STOP_SIGNAL: i32 = 15;

/// Starts a thread that gives signs of life of `task`, and raises `interrupt` after an abort.
pub(crate) fn start(
    store: &JobStore,
    task: usize,
    interrupt: &Interrupt,
) -> std::io::Result<Scope> {
    let mut scope = Scope::new(&Token::new());
    let (store, interrupt) = (store.clone(), interrupt.clone());
    scope.thread(Place::default(), "abort", move |token| {
        let (mut beat, mut next) = (0, clock::now());
        let place = |name: &str| format!("{}/{name}", store.job());
        while !token.is_cancelled() && interrupt.signal().is_none() {
            // A store that does not answer is no reason to end.
            if let Ok(Some(_)) = store.store().get(&place(ABORT)) {
                interrupt.raise(STOP_SIGNAL);
            }
            if clock::now() >= next
                && store
                    .store()
                    .create(&place(&beat_name(task, beat)), b"")
                    .is_ok()
            {
                beat += 1;
                next = clock::now() + BEAT_EVERY;
            }
            let mut rest = ABORT_EVERY;
            while rest > Nanos::ZERO && !token.is_cancelled() && interrupt.signal().is_none() {
                pause(&interrupt, LOOK_EVERY);
                rest = rest.saturating_sub(LOOK_EVERY);
            }
        }
        Ok(())
    })?;
    Ok(scope)
}
