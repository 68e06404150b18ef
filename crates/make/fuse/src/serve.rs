//! The loop that answers for a file system.

use std::collections::BTreeMap;
use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use stillwell_scope::{PartError, Token, clock};
use stillwell_units::{Moment, Nanos, count};

use crate::mount::Device;
use crate::protocol::{
    Operation, REPLY_HEAD_BYTES, REQUEST_MAX_BYTES, Request, RequestError, init_reply,
};

/// The longest wait without a look at the token.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// Requests that are answered before the next look at the token.
const BURST_MAX: usize = 256;

/// An implementation of a file system. All calls come from one thread, one after the other, so a
/// slow call delays all others, as the single arm of a disk does.
pub trait FileSystem {
    /// Answers `request`, which came at `now`: puts a body behind what is in `out`
    /// already.
    fn answer(&mut self, request: &Request<'_>, now: Moment, out: &mut Vec<u8>) -> Answer;

    /// Called often, also without requests.
    fn beat(&mut self, now: Moment);

    /// Returns true once if all delayed answers must leave now, because the reason for the delay is
    /// over. Called often.
    fn is_hurried(&mut self) -> bool {
        false
    }

    /// Called when the delayed answer to `unique` is sent or, with `is_given_up`, when its receiver
    /// no longer waits.
    fn finish_delayed(&mut self, unique: u64, is_given_up: bool);
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// With the body, now.
    Done,
    /// With the body, at that moment; then [`FileSystem::finish_delayed`] is called.
    At(Moment),
    /// With an error.
    Failed(Errno),
}

/// Answers requests from `device` until `token` is cancelled or the file system was unmounted.
/// Requests that are still open then fail, and all processes that still use it get an error.
///
/// # Errors
/// The kernel's answer where it no longer hands out requests.
pub fn serve(
    device: Device,
    file_system: &mut impl FileSystem,
    token: &Token,
) -> Result<(), PartError> {
    let mut server = Server {
        device,
        request: vec![0; REQUEST_MAX_BYTES],
        reply: Vec::with_capacity(REQUEST_MAX_BYTES),
        later: Later::default(),
        looked: Moment::new(0),
    };
    while !token.is_cancelled() {
        let now = clock::now();
        let due = match file_system.is_hurried() {
            true => Moment::new(u64::MAX),
            false => now,
        };
        server.send_due(file_system, due)?;
        file_system.beat(now);
        if !server.answer_waiting(file_system)? {
            break;
        }
        server.give_up(file_system, now)?;
        server.wait(token)?;
    }
    file_system.beat(clock::now());
    Ok(())
}

struct Server {
    device: Device,
    request: Vec<u8>,
    reply: Vec<u8>,
    later: Later,
    /// Last look at threads that were interrupted.
    looked: Moment,
}

impl Server {
    /// Waits for a request, for an answer to be due, or for a while.
    fn wait(&self, token: &Token) -> Result<(), PartError> {
        if token.is_cancelled() {
            return Ok(());
        }
        let due = self.later.next().map(|at| at.since(clock::now()));
        let length = due.map_or(LOOK_EVERY, |due| due.min(LOOK_EVERY));
        let mut watched = [PollFd::new(&self.device.0, PollFlags::IN)];
        let length = Timespec::try_from(length.as_duration())?;
        match poll(&mut watched, Some(&length)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers what waits; `false` once the file system has gone.
    fn answer_waiting(&mut self, file_system: &mut impl FileSystem) -> Result<bool, PartError> {
        for _ in 0..BURST_MAX {
            let length = match read(&self.device.0, &mut self.request) {
                Ok(length) => length,
                Err(Errno::AGAIN) => return Ok(true),
                // The sender has given up, or a signal arrived.
                Err(Errno::NOENT | Errno::INTR) => continue,
                Err(Errno::NODEV) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            let now = clock::now();
            self.answer_one(length, file_system, now)?;
            self.send_due(file_system, now)?;
        }
        Ok(true)
    }

    fn answer_one(
        &mut self,
        length: usize,
        file_system: &mut impl FileSystem,
        now: Moment,
    ) -> Result<(), PartError> {
        let out = &mut self.reply;
        out.clear();
        out.resize(REPLY_HEAD_BYTES, 0);
        let request = match Request::parse(&self.request[..length]) {
            Ok(request) => request,
            Err(RequestError { unique: 0, .. }) => return Ok(()),
            Err(error) => return send(&self.device, out, error.unique, Some(Errno::IO)),
        };
        let answer = match request.operation {
            Operation::Init(init) => {
                init_reply(init, out);
                Answer::Done
            }
            Operation::Destroy => Answer::Done,
            Operation::Interrupt { unique } => {
                self.later.interrupt(unique);
                self.looked = Moment::new(0);
                return Ok(());
            }
            _ => file_system.answer(&request, now, out),
        };
        if !request.operation.expects_reply() {
            return Ok(());
        }
        match answer {
            Answer::Done => send(&self.device, out, request.unique, None),
            Answer::Failed(error) => send(&self.device, out, request.unique, Some(error)),
            Answer::At(at) => {
                let waiting = WaitingReply {
                    reply: out.clone(),
                    thread: request.thread,
                    is_interrupted: false,
                };
                self.later.put(at, request.unique, waiting);
                Ok(())
            }
        }
    }

    /// Sends what is due at `moment`.
    fn send_due(
        &mut self,
        file_system: &mut impl FileSystem,
        moment: Moment,
    ) -> Result<(), PartError> {
        while let Some((unique, mut waiting)) = self.later.take_due(moment) {
            file_system.finish_delayed(unique, false);
            send(&self.device, &mut waiting, unique, None)?;
        }
        Ok(())
    }

    /// Answers threads that are being killed. Other signals end no wait, as on a disk. The kernel reports only the first
    /// signal, so interrupted threads are looked at repeatedly.
    fn give_up(&mut self, file_system: &mut impl FileSystem, now: Moment) -> Result<(), PartError> {
        if now.since(self.looked) < LOOK_EVERY {
            return Ok(());
        }
        self.looked = now;
        for (unique, mut waiting) in self.later.take_interrupted(is_ending) {
            file_system.finish_delayed(unique, true);
            // A write has a body: it is done, and a caller that repeats it would write it twice.
            let error = (waiting.len() == REPLY_HEAD_BYTES).then_some(Errno::INTR);
            send(&self.device, &mut waiting, unique, error)?;
        }
        Ok(())
    }
}

/// Sends the answer in `out`, or an error in its place.
fn send(
    device: &Device,
    out: &mut Vec<u8>,
    unique: u64,
    error: Option<Errno>,
) -> Result<(), PartError> {
    if error.is_some() {
        out.truncate(REPLY_HEAD_BYTES);
    }
    let length = count(out.len());
    let error = error.map_or(0, |error| -error.raw_os_error());
    out[..4].copy_from_slice(&length.to_ne_bytes());
    out[4..8].copy_from_slice(&error.to_ne_bytes());
    out[8..REPLY_HEAD_BYTES].copy_from_slice(&unique.to_ne_bytes());
    match write(&device.0, out) {
        // The sender has given up; the loop notices a file system that is gone.
        Ok(_) | Err(Errno::NOENT | Errno::NODEV | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if `thread` is being killed or is gone, and if that is unknown.
fn is_ending(thread: u32) -> bool {
    // Numbers of threads mean others in the `/proc` of another namespace.
    let self_link = fs::read_link("/proc/self").unwrap_or_default();
    if thread == 0 || self_link.as_os_str() != std::process::id().to_string().as_str() {
        return true;
    }
    match fs::read(format!("/proc/{thread}/status")) {
        Ok(status) => has_pending_kill(&String::from_utf8_lossy(&status)),
        Err(_) => true,
    }
}

/// Returns true if a signal that ends the process is pending by the text of `/proc/PID/status`. The kernel makes a SIGKILL
/// of one without a handler, but not of one that writes a core dump: its wait would last until the answer.
fn has_pending_kill(status: &str) -> bool {
    const SIGKILL: u64 = mask_of(&[9]);
    // QUIT, ILL, TRAP, ABRT, BUS, FPE, SEGV, XCPU, XFSZ and SYS.
    const WITH_CORE_DUMP: u64 = mask_of(&[3, 4, 5, 6, 7, 8, 11, 24, 25, 31]);
    let mask = |key: &str| {
        let mut fields = status.lines().filter_map(|line| line.split_once(':'));
        let field = fields.find(|(name, _)| *name == key);
        let mask = field.and_then(|(_, mask)| u64::from_str_radix(mask.trim(), 16).ok());
        mask.unwrap_or(0)
    };
    let pending = mask("SigPnd") | mask("ShdPnd");
    let harmless = mask("SigBlk") | mask("SigIgn") | mask("SigCgt");
    pending & (SIGKILL | (WITH_CORE_DUMP & !harmless)) != 0
}

/// Returns the bits of these signals in a mask of `/proc/PID/status`.
const fn mask_of(signals: &[u32]) -> u64 {
    let mut mask = 0;
    let mut index = 0;
    while index < signals.len() {
        mask |= 1 << (signals[index] - 1);
        index += 1;
    }
    mask
}

/// Answers that are not due yet. The kernel bounds them: each is of a request whose
/// program waits, or of one of its few in the background.
#[derive(Debug, Default)]
struct Later {
    waiting: BTreeMap<(Moment, u64), WaitingReply>,
}

#[derive(Debug)]
struct WaitingReply {
    reply: Vec<u8>,
    /// The thread that waits for it; 0 if unknown.
    thread: u32,
    /// A signal came for that thread.
    is_interrupted: bool,
}

impl Later {
    fn put(&mut self, at: Moment, unique: u64, waiting: WaitingReply) {
        self.waiting.insert((at, unique), waiting);
    }

    fn next(&self) -> Option<Moment> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    fn take_due(&mut self, now: Moment) -> Option<(u64, Vec<u8>)> {
        let first = self.waiting.first_entry()?;
        let (at, unique) = *first.key();
        (at <= now).then(|| (unique, first.remove().reply))
    }

    fn interrupt(&mut self, unique: u64) {
        let mut all = self.waiting.iter_mut();
        if let Some((_, waiting)) = all.find(|((_, of), _)| *of == unique) {
            waiting.is_interrupted = true;
        }
    }

    /// Takes the interrupted answers whose thread is ending.
    fn take_interrupted(&mut self, is_ending: impl Fn(u32) -> bool) -> Vec<(u64, Vec<u8>)> {
        let all = self.waiting.iter();
        let ending = all.filter(|(_, waiting)| waiting.is_interrupted && is_ending(waiting.thread));
        let keys: Vec<(Moment, u64)> = ending.map(|(key, _)| *key).collect();
        let taken = keys.into_iter().filter_map(|key| {
            let waiting = self.waiting.remove(&key)?;
            Some((key.1, waiting.reply))
        });
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(thread: u32) -> WaitingReply {
        WaitingReply {
            reply: Vec::new(),
            thread,
            is_interrupted: false,
        }
    }

    #[test]
    fn only_a_thread_that_is_killed_loses_its_answer() {
        let mut later = Later::default();
        for unique in [1, 2, 3] {
            later.put(Moment::new(30), unique, waiting(7));
        }
        later.interrupt(2);
        // The signal does not kill.
        assert!(later.take_interrupted(|_| false).is_empty());
        let taken = later.take_interrupted(|thread| thread == 7);
        assert_eq!(taken, [(2, Vec::new())]);
        assert!(later.take_interrupted(|_| true).is_empty());
        assert_eq!(later.take_due(Moment::new(30)), Some((1, Vec::new())));
        assert_eq!(later.take_due(Moment::new(30)), Some((3, Vec::new())));
    }

    #[test]
    fn a_pending_kill_is_one_of_the_thread_or_of_its_process() {
        for (of_thread, of_process, is_killed) in [
            ("0000000000000100", "0000000000000000", true),
            ("0000000000000000", "0000000000000100", true),
            ("0000000000000000", "0000000000040000", false),
            ("0000000000000001", "0000000000000000", false),
        ] {
            // Bits of other masks do not count.
            let status = format!(
                "Name:\ta: b\nSigQ:\t1/2\nSigPnd:\t{of_thread}\nShdPnd:\t{of_process}\nSigBlk:\t0000000000000100\n"
            );
            assert_eq!(has_pending_kill(&status), is_killed, "{status}");
        }
    }

    /// The kernel makes no SIGKILL of SIGQUIT: a program in a long `fsync` did not end.
    #[test]
    fn a_pending_signal_with_a_core_dump_kills_without_a_handler() {
        // QUIT is 3, USR1 is 10, TERM is 15, SYS is 31.
        for (signal, blocked, ignored, caught, is_killed) in [
            (3, 0, 0, 0, true),
            (31, 0, 0, 0, true),
            (3, 15, 10, 31, true),
            (3, 3, 0, 0, false),
            (3, 0, 3, 0, false),
            (3, 0, 0, 3, false),
            (9, 9, 9, 9, true),
            (10, 0, 0, 0, false),
            (15, 0, 0, 0, false),
        ] {
            let mask = |signal: u32| signal.checked_sub(1).map_or(0, |bit| 1_u64 << bit);
            let [blocked, ignored, caught] = [blocked, ignored, caught].map(mask);
            for (of_thread, of_process) in [(mask(signal), 0), (0, mask(signal))] {
                let status = format!(
                    "Name:\ta\nSigPnd:\t{of_thread:016x}\nShdPnd:\t{of_process:016x}\nSigBlk:\t{blocked:016x}\n\
                     SigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"
                );
                assert_eq!(has_pending_kill(&status), is_killed, "{status}");
            }
        }
    }

    #[test]
    fn a_thread_that_is_unknown_or_gone_is_ending() {
        assert!(is_ending(0) && is_ending(u32::MAX));
    }

    #[test]
    fn answers_leave_in_the_order_in_which_they_are_due() {
        let mut later = Later::default();
        for (at, unique) in [(30, 1), (10, 2), (20, 3)] {
            later.put(Moment::new(at), unique, waiting(1));
        }
        assert_eq!(later.next(), Some(Moment::new(10)));
        assert_eq!(later.take_due(Moment::new(9)), None);
        let due = |later: &mut Later, at| later.take_due(Moment::new(at)).map(|due| due.0);
        assert_eq!(due(&mut later, 25), Some(2));
        assert_eq!(due(&mut later, 25), Some(3));
        assert_eq!(due(&mut later, 25), None);
        assert_eq!(due(&mut later, 30), Some(1));
        assert_eq!(later.next(), None);
    }
}
