//! Input of a terminal: keys, and its reports of the place of the cursor.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use stillwell_scope::clock;
use stillwell_units::Nanos;

/// Longest wait for a report of the terminal.
const REPORT_WITHIN: Nanos = Nanos::from_millis(500);
/// Unread bytes beyond these are dropped.
const TYPED_MAX: usize = 256;

/// The terminal to be restored, and its modes before; `None` while no view is shown.
static RESTORED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);
static PANICS: Once = Once::new();

/// A key with a meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Key {
    /// `q`.
    End,
    /// `p`.
    Pause,
    /// Tab.
    NextPanel,
}

impl Key {
    const fn of(byte: u8) -> Option<Self> {
        match byte {
            b'q' | b'Q' => Some(Self::End),
            b'p' | b'P' => Some(Self::Pause),
            b'\t' => Some(Self::NextPanel),
            _ => None,
        }
    }
}

/// A terminal that passes keys on at once and does not print them. It sends SIGINT for Ctrl-C as before.
#[derive(Debug)]
pub(super) struct KeyInput {
    file: File,
    typed: Vec<u8>,
}

impl KeyInput {
    /// Takes standard input if that is a terminal, else the terminal of the process; `None` without one, or
    /// if another process has it in the foreground.
    pub(super) fn open() -> Option<Self> {
        let stdin = io::stdin();
        let file = match stdin.is_terminal() {
            true => File::from(stdin.as_fd().try_clone_to_owned().ok()?),
            false => OpenOptions::new().read(true).open("/dev/tty").ok()?,
        };
        let input = Self {
            file,
            typed: Vec::new(),
        };
        if !input.is_foreground() {
            return None;
        }
        let before = tcgetattr(&input.file).ok()?;
        let kept = input.file.as_fd().try_clone_to_owned().ok()?;
        restored().replace((kept, before));
        PANICS.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                next(panic);
            }));
        });
        input.take()?;
        Some(input)
    }

    /// Sets the modes of the terminal.
    fn take(&self) -> Option<()> {
        let mut modes = tcgetattr(&self.file).ok()?;
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&self.file, OptionalActions::Now, &modes).ok()
    }

    /// Returns true if this process may use the terminal; one in the background would be stopped.
    pub(super) fn is_foreground(&self) -> bool {
        is_foreground(&self.file)
    }

    /// Takes the terminal again after a shell had it. Returns true if it had.
    pub(super) fn retake(&self) -> bool {
        let modes = tcgetattr(&self.file);
        let was_away = modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
        was_away && self.take().is_some()
    }

    /// Returns the keys that were typed since.
    pub(super) fn keys(&mut self) -> Vec<Key> {
        self.read();
        let typed = std::mem::take(&mut self.typed);
        // What a key beyond the letters sends begins with an escape and is no letter.
        let letters = match typed.iter().position(|byte| *byte == 0x1b) {
            Some(at) => &typed[..at],
            None => &typed,
        };
        letters.iter().filter_map(|byte| Key::of(*byte)).collect()
    }

    /// Returns column and row of the cursor from 0, once the terminal has reported them.
    pub(super) fn cursor(&mut self) -> Option<(u16, u16)> {
        let until = clock::now() + REPORT_WITHIN;
        loop {
            self.read();
            if let Some(place) = take_report(&mut self.typed) {
                return Some(place);
            }
            let left = until.since(clock::now());
            if left == Nanos::ZERO {
                return None;
            }
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            let timeout = Timespec::try_from(left.as_duration()).ok()?;
            match poll(&mut ready, Some(&timeout)) {
                Err(error) if error != rustix::io::Errno::INTR => return None,
                // The terminal is closed.
                _ if ready[0].revents().contains(PollFlags::HUP) => return None,
                _ => {}
            }
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = self.file.read(&mut bytes) {
            let room = TYPED_MAX.saturating_sub(self.typed.len()).min(count);
            self.typed.extend_from_slice(&bytes[..room]);
        }
    }
}

/// Restores the terminal and shows its cursor, once for each view. Returns true if it was not done before. In the
/// background it leaves the terminal as the shell has set it.
pub(super) fn restore() -> bool {
    let Some((terminal, before)) = restored().take() else {
        return false;
    };
    if is_foreground(&terminal) {
        // The cursor is at the beginning of the view: its end shows nothing more.
        super::screen::write("\x1b[0m\x1b[J\x1b[?25h");
        tcsetattr(&terminal, OptionalActions::Now, &before).ok();
    }
    true
}

/// Returns true if this process may set the modes of `terminal`; one in the background would be stopped (SIGTTOU).
fn is_foreground(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// Returns true while a view is shown.
pub(super) fn is_shown() -> bool {
    restored().is_some()
}

fn restored() -> std::sync::MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    RESTORED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a report `ESC [ ROW ; COLUMN R` out of `typed`.
fn take_report(typed: &mut Vec<u8>) -> Option<(u16, u16)> {
    let start = typed.windows(2).position(|pair| pair == b"\x1b[")?;
    let end = start + typed[start..].iter().position(|byte| *byte == b'R')?;
    let report = typed[start + 2..end].to_vec();
    typed.drain(start..=end);
    let (row, column) = std::str::from_utf8(&report).ok()?.split_once(';')?;
    let from_zero = |text: &str| text.parse::<u16>().ok()?.checked_sub(1);
    Some((from_zero(column)?, from_zero(row)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_taken_out_of_what_was_typed() {
        let mut typed = b"p\x1b[12;1Rq".to_vec();
        assert_eq!(take_report(&mut typed), Some((0, 11)));
        assert_eq!(typed, b"pq");
        assert_eq!(take_report(&mut typed), None);
        for broken in [
            "\x1b[12;1",
            "\x1b[R",
            "\x1b[0;0R",
            "\x1b[99999;1R",
            "\x1b[x;1R",
            "R\x1b[",
        ] {
            assert_eq!(
                take_report(&mut broken.as_bytes().to_vec()),
                None,
                "{broken:?}"
            );
        }
    }

    #[test]
    fn three_keys_have_a_meaning() {
        let keys: Vec<Key> = b"aq\tp\n"
            .iter()
            .filter_map(|byte| Key::of(*byte))
            .collect();
        assert_eq!(keys, [Key::End, Key::NextPanel, Key::Pause]);
    }
}
