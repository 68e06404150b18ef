//! Requests that others hand out while a load goes on.
//!
//! Whoever has them works on a thread of his own: there they are laid out, and go
//! through a queue to the one worker that a [`Feed`] leads to. All that is left to
//! that is to take the next one. The queue is bounded by a number of requests and by
//! their bytes, so that who hands out faster than the load sends waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, Waker};

use stillwell_metric::{LoadShard, SourceCells};
use stillwell_plan::{LoadPlan, RequestPlan};
use tokio::select;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::build::{self, PrepareLoadError, Request};

/// What the requests that wait for one worker may take, in KiB.
const WAITING_KIB_MAX: u16 = 63 << 10;

/// Hands requests to one worker of a load, until it is dropped: then the worker
/// sends what still waits, and no more.
#[derive(Debug)]
pub struct Feed {
    plan: Arc<LoadPlan>,
    shard: Arc<LoadShard>,
    queue: mpsc::Sender<SuppliedRequest>,
    room: Arc<Semaphore>,
}

/// Why a request was not handed over.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The worker has ended.
    #[error("the load takes no more requests")]
    Over,
    /// It cannot be sent.
    #[error(transparent)]
    Request(#[from] PrepareLoadError),
}

/// A request in the queue, with the room that it takes there.
#[derive(Debug)]
pub(super) struct SuppliedRequest {
    request: Arc<Request>,
    _room: OwnedSemaphorePermit,
}

impl Feed {
    /// To the worker that counts on `shard`, with room for `waiting_max` requests; and
    /// the other end of the queue.
    pub(super) fn new(
        plan: &Arc<LoadPlan>,
        shard: &Arc<LoadShard>,
        waiting_max: usize,
    ) -> (Self, mpsc::Receiver<SuppliedRequest>) {
        let (queue, receiver) = mpsc::channel(waiting_max.max(1));
        let feed = Self {
            plan: Arc::clone(plan),
            shard: Arc::clone(shard),
            queue,
            room: Arc::new(Semaphore::new(WAITING_KIB_MAX.into())),
        };
        (feed, receiver)
    }

    /// What became of requests so far. Whoever holds the feed counts calls and
    /// failures there; requests count themselves.
    #[must_use]
    pub fn counts(&self) -> &SourceCells {
        &self.shard.source
    }

    /// Lays `request` out and hands it over once there is room. It goes to any endpoint
    /// of the load: what it says of a target is what counts.
    ///
    /// # Errors
    /// [`FeedError`] where it cannot be sent, or nobody sends any more.
    pub async fn hand_over(&self, request: &RequestPlan) -> Result<(), FeedError> {
        let request = build::lay_out(&self.plan, request)?;
        let bytes = request.http3.as_ref().map_or(0, |own| own.whole.len()) + request.bytes.len();
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        let kib = kib.saturating_add(1).min(WAITING_KIB_MAX.into());
        let room = Arc::clone(&self.room).acquire_many_owned(kib);
        // Both arms are cancel-safe.
        let room = select! {
            biased;
            () = self.queue.closed() => return Err(FeedError::Over),
            room = room => room.map_err(|_| FeedError::Over)?,
        };
        let handed = SuppliedRequest {
            request: Arc::new(request),
            _room: room,
        };
        self.queue.send(handed).await.map_err(|_| FeedError::Over)?;
        self.counts().requests.add(1);
        Ok(())
    }

    /// Waits until the worker has ended. Cancel-safe.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }
}

/// Requests for one worker, on its own thread.
#[derive(Debug)]
pub(super) struct Supply {
    queue: RefCell<mpsc::Receiver<SuppliedRequest>>,
    next: RefCell<Option<Arc<Request>>>,
    is_over: Cell<bool>,
    taken: RefCell<TakenRequest>,
    /// The pacers that wait.
    pacers: RefCell<Vec<Waker>>,
}

/// Requests that were taken, by the number in their tickets.
#[derive(Debug, Default)]
struct TakenRequest {
    requests: Vec<Arc<Request>>,
    /// Numbers of those that have ended. They stay until their number is given anew:
    /// somebody may want to tell of them.
    ended: VecDeque<usize>,
}

/// What there is to take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SupplyState {
    /// A request.
    Some,
    /// Nothing yet.
    None,
    /// Nothing any more.
    Over,
}

impl Supply {
    pub(super) fn new(queue: mpsc::Receiver<SuppliedRequest>) -> Self {
        Self {
            queue: RefCell::new(queue),
            next: RefCell::default(),
            is_over: Cell::default(),
            taken: RefCell::default(),
            pacers: RefCell::default(),
        }
    }

    pub(super) fn look(&self) -> SupplyState {
        if self.next.borrow().is_some() {
            return SupplyState::Some;
        }
        if self.is_over.get() {
            return SupplyState::Over;
        }
        let received = self.queue.borrow_mut().try_recv();
        match received {
            Ok(handed) => self.keep(Some(handed)),
            Err(TryRecvError::Empty) => SupplyState::None,
            Err(TryRecvError::Disconnected) => self.keep(None),
        }
    }

    fn keep(&self, handed: Option<SuppliedRequest>) -> SupplyState {
        let Some(handed) = handed else {
            self.is_over.set(true);
            return SupplyState::Over;
        };
        self.next.replace(Some(handed.request));
        SupplyState::Some
    }

    /// Waits until there is something, or never will be. Cancel-safe.
    pub(super) async fn ready(&self) {
        poll_fn(|context| {
            if self.look() == SupplyState::None {
                let received = self.queue.borrow_mut().poll_recv(context);
                let Poll::Ready(handed) = received else {
                    // The queue knows the last one who asked, and no other.
                    let mut pacers = self.pacers.borrow_mut();
                    if !pacers.iter().any(|own| own.will_wake(context.waker())) {
                        pacers.push(context.waker().clone());
                    }
                    return Poll::Pending;
                };
                self.keep(handed);
            }
            let pacers = std::mem::take(&mut *self.pacers.borrow_mut());
            pacers.into_iter().for_each(Waker::wake);
            Poll::Ready(())
        })
        .await;
    }

    /// Takes the next one; gives its number.
    pub(super) fn take(&self) -> Option<usize> {
        if self.look() != SupplyState::Some {
            return None;
        }
        let request = self.next.take()?;
        let mut taken = self.taken.borrow_mut();
        if let Some(number) = taken.ended.pop_front() {
            taken.requests[number] = request;
            return Some(number);
        }
        taken.requests.push(request);
        Some(taken.requests.len() - 1)
    }

    /// The one with this number.
    pub(super) fn request(&self, number: usize) -> Arc<Request> {
        Arc::clone(&self.taken.borrow().requests[number])
    }

    /// The one with this number has ended.
    pub(super) fn ended(&self, number: usize) {
        self.taken.borrow_mut().ended.push_back(number);
    }
}

/// A request that is sent.
pub(super) enum ChosenRequest<'a> {
    /// One of those that were laid out before the load.
    Planned(&'a Request),
    /// One that was handed out.
    Supplied(Arc<Request>),
}

impl Deref for ChosenRequest<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        match self {
            Self::Planned(request) => request,
            Self::Supplied(request) => request,
        }
    }
}

#[cfg(test)]
mod tests;
