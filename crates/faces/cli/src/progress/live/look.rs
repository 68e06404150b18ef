//! Abilities of a terminal, and lines of text for it.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use stillwell_report::document::escape::terminal;
use stillwell_units::{as_usize, count, float_from_u64, floor_to_u64};

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::progress) struct Look {
    pub(in crate::progress) columns: u16,
    pub(in crate::progress) rows: u16,
    /// True where it shows colours, and they are wanted.
    pub(in crate::progress) color: bool,
    /// True where it shows more than ASCII.
    pub(in crate::progress) unicode: bool,
}

/// Meaning of a piece of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::progress) enum Tone {
    /// Nothing special.
    Plain,
    /// A heading.
    Strong,
    /// Less important text.
    Faint,
    /// A failure.
    Bad,
    /// An improvement.
    Good,
    /// A warning.
    Warning,
    /// A bar, a strip or an interval.
    Strip,
}

impl Look {
    /// Returns the style of a tone; none without colours.
    pub(in crate::progress) fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        if !self.color {
            return style;
        }
        match tone {
            Tone::Plain => style,
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Faint => style.add_modifier(Modifier::DIM),
            Tone::Bad => style.fg(Color::Red),
            Tone::Good => style.fg(Color::Green),
            Tone::Warning => style.fg(Color::Yellow),
            Tone::Strip => style.fg(Color::Cyan),
        }
    }
}

/// A line of text that knows its width.
#[derive(Clone, Debug)]
pub(in crate::progress) struct Row {
    line: Line<'static>,
    look: Look,
}

impl Row {
    pub(in crate::progress) fn new(look: Look) -> Self {
        Self {
            line: Line::default(),
            look,
        }
    }

    /// A row of one piece of text.
    pub(in crate::progress) fn of(look: Look, tone: Tone, text: &str) -> Self {
        Self::new(look).and(tone, text)
    }

    /// Adds text; what would steer the terminal becomes a space.
    pub(in crate::progress) fn push(&mut self, tone: Tone, text: &str) {
        let span = Span::styled(terminal(text), self.look.style(tone));
        self.line.push_span(span);
    }

    /// Adds text and returns the row.
    pub(in crate::progress) fn and(mut self, tone: Tone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    /// Adds all of it, or nothing where the row would become wider than that.
    pub(in crate::progress) fn push_within(&mut self, columns: usize, parts: &[(Tone, &str)]) {
        let more: usize = parts
            .iter()
            .map(|(_, text)| Line::from(*text).width())
            .sum();
        if self.width() + more <= columns {
            for (tone, text) in parts {
                self.push(*tone, text);
            }
        }
    }

    /// Adds a bar of `columns`, filled to this share.
    pub(in crate::progress) fn push_bar(&mut self, share: f64, columns: usize) {
        let filled = cells(share, columns);
        let [full, empty] = if self.look.unicode {
            ["━", "─"]
        } else {
            ["=", "-"]
        };
        self.push(Tone::Strip, &full.repeat(filled));
        self.push(Tone::Faint, &empty.repeat(columns - filled));
    }

    /// Adds a filled column that is as long as this share of `columns`.
    pub(in crate::progress) fn push_column(&mut self, share: f64, columns: usize) {
        let full = if self.look.unicode { "█" } else { "#" };
        let least = usize::from(share > 0.0);
        self.push(Tone::Strip, &full.repeat(cells(share, columns).max(least)));
    }

    /// Adds spaces until it is so wide.
    pub(in crate::progress) fn pad_to(&mut self, columns: usize) {
        let missing = columns.saturating_sub(self.width());
        self.push(Tone::Plain, &" ".repeat(missing));
    }

    /// In columns.
    pub(in crate::progress) fn width(&self) -> usize {
        self.line.width()
    }

    pub(in crate::progress) fn into_line(self) -> Line<'static> {
        self.line
    }
}

/// Returns the part of `columns` that a share takes.
fn cells(share: f64, columns: usize) -> usize {
    let cells = share.clamp(0.0, 1.0) * float_from_u64(count(columns).into());
    as_usize(floor_to_u64(cells.round())).min(columns)
}

/// Returns true where the locale's characters are more than ASCII.
pub(in crate::progress) fn shows_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let with = |pairs: &[(&str, &str)]| {
            shows_unicode(|name| {
                let pair = pairs.iter().find(|(key, _)| *key == name);
                pair.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!with(&[]));
        assert!(with(&[("LANG", "C.UTF-8")]));
        assert!(with(&[("LC_ALL", ""), ("LANG", "de_AT.utf8")]));
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]));
    }
}
