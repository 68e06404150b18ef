//! Small formulas over the state of a test server.
//!
//! ```
//! use stillwell_plan::serve::{Expression, ExpressionInputs, ExpressionValue};
//! let slope: Expression = "active_requests > 10 ? 2 * active_requests : 5".parse()?;
//! let inputs = ExpressionInputs { active_requests: 20.0, seconds: 0.0 };
//! assert_eq!(slope.evaluate(&inputs, &mut || 0.5), ExpressionValue::Number(40.0));
//! # Ok::<(), stillwell_plan::serve::ExpressionError>(())
//! ```
//!
//! Numbers, `true` and `false`, texts in quotes, and the names
//! `active_requests`, `t` (seconds since the start) and `pi`; `+ - * / % **`,
//! comparisons, `&& || !`, `c ? a : b`; functions as in [`FUNCTIONS`]. Each error
//! is detected when an expression is parsed: evaluation always returns
//! a value, and allocates nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod parse;
mod token;

/// The longest text of an expression.
const BYTES_MAX: usize = 4096;

/// Functions, each with its number of arguments.
const FUNCTIONS: &[(&str, Function, usize)] = &[
    ("rand", Function::Random, 0),
    ("normal", Function::Normal, 2),
    ("exponential", Function::Exponential, 1),
    ("sin", Function::Sine, 1),
    ("cos", Function::Cosine, 1),
    ("abs", Function::Absolute, 1),
    ("floor", Function::Floor, 1),
    ("sqrt", Function::Root, 1),
    ("exp", Function::Power, 1),
    ("ln", Function::Logarithm, 1),
    ("min", Function::Least, 2),
    ("max", Function::Largest, 2),
];

/// A formula that was read and checked. Its text form is what was typed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    text: String,
    root: Node,
    kind: ExpressionKind,
}

/// Type of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExpressionKind {
    /// A number.
    Number,
    /// True or false.
    Truth,
    /// One of the texts in it.
    Text,
    /// One or the other, by a condition.
    Mixed,
}

/// Value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpressionValue<'a> {
    /// A number; may be infinite or not a number.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// A text.
    Text(&'a str),
}

/// Inputs of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpressionInputs {
    /// Requests that have come and have no answer yet, this one included.
    pub active_requests: f64,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Reason why a text is no expression.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}\n{}", caret(.text, *.at, *.length))]
pub struct ExpressionError {
    /// The given text and what is accepted.
    pub message: String,
    /// The whole text.
    pub text: String,
    /// Position of the error, in bytes.
    pub at: usize,
    /// Length of the wrong part, in bytes.
    pub length: usize,
}

impl Expression {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> ExpressionKind {
        self.kind
    }

    /// The texts in it, each with its place in bytes.
    pub(crate) fn texts(&self) -> Vec<(&str, usize)> {
        let mut texts = Vec::new();
        self.root.collect_texts(&mut texts);
        texts
    }

    /// Its present value; `random` returns numbers from 0 up to but not including 1.
    pub fn evaluate(
        &self,
        inputs: &ExpressionInputs,
        random: &mut dyn FnMut() -> f64,
    ) -> ExpressionValue<'_> {
        self.root.evaluate(inputs, random)
    }

    /// An error about the `length` bytes at `at`.
    pub(crate) fn error(&self, at: usize, length: usize, message: String) -> ExpressionError {
        ExpressionError {
            message,
            text: self.text.clone(),
            at,
            length,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > BYTES_MAX {
            return Err(ExpressionError {
                message: format!(
                    "the expression is too long: at most {BYTES_MAX} bytes are accepted"
                ),
                text: String::new(),
                at: 0,
                length: 0,
            });
        }
        let (root, kind) = parse::parse(text)?;
        Ok(Self {
            text: text.to_owned(),
            root,
            kind,
        })
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Self, ExpressionError> {
        text.parse()
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

/// The line of `text` with a mark below what is wrong.
fn caret(text: &str, at: usize, length: usize) -> String {
    let before: String = text
        .get(..at)
        .unwrap_or_default()
        .replace(['\n', '\t'], " ");
    let marked = text
        .get(at..at + length)
        .unwrap_or_default()
        .chars()
        .count();
    let line = text.replace(['\n', '\t'], " ");
    let indent = " ".repeat(before.chars().count());
    format!("  {line}\n  {indent}{}", "^".repeat(marked.max(1)))
}

/// A part of a formula. Checked when it was read, so every part gives what
/// its place needs.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Truth(bool),
    Text { value: String, at: usize },
    ActiveRequests,
    Seconds,
    Negative(Box<Self>),
    Not(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
    Choice(Box<Self>, Box<Self>, Box<Self>),
    Call(Function, Vec<Self>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Function {
    Random,
    Normal,
    Exponential,
    Sine,
    Cosine,
    Absolute,
    Floor,
    Root,
    Power,
    Logarithm,
    Least,
    Largest,
}

impl Node {
    fn evaluate(
        &self,
        inputs: &ExpressionInputs,
        random: &mut dyn FnMut() -> f64,
    ) -> ExpressionValue<'_> {
        use ExpressionValue::{Number, Text, Truth};
        match self {
            Self::Number(value) => Number(*value),
            Self::Truth(value) => Truth(*value),
            Self::Text { value, .. } => Text(value),
            Self::ActiveRequests => Number(inputs.active_requests),
            Self::Seconds => Number(inputs.seconds),
            Self::Negative(inner) => Number(-inner.number(inputs, random)),
            Self::Not(inner) => Truth(!inner.truth(inputs, random)),
            Self::Choice(condition, then, otherwise) => {
                let chosen = if condition.truth(inputs, random) {
                    then
                } else {
                    otherwise
                };
                chosen.evaluate(inputs, random)
            }
            Self::Call(function, arguments) => {
                let argument = |at: usize, random: &mut dyn FnMut() -> f64| {
                    arguments
                        .get(at)
                        .map_or(0.0, |node| node.number(inputs, random))
                };
                let (first, second) = (argument(0, random), argument(1, random));
                Number(function.apply(first, second, random))
            }
            Self::Binary(Operator::And, left, right) => {
                Truth(left.truth(inputs, random) && right.truth(inputs, random))
            }
            Self::Binary(Operator::Or, left, right) => {
                Truth(left.truth(inputs, random) || right.truth(inputs, random))
            }
            Self::Binary(operator, left, right) => {
                let left = left.number(inputs, random);
                let right = right.number(inputs, random);
                operator.apply(left, right)
            }
        }
    }

    /// For a part that gives a number.
    fn number(&self, inputs: &ExpressionInputs, random: &mut dyn FnMut() -> f64) -> f64 {
        match self.evaluate(inputs, random) {
            ExpressionValue::Number(value) => value,
            ExpressionValue::Truth(_) | ExpressionValue::Text(_) => f64::NAN,
        }
    }

    /// For a part that gives true or false.
    fn truth(&self, inputs: &ExpressionInputs, random: &mut dyn FnMut() -> f64) -> bool {
        matches!(self.evaluate(inputs, random), ExpressionValue::Truth(true))
    }

    fn collect_texts<'n>(&'n self, texts: &mut Vec<(&'n str, usize)>) {
        match self {
            Self::Text { value, at } => texts.push((value, *at)),
            Self::Choice(_, then, otherwise) => {
                then.collect_texts(texts);
                otherwise.collect_texts(texts);
            }
            // No operator takes texts.
            _ => {}
        }
    }
}

impl Operator {
    /// Of two numbers.
    #[expect(clippy::float_cmp, reason = "`==` is what was typed")]
    fn apply(self, left: f64, right: f64) -> ExpressionValue<'static> {
        use ExpressionValue::{Number, Truth};
        match self {
            Self::Equal => Truth(left == right),
            Self::Unequal => Truth(left != right),
            Self::Less => Truth(left < right),
            Self::LessOrEqual => Truth(left <= right),
            Self::More => Truth(left > right),
            Self::MoreOrEqual => Truth(left >= right),
            Self::Plus => Number(left + right),
            Self::Minus => Number(left - right),
            Self::Times => Number(left * right),
            Self::Divided => Number(left / right),
            Self::Remainder => Number(left % right),
            Self::Power => Number(left.powf(right)),
            // Decided where they are evaluated, by their left side alone if that
            // is enough.
            Self::And | Self::Or => Truth(false),
        }
    }
}

impl Function {
    fn apply(self, first: f64, second: f64, random: &mut dyn FnMut() -> f64) -> f64 {
        match self {
            Self::Random => random(),
            // Box and Muller; 1 - r is never 0.
            Self::Normal => {
                let radius = (-2.0 * (1.0 - random()).ln()).sqrt();
                let angle = std::f64::consts::TAU * random();
                second.mul_add(radius * angle.cos(), first)
            }
            Self::Exponential => -first * (1.0 - random()).ln(),
            Self::Sine => first.sin(),
            Self::Cosine => first.cos(),
            Self::Absolute => first.abs(),
            Self::Floor => first.floor(),
            Self::Root => first.sqrt(),
            Self::Power => first.exp(),
            Self::Logarithm => first.ln(),
            Self::Least => first.min(second),
            Self::Largest => first.max(second),
        }
    }
}

#[cfg(test)]
mod tests;
