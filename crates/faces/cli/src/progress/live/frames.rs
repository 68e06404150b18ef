//! Frames of views as text, for tests.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use stillwell_units::Moment;

use super::{LiveView, Look};

/// A terminal of so many columns and rows, without colours.
pub(in crate::progress) const fn look(columns: u16, rows: u16) -> Look {
    Look {
        columns,
        rows,
        color: false,
        unicode: true,
    }
}

/// Draws `view` as high as it is, and returns its rows without the spaces at their ends.
pub(in crate::progress) fn drawn(view: &impl LiveView, now: Moment, look: Look) -> String {
    let height = view.height(look);
    assert!(height <= look.rows, "{height} rows on {look:?}");
    let backend = TestBackend::new(look.columns, height);
    let mut terminal = Terminal::new(backend).unwrap();
    terminal
        .draw(|frame| view.draw(frame, frame.area(), now, look))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(look.columns).max(1));
    let rows = rows.map(|cells| {
        let row: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}
