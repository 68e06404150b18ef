//! Line feeds in the events of a template.

use super::{TEMPLATE_DEPTH_MAX, TemplatePart, TemplatePlan, TimeField, TimeText};

impl TemplatePlan {
    /// Returns true if every event ends with a line feed. False where no event can be made.
    #[must_use]
    pub fn ends_with_line_feed(&self) -> bool {
        self.feeds().is_some_and(|feeds| feeds.last == Last::Feed)
    }

    /// Returns true if every event is one line: it has a line feed at its end and nowhere else.
    /// False where no event can be made.
    #[must_use]
    pub fn makes_lines(&self) -> bool {
        self.feeds()
            .is_some_and(|feeds| feeds.last == Last::Feed && !feeds.inside)
    }

    fn feeds(&self) -> Option<Feeds> {
        let mut search = Search {
            plan: self,
            definitions: vec![DefinitionFeeds::Unknown; self.definitions.len()],
            variables: vec![None; self.variables],
        };
        search.part(&self.root, 0)
    }
}

/// Line feeds of a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Feeds {
    /// True if a line feed may be before the last byte.
    inside: bool,
    last: Last,
}

/// The last byte of a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Last {
    /// The part is always empty.
    None,
    /// Always a line feed.
    Feed,
    /// A line feed in some events.
    Varying,
    /// Never a line feed.
    Plain,
}

impl Feeds {
    const EMPTY: Self = Self {
        inside: false,
        last: Last::None,
    };

    const PLAIN: Self = Self {
        inside: false,
        last: Last::Plain,
    };

    fn of_text(text: &str) -> Self {
        let (inside, last) = match text.strip_suffix('\n') {
            Some(before) => (before.contains('\n'), Last::Feed),
            None if text.is_empty() => (false, Last::None),
            None => (text.contains('\n'), Last::Plain),
        };
        Self { inside, last }
    }

    /// This part, and `next` behind it.
    fn then(self, next: Self) -> Self {
        match (self.last, next.last) {
            (Last::None, _) => next,
            (_, Last::None) => self,
            (last, _) => Self {
                inside: self.inside || next.inside || last != Last::Plain,
                last: next.last,
            },
        }
    }

    /// This part in some events, `another` in the rest.
    fn or(self, another: Self) -> Self {
        let last = match (self.last, another.last) {
            (last, same) if last == same => last,
            (Last::None | Last::Plain, Last::None | Last::Plain) => Last::Plain,
            _ => Last::Varying,
        };
        let inside = self.inside || another.inside;
        Self { inside, last }
    }
}

#[derive(Clone, Copy, Debug)]
enum DefinitionFeeds {
    Unknown,
    Open,
    Known(Feeds),
}

struct Search<'p> {
    plan: &'p TemplatePlan,
    definitions: Vec<DefinitionFeeds>,
    variables: Vec<Option<Feeds>>,
}

impl Search<'_> {
    fn definition(&mut self, index: usize, depth: usize) -> Option<Feeds> {
        let definition = *self.definitions.get(index)?;
        match definition {
            DefinitionFeeds::Open => None,
            DefinitionFeeds::Known(feeds) => Some(feeds),
            DefinitionFeeds::Unknown => {
                self.definitions[index] = DefinitionFeeds::Open;
                // Variables of the place of use have no value in the definition.
                let none = vec![None; self.variables.len()];
                let outer = std::mem::replace(&mut self.variables, none);
                let plan = self.plan;
                let feeds = self.part(&plan.definitions[index], depth + 1);
                self.variables = outer;
                self.definitions[index] = DefinitionFeeds::Known(feeds?);
                feeds
            }
        }
    }

    fn part(&mut self, part: &TemplatePart, depth: usize) -> Option<Feeds> {
        if depth > TEMPLATE_DEPTH_MAX {
            return None;
        }
        let depth = depth + 1;
        Some(match part {
            TemplatePart::Text(text) => Feeds::of_text(text),
            TemplatePart::Time(TimeText::Pattern(pattern)) => {
                let fields = pattern.fields.iter().map(|field| match field {
                    TimeField::Text(text) => Feeds::of_text(text),
                    _ => Feeds::PLAIN,
                });
                fields.fold(Feeds::EMPTY, Feeds::then)
            }
            TemplatePart::Sequence(parts) => self.sequence(parts, depth)?,
            TemplatePart::Choice(parts) => {
                let mut all: Option<Feeds> = None;
                for (_, part) in parts.iter().filter(|(weight, _)| *weight > 0) {
                    let feeds = self.part(part, depth)?;
                    all = Some(all.map_or(feeds, |before| before.or(feeds)));
                }
                all?
            }
            TemplatePart::Use(index) => self.definition(*index, depth)?,
            TemplatePart::Repeat {
                low,
                high,
                separator,
                part,
            } => {
                let feeds = self.part(part, depth)?;
                repeated(feeds, Feeds::of_text(separator), (*low, *high))
            }
            TemplatePart::With { variables, part } => self.with(variables, part, depth)?,
            TemplatePart::Variable(index) => (*self.variables.get(*index)?)?,
            TemplatePart::Inside(part) => {
                // A text loses its quotes, any other value is escaped.
                let inside = self.part(part, depth)?.inside;
                let last = if inside { Last::Varying } else { Last::Plain };
                Feeds { inside, last }
            }
            TemplatePart::Join(parts) => {
                let feeds = self.sequence(parts, depth)?;
                let inside = feeds.inside || matches!(feeds.last, Last::Feed | Last::Varying);
                let last = if inside { Last::Varying } else { Last::Plain };
                Feeds { inside, last }
            }
            // In an event with a time before it, a stamp has no room.
            TemplatePart::Stamp => Feeds::EMPTY,
            TemplatePart::Integer { .. }
            | TemplatePart::Decimal { .. }
            | TemplatePart::Counter { .. }
            | TemplatePart::Time(_)
            | TemplatePart::Clock
            | TemplatePart::Random { .. }
            | TemplatePart::Value(_) => Feeds::PLAIN,
        })
    }

    fn sequence(&mut self, parts: &[TemplatePart], depth: usize) -> Option<Feeds> {
        let mut all = Feeds::EMPTY;
        for part in parts {
            all = all.then(self.part(part, depth)?);
        }
        Some(all)
    }

    fn with(
        &mut self,
        variables: &[(usize, TemplatePart)],
        part: &TemplatePart,
        depth: usize,
    ) -> Option<Feeds> {
        let mut values = Vec::new();
        for (index, part) in variables {
            values.push((*index, self.part(part, depth)?));
        }
        let outer = self.variables.clone();
        for (index, feeds) in values {
            *self.variables.get_mut(index)? = Some(feeds);
        }
        let feeds = self.part(part, depth);
        self.variables = outer;
        feeds
    }
}

/// Line feeds of a part that is there `low` to `high` times.
fn repeated(part: Feeds, separator: Feeds, (low, high): (u32, u32)) -> Feeds {
    // A third time adds nothing that the second one has not added.
    let twice = part.then(separator).then(part);
    let several = match (low, high) {
        (_, 0) => return Feeds::EMPTY,
        (_, 1) => part,
        (0 | 1, _) => part.or(twice),
        _ => twice,
    };
    if low == 0 {
        several.or(Feeds::EMPTY)
    } else {
        several
    }
}

#[cfg(test)]
mod tests {
    use super::TemplatePart as P;
    use super::*;

    fn text(text: &str) -> P {
        P::Text(text.to_owned())
    }

    fn plan(parts: Vec<P>) -> TemplatePlan {
        TemplatePlan {
            root: P::Sequence(parts),
            definitions: vec![text("a\nb"), text("c\n"), P::Use(2)],
            variables: 1,
        }
    }

    #[test]
    fn an_event_is_a_line_if_its_only_line_feed_is_at_its_end() {
        let repeat = |low, high, separator: &str| P::Repeat {
            low,
            high,
            separator: separator.to_owned(),
            part: Box::new(text("x")),
        };
        let with = |value: P| P::With {
            variables: vec![(0, value)],
            part: Box::new(P::Variable(0)),
        };
        let choice = |first: P, second: P| P::Choice(vec![(1, first), (1, second), (0, P::Use(0))]);
        let escaped = P::Inside(Box::new(text("\"a\"")));
        // Parts, and two properties: the event ends with a line feed, and is one line.
        for (parts, ends, is_line) in [
            (vec![text("a"), P::Clock, text("\n")], true, true),
            (vec![text("\n")], true, true),
            (vec![text("a"), P::Use(1), text(""), P::Stamp], true, true),
            (vec![repeat(0, 3, ","), text("\n")], true, true),
            (vec![repeat(0, 1, "\n"), text("\n")], true, true),
            (vec![choice(text("a\n"), text("\n"))], true, true),
            (vec![with(text("a")), escaped, text("\n")], true, true),
            (vec![text("a\nb\n")], true, false),
            (vec![P::Use(0), text("\n")], true, false),
            (vec![repeat(1, 2, "\n"), text("\n")], true, false),
            (vec![with(text("a\n")), text("\n")], true, false),
            (vec![text("a")], false, false),
            (vec![text("a\n"), P::Counter { first: 0 }], false, false),
            (
                vec![text("a"), choice(text("b\n"), text("c"))],
                false,
                false,
            ),
            (vec![], false, false),
            // No event can be made.
            (vec![P::Use(2), text("\n")], false, false),
            (vec![P::Use(9), text("\n")], false, false),
            (vec![P::Variable(0), text("\n")], false, false),
        ] {
            let plan = plan(parts);
            let result = (plan.ends_with_line_feed(), plan.makes_lines());
            assert_eq!(result, (ends, is_line), "{:?}", plan.root);
        }
    }
}
