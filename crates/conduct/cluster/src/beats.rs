//! Signs of life of a task, beside which it looks for an abort.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use stillwell_run::Interrupt;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::Nanos;

use crate::job::{ABORT, beat_name};
use crate::pause::pause;
use crate::roles::PartTotals;
use crate::store::JobStore;

/// Time between two signs of life.
const BEAT_EVERY: Nanos = Nanos::from_secs(10);
/// Time between two looks for an abort.
const ABORT_EVERY: Nanos = Nanos::from_millis(500);
/// Time between two looks whether the task has ended.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Ends a task from inside, as SIGTERM does.
const STOP_SIGNAL: i32 = 15;

/// A sign of life of a generator.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SignOfLife {
    /// Requests of a load since the last one.
    pub(crate) requests: u64,
    /// Time since then.
    pub(crate) length: Nanos,
    /// Totals of a part of a run, once that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) totals: Option<PartTotals>,
}

/// Starts a thread that gives signs of life of `task`, which has made `sent` requests, and raises `interrupt` after an abort.
pub(crate) fn start(
    store: &JobStore,
    task: usize,
    interrupt: &Interrupt,
    sent: &Arc<AtomicU64>,
) -> std::io::Result<Scope> {
    let mut scope = Scope::new(&Token::new());
    let (store, interrupt, sent) = (store.clone(), interrupt.clone(), Arc::clone(sent));
    scope.thread(Place::default(), "abort", move |token| {
        let (mut number, mut next) = (0, clock::now());
        let (mut counted, mut since) = (0, clock::now());
        let place = |name: &str| format!("{}/{name}", store.job());
        while !token.is_cancelled() && interrupt.signal().is_none() {
            // A store that does not answer is no reason to end.
            if let Ok(Some(_)) = store.store().get(&place(ABORT)) {
                interrupt.raise(STOP_SIGNAL);
            }
            let now = clock::now();
            if now >= next {
                let all = sent.load(Ordering::Relaxed);
                let beat = SignOfLife {
                    requests: all - counted,
                    length: now.since(since),
                    totals: None,
                };
                let bytes = serde_json::to_vec(&beat).unwrap_or_default();
                let key = place(&beat_name(task, number));
                if store.store().create(&key, &bytes).is_ok() {
                    number += 1;
                    (counted, since) = (all, now);
                    next = now + BEAT_EVERY;
                }
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
