//! One line of coloured text that knows its width.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

/// Meaning of a piece of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tone {
    /// Nothing special.
    Plain,
    /// A heading.
    Strong,
    /// Less important text.
    Faint,
    /// A failure.
    Bad,
    /// A warning.
    Warning,
    /// A strip.
    Strip,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Strip => AnsiColor::Cyan.on_default(),
        }
    }
}

/// One line of coloured text that knows its width. Every character of it is
/// taken to be one column wide.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Line {
    parts: Vec<(Tone, String)>,
}

impl Line {
    /// Adds text; what would steer the terminal becomes a space.
    pub(crate) fn push(&mut self, tone: Tone, text: &str) {
        let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        match self.parts.last_mut() {
            Some((last, part)) if *last == tone => part.extend(clean),
            _ => self.parts.push((tone, clean.collect())),
        }
    }

    /// Adds all of it, or nothing where the line would become wider than that.
    pub(crate) fn push_within(&mut self, columns: usize, parts: &[(Tone, &str)]) {
        let more: usize = parts.iter().map(|(_, text)| text.chars().count()).sum();
        if self.width() + more <= columns {
            for (tone, text) in parts {
                self.push(*tone, text);
            }
        }
    }

    /// Adds spaces until it is so wide.
    pub(crate) fn pad_to(&mut self, columns: usize) {
        let missing = columns.saturating_sub(self.width());
        self.push(Tone::Plain, &" ".repeat(missing));
    }

    /// Cuts off what is beyond so many columns.
    pub(crate) fn fit(&mut self, columns: usize) {
        let mut left = columns;
        for (_, part) in &mut self.parts {
            let width = part.chars().count();
            if width > left {
                *part = part.chars().take(left).collect();
            }
            left -= width.min(left);
        }
        self.parts.retain(|(_, part)| !part.is_empty());
    }

    /// In columns.
    pub(crate) fn width(&self) -> usize {
        self.parts
            .iter()
            .map(|(_, part)| part.chars().count())
            .sum()
    }

    /// As it is written, coloured where that is wanted.
    pub(crate) fn text(&self, color: bool) -> String {
        let mut text = String::new();
        for (tone, part) in &self.parts {
            let style = tone.style();
            if color && style != Style::new() {
                write!(text, "{style}{part}{style:#}").unwrap_or_default();
            } else {
                text.push_str(part);
            }
        }
        text
    }
}
