//! Faults of a test server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, floor_to_u64};

use super::expression::{
    Expression, ExpressionError, ExpressionInputs, ExpressionKind, ExpressionValue,
};

/// The longest delay that an expression can request.
const DELAY_MAX: Nanos = Nanos::from_secs(3600);

/// Fault of one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// It is answered with this status.
    Status(u16),
    /// The connection is closed without a response.
    Close,
    /// The connection is reset without an answer.
    Reset,
    /// The answer is no HTTP, and the connection is closed after it.
    Garbage,
    /// The answer's head is longer than any client reads.
    HugeHead,
    /// The connection is closed within the answer's body.
    Truncate,
    /// The answer stops within its body, and the connection stays.
    Stall,
    /// There is never an answer, and the connection stays.
    Silence,
}

impl Fault {
    /// Those that have a name.
    pub const NAMED: [Self; 7] = [
        Self::Close,
        Self::Reset,
        Self::Garbage,
        Self::HugeHead,
        Self::Truncate,
        Self::Stall,
        Self::Silence,
    ];

    /// The word in expressions and counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::Close => "close",
            Self::Reset => "reset",
            Self::Garbage => "garbage",
            Self::HugeHead => "huge_head",
            Self::Truncate => "truncate",
            Self::Stall => "stall",
            Self::Silence => "silence",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let mut named = Self::NAMED.into_iter();
        named.find(|fault| fault.name().eq_ignore_ascii_case(name))
    }
}

/// A delay by a formula that gives milliseconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Expression", into = "Expression")]
pub struct DelayExpression(Expression);

impl DelayExpression {
    /// The delay now: nothing where the formula gives less, an hour where it
    /// gives more.
    pub fn evaluate(&self, inputs: &ExpressionInputs, random: &mut dyn FnMut() -> f64) -> Nanos {
        match self.0.evaluate(inputs, random) {
            ExpressionValue::Number(milliseconds) => {
                Nanos::new(floor_to_u64(milliseconds * 1e6)).min(DELAY_MAX)
            }
            // Refused when it was read.
            ExpressionValue::Truth(_) | ExpressionValue::Text(_) => Nanos::ZERO,
        }
    }
}

impl TryFrom<Expression> for DelayExpression {
    type Error = ExpressionError;

    fn try_from(expression: Expression) -> Result<Self, ExpressionError> {
        if expression.kind() == ExpressionKind::Number {
            return Ok(Self(expression));
        }
        let message = "a delay must be a number of milliseconds".to_owned();
        Err(whole(&expression, message))
    }
}

impl FromStr for DelayExpression {
    type Err = ExpressionError;

    /// A formula, or a length of time such as `5ms`.
    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        if let Ok(delay) = text.parse::<Nanos>() {
            let milliseconds = delay.as_secs_f64() * 1e3;
            return format!("{milliseconds}").parse::<Expression>()?.try_into();
        }
        text.parse::<Expression>()?.try_into()
    }
}

impl From<DelayExpression> for Expression {
    fn from(delay: DelayExpression) -> Self {
        delay.0
    }
}

impl fmt::Display for DelayExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A fault by a formula: false or 0 for nothing, true for status 500, a
/// status, or the name of a [`Fault`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Expression", into = "Expression")]
pub struct FaultExpression(Expression);

impl FaultExpression {
    /// The present fault, if any. A number that is no status from 200 to
    /// 599 counts as 500, what is not a number as nothing.
    pub fn evaluate(
        &self,
        inputs: &ExpressionInputs,
        random: &mut dyn FnMut() -> f64,
    ) -> Option<Fault> {
        match self.0.evaluate(inputs, random) {
            ExpressionValue::Truth(is_wrong) => is_wrong.then_some(Fault::Status(500)),
            ExpressionValue::Text(name) => Fault::of_name(name),
            ExpressionValue::Number(number) if number.is_nan() || number == 0.0 => None,
            ExpressionValue::Number(number) => {
                let status = u16::try_from(floor_to_u64(number)).ok();
                let status = status.filter(|status| (200..600).contains(status));
                Some(Fault::Status(status.unwrap_or(500)))
            }
        }
    }
}

impl TryFrom<Expression> for FaultExpression {
    type Error = ExpressionError;

    fn try_from(expression: Expression) -> Result<Self, ExpressionError> {
        let unknown = |(text, _): &(&str, usize)| Fault::of_name(text).is_none();
        let text = expression.texts().into_iter().find(unknown);
        let Some((text, at)) = text else {
            return Ok(Self(expression));
        };
        let names = Fault::NAMED.map(Fault::name).join(", ");
        let message = format!("`{text}` is not a fault: the faults are {names}");
        Err(expression.error(at, text.len() + 2, message))
    }
}

impl FromStr for FaultExpression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        text.parse::<Expression>()?.try_into()
    }
}

impl From<FaultExpression> for Expression {
    fn from(fault: FaultExpression) -> Self {
        fault.0
    }
}

impl fmt::Display for FaultExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn whole(expression: &Expression, message: String) -> ExpressionError {
    let length = expression.to_string().len();
    expression.error(0, length, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: ExpressionInputs = ExpressionInputs {
        active_requests: 2.0,
        seconds: 1.0,
    };

    #[test]
    fn faults_are_named_and_numbered() {
        for (text, fault) in [
            ("false", None),
            ("true", Some(Fault::Status(500))),
            ("0", None),
            ("429.5", Some(Fault::Status(429))),
            ("7", Some(Fault::Status(500))),
            ("-1", Some(Fault::Status(500))),
            ("1/0", Some(Fault::Status(500))),
            ("0/0", None),
            ("'CLOSE'", Some(Fault::Close)),
            ("t > 2 ? 'reset' : 503", Some(Fault::Status(503))),
        ] {
            let expression: FaultExpression = text.parse().unwrap();
            assert_eq!(expression.evaluate(&INPUTS, &mut || 0.5), fault, "{text}");
        }
        let error = "true ? 'closed' : 1"
            .parse::<FaultExpression>()
            .unwrap_err();
        assert_eq!((error.at, error.length), (7, 8), "{error}");
        assert!(
            error.to_string().contains("close, reset, garbage"),
            "{error}"
        );
    }

    #[test]
    fn delays_are_times_or_formulas() {
        for (text, delay) in [
            ("5ms", Nanos::from_millis(5)),
            ("1.5s", Nanos::from_millis(1500)),
            ("5", Nanos::from_millis(5)),
            ("10 * active_requests + 0.5", Nanos::new(20_500_000)),
            ("-3", Nanos::ZERO),
            ("0/0", Nanos::ZERO),
            ("1/0", DELAY_MAX),
        ] {
            let expression: DelayExpression = text.parse().unwrap();
            assert_eq!(expression.evaluate(&INPUTS, &mut || 0.5), delay, "{text}");
        }
        let error = "t > 1".parse::<DelayExpression>().unwrap_err();
        assert_eq!((error.at, error.length), (0, 5));
    }
}
