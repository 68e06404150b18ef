//! A few lines at the end of a terminal that are drawn over and taken away.

use std::io::{self, Write};

use super::layout::{Line, Look};

/// Width of a terminal that reports none.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// The last drawn lines. Removed when dropped.
#[derive(Debug)]
pub(super) struct Screen {
    color: bool,
    unicode: bool,
    /// Width of each line on the screen.
    widths: Vec<usize>,
}

impl Screen {
    pub(super) const fn new(color: bool, unicode: bool) -> Self {
        Self {
            color,
            unicode,
            widths: Vec::new(),
        }
    }

    /// Returns the present abilities of the terminal.
    pub(super) fn look(&self) -> Look {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let known = |size: u16| (size > 0).then_some(usize::from(size));
        Look {
            columns: size.and_then(|size| known(size.ws_col)).unwrap_or(COLUMNS),
            rows: size.and_then(|size| known(size.ws_row)).unwrap_or(ROWS),
            color: self.color,
            unicode: self.unicode,
        }
    }

    /// Draws `lines` over the lines on the screen, in one write.
    pub(super) fn draw(&mut self, lines: &[Line], look: Look) {
        let mut text = up(&self.widths, look.columns);
        for line in lines {
            text.push_str(&line.text(look.color));
            text.push_str("\x1b[K\r\n");
        }
        text.push_str("\x1b[J");
        self.widths = lines.iter().map(Line::width).collect();
        write(&text);
    }

    /// Removes everything; the cursor is where the first line began.
    pub(super) fn clear(&mut self) {
        if self.widths.is_empty() {
            return;
        }
        let columns = self.look().columns;
        write(&format!("{}\x1b[J", up(&self.widths, columns)));
        self.widths.clear();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Moves to the beginning of the first of lines so wide, each followed by a new
/// one, on a terminal that may have become narrower since.
fn up(widths: &[usize], columns: usize) -> String {
    let columns = columns.max(1);
    let rows: usize = widths
        .iter()
        .map(|width| width.div_ceil(columns).max(1))
        .sum();
    match rows {
        0 => "\r".to_owned(),
        rows => format!("\r\x1b[{rows}A"),
    }
}

fn write(text: &str) {
    let mut err = io::stderr().lock();
    // What cannot be shown is no reason to stop.
    err.write_all(text.as_bytes())
        .and_then(|()| err.flush())
        .ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_wrap_count_as_often_as_they_do() {
        assert_eq!(up(&[], 80), "\r");
        assert_eq!(up(&[0, 79, 80], 80), "\r\x1b[3A");
        assert_eq!(up(&[0, 79, 80], 40), "\r\x1b[5A");
        assert_eq!(up(&[3], 0), "\r\x1b[3A");
    }
}
