//! Requests from a source other than the plan.
//!
//! The source encodes its requests on a thread of its own and sends them through a queue to
//! one worker, see [`Feed`]. The worker takes the next request from the queue. The queue is
//! bounded by requests and by bytes, so a fast source waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, Waker};

use stillwell_metric::{LoadShard, SourceCells};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::RequestPlan;
use tokio::select;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::build::{PrepareLoadError, Request, RequestEncoder};

/// Maximum size of the waiting requests of one worker, in KiB.
const WAITING_KIB_MAX: u16 = 63 << 10;

/// Sends requests to one worker. After it is dropped the worker sends the waiting requests
/// and ends.
#[derive(Debug)]
pub struct Feed {
    plan: Arc<LoadPlan>,
    shard: Arc<LoadShard>,
    queue: mpsc::Sender<SuppliedRequest>,
    room: Arc<Semaphore>,
}

/// Reasons why a request was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The worker has ended.
    #[error("the load accepts no more requests")]
    Over,
    /// It cannot be sent.
    #[error(transparent)]
    Request(#[from] PrepareLoadError),
}

/// A request in the queue and its reserved room.
#[derive(Debug)]
pub(super) struct SuppliedRequest {
    request: Arc<Request>,
    _room: OwnedSemaphorePermit,
}

impl Feed {
    /// A feed for the worker of `shard` with room for `waiting_max` requests, and the other
    /// end of its queue.
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

    /// Counters of the source. The source counts its calls and failures there.
    #[must_use]
    pub fn counts(&self) -> &SourceCells {
        &self.shard.source
    }

    /// Encodes `request` and sends it once there is room. It goes to any endpoint of the load.
    ///
    /// # Errors
    /// [`FeedError`] if it cannot be encoded or the worker has ended.
    pub async fn hand_over(&self, request: &RequestPlan) -> Result<(), FeedError> {
        let encoder = RequestEncoder::of_load(&self.plan);
        let request = encoder.lay_out(&self.plan.endpoints[0], request)?;
        let kib = u32::try_from(request.bytes().len() >> 10).unwrap_or(u32::MAX);
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

/// The requests of one worker, on its thread.
#[derive(Debug)]
pub(super) struct Supply {
    queue: RefCell<mpsc::Receiver<SuppliedRequest>>,
    next: RefCell<Option<Arc<Request>>>,
    is_over: Cell<bool>,
    taken: RefCell<TakenRequest>,
    /// Wakers of the waiting pacers.
    pacers: RefCell<Vec<Waker>>,
}

/// Requests that were taken, by the number in their tickets.
#[derive(Debug, Default)]
struct TakenRequest {
    requests: Vec<Arc<Request>>,
    /// Numbers of ended requests. A request stays until its number is reused, because a
    /// report may still need it.
    ended: VecDeque<usize>,
}

/// State of the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SupplyState {
    /// A request is available.
    Some,
    /// No request is available yet.
    None,
    /// The source has ended.
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

    /// Waits for a request or the end of the source. Cancel-safe.
    pub(super) async fn ready(&self) {
        poll_fn(|context| {
            if self.look() == SupplyState::None {
                let received = self.queue.borrow_mut().poll_recv(context);
                let Poll::Ready(handed) = received else {
                    // The queue keeps only the last waker.
                    let mut pacers = self.pacers.borrow_mut();
                    if !pacers.iter().any(|pacer| pacer.will_wake(context.waker())) {
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

    /// Takes the next request; returns its number.
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

    /// Returns the request with this number.
    pub(super) fn request(&self, number: usize) -> Arc<Request> {
        Arc::clone(&self.taken.borrow().requests[number])
    }

    /// Releases the request with this number.
    pub(super) fn ended(&self, number: usize) {
        self.taken.borrow_mut().ended.push_back(number);
    }
}

/// A request to send.
pub(super) enum ChosenRequest<'a> {
    /// A request of the plan.
    Planned(&'a Request),
    /// A request of the source.
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
