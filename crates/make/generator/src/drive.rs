//! The loop of push transports.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_payload::BlockSet;
use stillwell_scope::Tasks;
use stillwell_worker::{Backoff, Marks, Opener, Sending, Slice, Wait, Walk, Worker};

use crate::contract::{Failure, Transport};

/// Maximum bytes of one write. Larger ones were no faster, and a slice is written whole
/// before its connection takes the next.
const SLICE_BYTES_MAX: usize = 512 << 10;

/// The same for a worker that takes turns: what is left of a slice when a turn
/// ends is written after it.
const SLICE_BYTES_MAX_IN_TURNS: usize = 64 << 10;

/// The same for events that are stamped: what is copied and marked is still near
/// the CPU when it is written.
const SLICE_BYTES_MAX_STAMPED: usize = 64 << 10;

/// A push transport as an opener.
#[derive(Debug)]
pub(crate) struct Push<T>(pub(crate) T);

impl<T: Transport + Clone + Debug + Send + Sync> Opener for Push<T> {
    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        push_all(self.0.clone(), worker, connections, tasks);
    }
}

/// Starts the tasks of `connections` connections over `transport`.
pub(crate) fn push_all(
    transport: impl Transport,
    worker: &Rc<Worker>,
    connections: u16,
    tasks: &mut Tasks,
) {
    let transport = Rc::new(transport);
    for _ in 0..connections {
        tasks.spawn(drive(Rc::clone(worker), Rc::clone(&transport)));
    }
}

/// One connection, opened again whenever it is lost, until the worker ends.
pub(crate) async fn drive<T: Transport>(worker: Rc<Worker>, transport: Rc<T>) {
    let mut feed = PushFeed {
        walk: Walk::new(&worker.sets),
        left: None,
        marks: worker.marks(),
    };
    let mut backoff = Backoff::new();
    while let Some(connection) = worker.connect(&mut backoff, || transport.connect()).await {
        let Err(failure) = push::<T>(&worker, &connection, &mut feed, &mut backoff).await else {
            worker.wait(Wait::Room, T::finish(connection)).await;
            if !T::IS_MESSAGES {
                worker.shard.count(Outcome::Ok);
            }
            return;
        };
        worker.shard.count(failure.outcome);
        if worker.pause(&mut backoff).await.is_none() {
            return;
        }
    }
}

/// The next bytes of one connection, independent of the socket under it.
#[derive(Debug)]
struct PushFeed {
    walk: Walk,
    /// Taken and not begun when the connection was lost, and what it is of.
    left: Option<(Rc<BlockSet>, Slice)>,
    /// The stamps of its events, if they have any.
    marks: Option<Marks>,
}

/// Sends what is due until the worker ends or the connection is lost. A block
/// that was cut by the loss is not sent again: part of it has arrived.
async fn push<T: Transport>(
    worker: &Worker,
    connection: &T::Connection,
    feed: &mut PushFeed,
    backoff: &mut Backoff,
) -> Result<(), Failure> {
    let bytes_max = if T::IS_MESSAGES {
        0
    } else if worker.takes_turns {
        SLICE_BYTES_MAX_IN_TURNS
    } else if feed.marks.is_some() {
        SLICE_BYTES_MAX_STAMPED
    } else {
        SLICE_BYTES_MAX
    };
    loop {
        let (set, slice) = match feed.left.take() {
            Some(left) => left,
            None => match worker.next_block_of(&mut feed.walk, bytes_max.into()).await {
                Some(taken) => taken,
                None => return Ok(()),
            },
        };
        let sending = match &mut feed.marks {
            // What is stamped is of the first set, and new by its stamps.
            Some(marks) => worker.sending_marked(&set, slice, Some(marks)),
            None => worker.sending_of(&set, slice),
        };
        let mut under_way = UnderWay {
            sending,
            is_over: false,
        };
        let sent = send::<T>(worker, connection, &mut under_way.sending).await;
        under_way.is_over = true;
        if let Err(failure) = sent {
            let left = under_way.sending.untouched();
            drop(under_way);
            worker.finish_slices(u64::from(left.is_none()));
            feed.left = left.map(|left| (set, left));
            return Err(failure);
        }
        worker.finish_slices(1);
        if worker.is_ending() {
            return Ok(());
        }
        backoff.reset();
    }
}

/// Bytes that a connection is sending. If its time ends first, an event whose bytes are
/// only partly in the kernel was not sent: no receiver can get it. (On a lost connection
/// it was sent: a receiver may have a part with its stamp, and its number is not given to
/// another.)
#[derive(Debug)]
struct UnderWay<'a> {
    sending: Sending<'a>,
    is_over: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.sending.give_up();
        }
    }
}

/// Sends all of it, or once the worker is to end the block under way.
async fn send<T: Transport>(
    worker: &Worker,
    connection: &T::Connection,
    sending: &mut Sending<'_>,
) -> Result<(), Failure> {
    while !sending.rest().is_empty() {
        match T::try_send(connection, sending.rest()) {
            Ok(bytes) => {
                sending.wrote(bytes);
                // A file that is full takes part of one, and fails at the rest.
                if T::IS_MESSAGES && sending.rest().is_empty() {
                    worker.shard.count(Outcome::Ok);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let is_block_cut = sending.is_block_cut();
                let room = worker.room(T::writable(connection), is_block_cut);
                let ready = worker.wait(Wait::Room, room).await;
                ready.map_err(|error| T::failure(&error))?;
                if worker.is_ending() {
                    sending.stop_at_block_end();
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let failure = T::failure(&error);
                if !failure.is_good {
                    return Err(failure);
                }
                worker.shard.count(failure.outcome);
            }
        }
    }
    Ok(())
}
