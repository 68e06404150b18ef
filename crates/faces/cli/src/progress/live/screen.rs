//! The last rows of a terminal, drawn by ratatui.

use std::io::{self, BufWriter, Stderr, Write};

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::crossterm::style::force_color_output;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use super::keys::{self, Key, KeyInput};
use super::look::{Look, shows_unicode};

/// The last rows of a terminal. Between two drawings the cursor is at their beginning, which a terminal moves
/// with the text when its size changes.
#[derive(Debug)]
pub(super) struct Screen {
    /// `None` before the first drawing, and after something else was written.
    terminal: Option<Terminal<CrosstermBackend<BufWriter<Stderr>>>>,
    input: KeyInput,
    size: Size,
    height: u16,
    color: bool,
    unicode: bool,
}

impl Screen {
    /// Takes the terminal; `None` where it cannot be drawn on.
    pub(super) fn open(color: bool) -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        if variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            return None;
        }
        let size = size()?;
        let mut screen = Self {
            terminal: None,
            input: KeyInput::open()?,
            size,
            height: 1,
            color,
            unicode: shows_unicode(variable),
        };
        force_color_output(color);
        if screen.place().is_some() {
            return Some(screen);
        }
        // A terminal that does not report its cursor gets lines.
        screen.close();
        None
    }

    /// Returns the keys that were typed; none while another process has the terminal.
    pub(super) fn keys(&mut self) -> Vec<Key> {
        if !keys::is_shown() || !self.input.is_foreground() {
            return Vec::new();
        }
        if self.input.retake() {
            // The rows of before are above what a shell has written.
            self.terminal = None;
        }
        self.input.keys()
    }

    /// Draws as many rows as `height` requests and the terminal has.
    pub(super) fn draw(
        &mut self,
        height: impl FnOnce(Look) -> u16,
        draw: impl FnOnce(&mut Frame<'_>, Look),
    ) {
        if !keys::is_shown() || !self.input.is_foreground() {
            return;
        }
        let size = size().unwrap_or(self.size);
        if size != self.size {
            self.clear();
            (self.size, self.height) = (size, 1);
        }
        let look = self.look();
        let height = height(look).clamp(1, size.height.max(1));
        if height > self.height {
            self.clear();
            self.height = height;
        }
        if self.terminal.is_none() && self.place().is_none() {
            return;
        }
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        // Progress that cannot be shown is no reason to stop.
        if let Ok(frame) = terminal.draw(|frame| draw(frame, look)) {
            let start = frame.area.as_position();
            terminal.backend_mut().set_cursor_position(start).ok();
        }
    }

    /// Takes the rows away; the cursor is where they began. In the background the terminal is another process's.
    pub(super) fn clear(&mut self) {
        if self.terminal.take().is_some() && keys::is_shown() && self.input.is_foreground() {
            write("\r\x1b[0m\x1b[J");
        }
    }

    /// Takes the rows away and restores the terminal.
    pub(super) fn close(&mut self) {
        self.clear();
        keys::restore();
    }

    /// Makes room for the rows at the cursor.
    fn place(&mut self) -> Option<()> {
        write("\x1b[6n");
        let (column, row) = self.input.cursor()?;
        let row = row + u16::from(column > 0);
        let height = self.height.min(self.size.height);
        let before = if column > 0 { "\n" } else { "" };
        let room = "\n".repeat(usize::from(height.saturating_sub(1)));
        write(&format!("{before}{room}"));
        let top = row.min(self.size.height.saturating_sub(height));
        let area = Rect::new(0, top, self.size.width, height);
        let options = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
        self.terminal = Some(Terminal::with_options(backend, options).ok()?);
        Some(())
    }

    const fn look(&self) -> Look {
        Look {
            columns: self.size.width,
            rows: self.size.height,
            color: self.color,
            unicode: self.unicode,
        }
    }
}

/// Returns the size of the terminal of standard error.
fn size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size::new(size.ws_col, size.ws_row))
}

pub(super) fn write(text: &str) {
    let mut err = io::stderr().lock();
    // What cannot be shown is no reason to stop.
    err.write_all(text.as_bytes())
        .and_then(|()| err.flush())
        .ok();
}
