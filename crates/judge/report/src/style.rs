//! Text style of a terminal.

use crate::document::Role;

/// Width of a report in a file.
const FILE_WIDTH: u16 = 100;

/// Text style of a terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Style {
    /// True if colours are supported and wanted.
    pub color: bool,
    /// Columns; plots are drawn to fit, tables are not cut.
    pub width: u16,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            color: false,
            width: FILE_WIDTH,
        }
    }
}

impl Style {
    /// Returns the columns after which lines are broken; `None` for files, whose lines stay whole.
    pub(crate) fn line_max(self) -> Option<usize> {
        (self.width != FILE_WIDTH).then(|| usize::from(self.width))
    }

    /// Returns `text` in the colour of its role.
    pub(crate) fn role(self, role: Role, text: &str) -> String {
        match role {
            Role::Strong => self.paint("1", text),
            Role::Dim => self.paint("2", text),
            Role::Bad => self.paint("31", text),
            Role::Good => self.paint("32", text),
            Role::Warning => self.paint("33", text),
            Role::Invalid => self.paint("35", text),
            Role::Plain | Role::Number | Role::Code => text.to_owned(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
