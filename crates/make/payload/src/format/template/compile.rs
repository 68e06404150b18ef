//! Compiles plans into programs: adjacent texts become one, and everything that is known before is
//! computed once instead of with each event.

use stillwell_plan::payload::{TemplatePart, TemplatePlan};

use super::join;
use super::program::{Pick, Program, Step, TABLE_MAX};
use crate::text::Fragment;

/// The program of `plan`, which has [`TemplatePlan::lengths`].
pub(super) fn compile(plan: &TemplatePlan) -> Program {
    let mut compiler = Compiler::default();
    let definitions = plan.definitions.iter();
    let definitions = definitions.map(|part| compiler.part(part)).collect();
    Program {
        root: compiler.part(&plan.root),
        definitions,
        counters: compiler.counters,
        clocks: compiler.clocks,
    }
}

#[derive(Debug, Default)]
struct Compiler {
    counters: Vec<u64>,
    clocks: usize,
}

impl Compiler {
    fn part(&mut self, part: &TemplatePart) -> Step {
        match part {
            TemplatePart::Text(text) => Step::text(text.as_bytes()),
            TemplatePart::Sequence(parts) => {
                all(parts.iter().map(|part| self.part(part)).collect())
            }
            TemplatePart::Choice(parts) => self.choice(parts),
            TemplatePart::Integer { low, high, digits } => integer(*low, *high, *digits),
            TemplatePart::Decimal {
                low,
                high,
                decimals,
            } => Step::Decimal {
                low: *low,
                high: *high,
                decimals: *decimals,
            },
            TemplatePart::Counter { first } => {
                self.counters.push(*first);
                Step::Counter(self.counters.len() - 1)
            }
            TemplatePart::Time(text) => Step::Time(text.clone()),
            TemplatePart::Clock => {
                self.clocks += 1;
                Step::Clock(self.clocks - 1)
            }
            TemplatePart::Random { alphabet, count } => Step::Random {
                alphabet: *alphabet,
                count: *count,
            },
            TemplatePart::Value(value) => Step::Value(*value),
            TemplatePart::Use(index) => Step::Use(*index),
            TemplatePart::Repeat {
                low,
                high,
                separator,
                part,
            } => Step::Repeat {
                low: *low,
                high: *high,
                separator: separator.as_bytes().into(),
                step: Box::new(self.part(part)),
            },
            TemplatePart::With { variables, part } => {
                let variables = variables.iter();
                Step::With {
                    variables: variables
                        .map(|(index, part)| (*index, self.part(part)))
                        .collect(),
                    step: Box::new(self.part(part)),
                }
            }
            TemplatePart::Variable(index) => Step::Variable(*index),
            TemplatePart::Inside(part) => inside(self.part(part)),
            TemplatePart::Join(parts) => {
                Step::Join(parts.iter().map(|part| self.part(part)).collect())
            }
            TemplatePart::Stamp => Step::Stamp,
        }
    }

    fn choice(&mut self, parts: &[(u32, TemplatePart)]) -> Step {
        let chosen: Vec<(u64, Step)> = parts
            .iter()
            .filter(|(weight, _)| *weight > 0)
            .map(|(weight, part)| (u64::from(*weight), self.part(part)))
            .collect();
        let divisor = chosen.iter().fold(0, |sum, (weight, _)| gcd(sum, *weight));
        let (weights, steps): (Vec<u64>, Vec<Step>) = chosen
            .into_iter()
            .map(|(weight, step)| (weight / divisor.max(1), step))
            .unzip();
        pick(&weights, steps)
    }
}

/// Draws one of `steps`.
fn pick(weights: &[u64], steps: Vec<Step>) -> Step {
    if weights.iter().sum::<u64>() > TABLE_MAX {
        let mut sum = 0;
        let sums = weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        return Step::Pick(Pick::Sums(sums.collect()), steps.into());
    }
    let shares = (0_u16..).zip(weights).flat_map(|(index, weight)| {
        std::iter::repeat_n(index, usize::try_from(*weight).unwrap_or(0))
    });
    let table: Box<[u16]> = shares.collect();
    let short = |index: &u16| match &steps[usize::from(*index)] {
        Step::Short(fragment) => Some(*fragment),
        _ => None,
    };
    match table.iter().map(short).collect::<Option<Box<[Fragment]>>>() {
        Some(fragments) => Step::PickShort(fragments),
        None => Step::Pick(Pick::Table(table), steps.into()),
    }
}

fn gcd(left: u64, right: u64) -> u64 {
    if right == 0 {
        left
    } else {
        gcd(right, left % right)
    }
}

fn integer(low: i64, high: i64, digits: u8) -> Step {
    let small = |value: i64| u16::try_from(value).ok().filter(|value| *value < 1000);
    match (small(low), small(high)) {
        (Some(least), Some(most)) if digits <= 1 => Step::Small {
            low: least,
            width: most - least + 1,
        },
        _ => Step::Integer { low, high, digits },
    }
}

/// `steps` one after the other.
fn all(steps: Vec<Step>) -> Step {
    let mut flat: Vec<Step> = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    flatten(steps, &mut flat, &mut text);
    end_text(&mut flat, &mut text);
    if flat.len() == 1 {
        return flat.remove(0);
    }
    Step::All(flat.into())
}

fn flatten(steps: impl IntoIterator<Item = Step>, flat: &mut Vec<Step>, text: &mut Vec<u8>) {
    for step in steps {
        if let Some(more) = step.as_text() {
            text.extend_from_slice(more);
        } else if let Step::All(inner) = step {
            flatten(inner, flat, text);
        } else {
            end_text(flat, text);
            flat.push(step);
        }
    }
}

fn end_text(flat: &mut Vec<Step>, text: &mut Vec<u8>) {
    if !text.is_empty() {
        flat.push(Step::text(text));
        text.clear();
    }
}

/// The inside of the JSON value that `step` makes.
fn inside(step: Step) -> Step {
    if let Some(text) = step.as_text() {
        let mut text = text.to_vec();
        join::unwrap(&mut text);
        return Step::text(&text);
    }
    match step {
        Step::PickShort(fragments) => {
            let steps = fragments
                .iter()
                .map(|fragment| inside(Step::Short(*fragment)));
            let steps: Vec<Step> = steps.collect();
            let weights = vec![1; steps.len()];
            pick(&weights, steps)
        }
        Step::Pick(pick, steps) => Step::Pick(pick, steps.into_iter().map(inside).collect()),
        Step::Small { .. } | Step::Integer { .. } | Step::Decimal { .. } | Step::Counter(_) => step,
        Step::Variable(index) => Step::InsideVariable(index),
        Step::All(steps) => inside_all(steps),
        right => Step::Inside(Box::new(right)),
    }
}

/// Steps between two quotes, none of which can leave the text that they begin
/// and end.
fn inside_all(steps: Box<[Step]>) -> Step {
    let (first, last) = (steps.first(), steps.last());
    let first = first
        .and_then(Step::as_text)
        .and_then(|text| text.strip_prefix(b"\""));
    let last = last
        .and_then(Step::as_text)
        .and_then(|text| text.strip_suffix(b"\""));
    let (Some(first), Some(last)) = (first, last) else {
        return Step::Inside(Box::new(Step::All(steps)));
    };
    let (first, last) = (Step::text(first), Step::text(last));
    let middle = steps[1..steps.len() - 1].iter().cloned();
    all([first].into_iter().chain(middle).chain([last]).collect())
}
