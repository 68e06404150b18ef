//! Events as a template says.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::TemplatePlan;
use stillwell_units::as_usize;

use crate::contract::{Event, Joint, Recipe, Writer};

mod clock;
mod compile;
mod join;
mod machine;
mod program;

use compile::compile;
use machine::Machine;
use program::Program;

/// An event that is too long for a block is drawn again, at most this often in a row.
const ATTEMPTS_MAX: u32 = 1000;

/// Bytes of the shortest event.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    let lengths = plan_of(format).and_then(|plan| plan.lengths().ok());
    // The length of a stamp is added apart.
    lengths.map_or(1, |lengths| as_usize(lengths.low).max(1))
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let Some(plan) = plan_of(recipe.format) else {
        return Box::new(Ended);
    };
    let longest = plan.room().map_or(0, as_usize);
    Box::new(Template {
        program: compile(plan),
        machine: Machine::new(recipe, plan, longest),
        event_max: recipe.event_max,
    })
}

fn plan_of(format: &PayloadFormat) -> Option<&TemplatePlan> {
    match format {
        PayloadFormat::Template(plan) | PayloadFormat::TemplatedJson(plan) => Some(plan),
        _ => None,
    }
}

#[derive(Debug)]
struct Template {
    program: Program,
    machine: Machine,
    event_max: usize,
}

impl Writer for Template {
    fn next(&mut self) -> Option<Event<'_>> {
        let mut attempts = 0;
        loop {
            self.machine.make(&self.program);
            if (1..=self.event_max).contains(&self.machine.len()) {
                break;
            }
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                return None;
            }
        }
        let (bytes, slot) = self.machine.made();
        Some(Event {
            bytes,
            slot,
            units: 1,
            joint: Joint::Frame,
        })
    }
}

/// Marks the end of a format without a template.
#[derive(Debug)]
struct Ended;

impl Writer for Ended {
    fn next(&mut self) -> Option<Event<'_>> {
        None
    }
}
