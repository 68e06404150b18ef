//! Carries programs out.

use std::fmt;

use stillwell_plan::payload::{Alphabet, TemplatePlan, TemplateValue, TimeField, TimeText};

use super::clock::AdvancingClock;
use super::join::{escaped, is_plain, is_text, join};
use super::program::{Pick, Program, Step};
use crate::contract::Recipe;
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Messages, PieceWriter, address, application, path, word};
use crate::{SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};

/// Bytes that a log message may have.
const MESSAGE_MAX: usize = 512;

/// The state of a running program.
pub(super) struct Machine {
    random: Random,
    clock: Clock,
    messages: Messages,
    clocks: Vec<AdvancingClock>,
    counters: Vec<u64>,
    variables: Vec<Vec<u8>>,
    slots: SlotUse,
    slot: Option<usize>,
    /// Number of values under construction that do not go straight into the event.
    asides: u32,
    /// The event, then room for what a writer copies beyond.
    buffer: Box<[u8]>,
    at: usize,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine for events that take up to `longest` bytes while they are made.
    pub(super) fn new(recipe: &Recipe<'_>, plan: &TemplatePlan, longest: usize) -> Self {
        let mut random = Random::new(recipe.seed.derive("values", 0));
        // Variables are made where the event goes on.
        let room = longest.saturating_mul(2) + 2 * EventBuffer::CAPACITY;
        Self {
            clock: Clock::new(&mut random),
            random,
            messages: Messages::new(recipe.seed),
            clocks: Vec::new(),
            counters: Vec::new(),
            variables: vec![Vec::new(); plan.variables],
            slots: recipe.slots,
            slot: None,
            asides: 0,
            buffer: vec![0; room].into(),
            at: 0,
        }
    }

    /// Makes the next event.
    pub(super) fn make(&mut self, program: &Program) {
        if self.clocks.len() < program.clocks || self.counters.len() < program.counters.len() {
            let clocks = 0..program.clocks;
            self.clocks = clocks
                .map(|_| AdvancingClock::new(&mut self.random))
                .collect();
            self.counters.clone_from(&program.counters);
        }
        self.at = 0;
        self.slot = None;
        self.clock.advance(&mut self.random);
        self.run(program, &program.root);
    }

    /// Bytes of the event that was made.
    pub(super) const fn len(&self) -> usize {
        self.at
    }

    /// The event that was made, and its slot.
    pub(super) fn made(&self) -> (&[u8], Option<usize>) {
        (&self.buffer[..self.at], self.slot)
    }

    fn run(&mut self, program: &Program, step: &Step) {
        match step {
            Step::Short(fragment) => self.write(|out, _, _| out.fragment(fragment)),
            Step::Long(text) => self.bytes(text),
            Step::All(steps) => {
                for step in steps {
                    self.run(program, step);
                }
            }
            Step::PickShort(fragments) => self.write(|out, random, _| {
                out.fragment(&fragments[below(random, fragments.len())]);
            }),
            Step::Pick(pick, steps) => {
                let index = draw(pick, &mut self.random);
                self.run(program, &steps[index]);
            }
            Step::Small { low, width } => {
                self.write(|out, random, _| out.number(low + random.below(*width)));
            }
            Step::Use(index) => self.run(program, &program.definitions[*index]),
            Step::Variable(index) => self.variable(*index, false),
            Step::InsideVariable(index) => self.variable(*index, true),
            Step::Value(TemplateValue::Message) => self.message(),
            Step::Value(value) => self.value(*value),
            Step::Clock(index) => {
                let text = *self.clocks[*index].tick(&mut self.random);
                self.write(|out, _, _| out.fixed(&text));
            }
            Step::Time(text) => self.time(text),
            Step::Repeat { .. } | Step::With { .. } | Step::Inside(_) | Step::Join(_) => {
                self.compound(program, step);
            }
            simple => self.simple(simple),
        }
    }

    /// Runs a step that has parts.
    fn compound(&mut self, program: &Program, step: &Step) {
        match step {
            Step::Repeat {
                low,
                high,
                separator,
                step,
            } => {
                let count = self.random.between(u64::from(*low), u64::from(*high));
                for index in 0..count {
                    if index > 0 {
                        self.bytes(separator);
                    }
                    self.run(program, step);
                }
            }
            Step::With { variables, step } => {
                for (index, step) in variables {
                    let start = self.at;
                    self.aside(program, step);
                    let variable = &mut self.variables[*index];
                    variable.clear();
                    variable.extend_from_slice(&self.buffer[start..self.at]);
                    self.at = start;
                }
                self.run(program, step);
            }
            Step::Inside(step) => {
                let start = self.at;
                self.aside(program, step);
                self.unwrap_from(start);
            }
            Step::Join(steps) => {
                let start = self.at;
                for step in steps {
                    let middle = self.at;
                    self.aside(program, step);
                    self.at = join(&mut self.buffer, start, middle, self.at);
                }
            }
            _ => {}
        }
    }

    /// Makes what goes not straight into the event: a stamp in it would be
    /// moved.
    fn aside(&mut self, program: &Program, step: &Step) {
        self.asides += 1;
        self.run(program, step);
        self.asides -= 1;
    }

    /// Makes the value from `start` on the inside of a text.
    fn unwrap_from(&mut self, start: usize) {
        let value = &self.buffer[start..self.at];
        if is_text(value) {
            self.buffer.copy_within(start + 1..self.at - 1, start);
            self.at -= 2;
        } else if !is_plain(value) {
            let text = escaped(value);
            self.at = start;
            self.bytes(&text);
        }
    }

    fn variable(&mut self, index: usize, is_inside: bool) {
        let variable = &self.variables[index];
        let value = match variable.as_slice() {
            [b'"', inner @ .., b'"'] if is_inside => inner,
            value => value,
        };
        let start = self.at;
        self.buffer[start..start + value.len()].copy_from_slice(value);
        self.at += value.len();
        if is_inside && value.len() == variable.len() {
            self.unwrap_from(start);
        }
    }

    /// Runs a step without parts that is not among the frequent ones.
    fn simple(&mut self, step: &Step) {
        match step {
            Step::Integer { low, high, digits } => {
                self.write(|out, random, _| {
                    integer(out, between(random, *low, *high), usize::from(*digits));
                });
            }
            Step::Decimal {
                low,
                high,
                decimals,
            } => self.write(|out, random, _| {
                let value = between(random, *low, *high);
                let scale = 10_u64.pow(u32::from(*decimals));
                if value < 0 {
                    out.fixed(b"-");
                }
                out.integer(value.unsigned_abs() / scale);
                out.fixed(b".");
                padded(out, value.unsigned_abs() % scale, usize::from(*decimals));
            }),
            Step::Counter(index) => {
                let value = self.counters[*index];
                self.counters[*index] = value.wrapping_add(1);
                self.write(|out, _, _| out.integer(value));
            }
            Step::Random { alphabet, count } => self.random(*alphabet, usize::from(*count)),
            Step::Stamp => self.stamp(),
            _ => {}
        }
    }

    fn stamp(&mut self) {
        if self.slots == SlotUse::None || self.asides > 0 || self.slot.is_some() {
            return;
        }
        let mut stamp = [b' '; SLOT_WIDTH + 1];
        stamp[..SLOT_WIDTH].copy_from_slice(&SLOT_PLACEHOLDER);
        self.slot = Some(self.at);
        self.bytes(&stamp);
    }

    /// The generator is a local variable meanwhile, which stays in registers.
    #[inline(never)]
    fn message(&mut self) {
        let mut random = self.random.clone();
        let mut out = PieceWriter::at(&mut self.buffer, self.at);
        self.messages
            .write(&mut out, &mut random, MESSAGE_MAX, SlotUse::None);
        self.at += out.len();
        self.random = random;
    }

    fn value(&mut self, value: TemplateValue) {
        self.write(|out, random, messages| match value {
            TemplateValue::Application => out.fragment(application(random)),
            TemplateValue::Host => out.fragment(messages.vocabulary.host(random)),
            TemplateValue::Ipv4 => address(out, random),
            TemplateValue::Ipv6 => {
                // What RFC 3849 keeps for examples.
                out.fixed(b"2001:0db8");
                for _ in 0..6 {
                    out.fixed(b":");
                    out.random_hexadecimal_4(random);
                }
            }
            TemplateValue::Message => {}
            TemplateValue::Path => path(out, random),
            TemplateValue::User => out.fragment(messages.vocabulary.user(random)),
            TemplateValue::Uuid => out.random_uuid(random),
            TemplateValue::Word => out.fragment(word(random)),
        });
    }

    fn random(&mut self, alphabet: Alphabet, count: usize) {
        let mut left = count;
        while left > 0 {
            let now = left.min(EventBuffer::CAPACITY / 2);
            self.write(|out, random, _| {
                out.words(now, || letters(random.word(), alphabet).to_le_bytes());
            });
            left -= now;
        }
    }

    fn time(&mut self, text: &TimeText) {
        let clock = &self.clock;
        let mut out = PieceWriter::at(&mut self.buffer, self.at);
        match text {
            TimeText::Rfc3339 => clock.rfc3339(&mut out),
            TimeText::CommonLog => clock.common_log(&mut out),
            TimeText::Rfc3164 => clock.rfc3164(&mut out),
            TimeText::Epoch { digits: 0 } => clock.epoch_seconds(&mut out),
            TimeText::Epoch { digits } => {
                clock.epoch_seconds(&mut out);
                fraction(clock, &mut out, *digits);
            }
            TimeText::Pattern(pattern) => {
                for field in &pattern.fields {
                    if let TimeField::Text(text) = field {
                        self.at += out.len();
                        bytes(&mut self.buffer, &mut self.at, text.as_bytes());
                        out = PieceWriter::at(&mut self.buffer, self.at);
                    } else {
                        time_field(clock, &mut out, field);
                    }
                }
            }
        }
        self.at += out.len();
    }

    /// Writes pieces, at most 512 bytes.
    #[inline(always)]
    fn write(&mut self, write: impl FnOnce(&mut PieceWriter<'_>, &mut Random, &Messages)) {
        let mut out = PieceWriter::at(&mut self.buffer, self.at);
        write(&mut out, &mut self.random, &self.messages);
        self.at += out.len();
    }

    #[inline(always)]
    fn bytes(&mut self, text: &[u8]) {
        bytes(&mut self.buffer, &mut self.at, text);
    }
}

#[inline(always)]
fn bytes(buffer: &mut [u8], at: &mut usize, text: &[u8]) {
    buffer[*at..*at + text.len()].copy_from_slice(text);
    *at += text.len();
}

fn draw(pick: &Pick, random: &mut Random) -> usize {
    match pick {
        Pick::Table(table) => usize::from(table[below(random, table.len())]),
        Pick::Sums(sums) => {
            let all = sums.last().copied().unwrap_or(1);
            let drawn = random.between(0, all - 1);
            sums.partition_point(|sum| *sum <= drawn)
        }
    }
}

/// Evenly one of 0 to `bound` - 1; `bound` is at most 4096.
#[inline(always)]
fn below(random: &mut Random, bound: usize) -> usize {
    usize::from(random.below(u16::try_from(bound).unwrap_or(1)))
}

/// Evenly one of `low` to `high`.
#[inline(always)]
fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    let width = high.wrapping_sub(low).cast_unsigned();
    low.wrapping_add(random.between(0, width).cast_signed())
}

#[inline(always)]
fn integer(out: &mut PieceWriter<'_>, value: i64, digits: usize) {
    if value < 0 {
        out.fixed(b"-");
    }
    if digits <= 1 {
        out.integer(value.unsigned_abs());
    } else {
        padded(out, value.unsigned_abs(), digits);
    }
}

/// `value` in at least `digits` digits.
fn padded(out: &mut PieceWriter<'_>, value: u64, digits: usize) {
    let has = value.checked_ilog10().unwrap_or(0) + 1;
    for _ in usize::try_from(has).unwrap_or(0)..digits {
        out.fixed(b"0");
    }
    out.integer(value);
}

/// Eight letters out of an alphabet, one from each byte.
#[inline(always)]
fn letters(word: u64, alphabet: Alphabet) -> u64 {
    const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    match alphabet {
        Alphabet::Digits => scaled(word, 10) + 0x3030_3030_3030_3030,
        Alphabet::Letters => scaled(word, 26) + 0x6161_6161_6161_6161,
        Alphabet::Hexadecimal => {
            crate::text::hexadecimal_word(u32::try_from(word >> 32).unwrap_or(0))
        }
        Alphabet::Base64 => {
            let bytes = word
                .to_le_bytes()
                .map(|byte| BASE64[usize::from(byte & 63)]);
            u64::from_le_bytes(bytes)
        }
    }
}

/// Each byte becomes byte × `bound` / 256, in lanes of 16 bits that it cannot
/// leave.
#[inline(always)]
const fn scaled(word: u64, bound: u64) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    let even = (((word & LOW) * bound) >> 8) & LOW;
    let odd = (((word >> 8) & LOW) * bound) & !LOW;
    even | odd
}

/// Parts of a second, the first three of which there are.
fn fraction(clock: &Clock, out: &mut PieceWriter<'_>, digits: u8) {
    out.number_3(clock.milliseconds());
    for _ in 3..digits {
        out.fixed(b"0");
    }
}

fn time_field(clock: &Clock, out: &mut PieceWriter<'_>, field: &TimeField) {
    let parts = clock.parts();
    let mut pair = |at: usize| out.fixed(&[parts[at], parts[at + 1]]);
    match field {
        TimeField::Text(_) => {}
        TimeField::Year => {
            pair(0);
            pair(2);
        }
        TimeField::ShortYear => pair(2),
        TimeField::Month => pair(5),
        TimeField::Day => pair(8),
        TimeField::Hour => pair(11),
        TimeField::Minute => pair(14),
        TimeField::Second => pair(17),
        TimeField::MonthName => out.fixed(&clock.month_name()),
        TimeField::PaddedDay => {
            let tens = if parts[8] == b'0' { b' ' } else { parts[8] };
            out.fixed(&[tens, parts[9]]);
        }
        TimeField::Fraction(digits) => fraction(clock, out, *digits),
        TimeField::PointFraction(digits) => {
            out.fixed(b".");
            fraction(clock, out, digits.unwrap_or(3));
        }
        TimeField::Epoch => clock.epoch_seconds(out),
        TimeField::Offset => out.fixed(b"+0000"),
        TimeField::OffsetColon => out.fixed(b"+00:00"),
    }
}
