//! From words to a formula whose parts fit together.

use super::token::{Token, Word, tokens};
use super::{ExpressionError, ExpressionKind, FUNCTIONS, Node, Operator};

/// Maximum depth of nested parentheses and operators, so no
/// text can exhaust the stack.
const DEPTH_MAX: usize = 64;

const ACCEPTED: &str = "a number, active_requests, t, pi, a function or `(`";

/// A part, its type and its position.
#[derive(Debug)]
struct TypedNode {
    node: Node,
    kind: ExpressionKind,
    at: usize,
    end: usize,
}

#[derive(Debug)]
struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

/// The formula that `text` is, and what it gives.
pub(super) fn parse(text: &str) -> Result<(Node, ExpressionKind), ExpressionError> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    let part = parser.choice()?;
    match parser.peek() {
        Token {
            word: Word::End, ..
        } => Ok((part.node, part.kind)),
        token => {
            let message = "expected an operator or the end".to_owned();
            Err(parser.wrong(token.at, token.length, message))
        }
    }
}

impl Parser<'_> {
    /// `condition ? one : other`, or what binds closer.
    fn choice(&mut self) -> Result<TypedNode, ExpressionError> {
        self.descend()?;
        let condition = self.binary(0)?;
        let part = if self.take(&Word::Question) {
            self.expect_kind(&condition, ExpressionKind::Truth)?;
            let then = self.choice()?;
            self.expect(&Word::Colon, "expected `:` and the other value")?;
            let otherwise = self.choice()?;
            let kind = if then.kind == otherwise.kind {
                then.kind
            } else {
                ExpressionKind::Mixed
            };
            TypedNode {
                at: condition.at,
                end: otherwise.end,
                node: Node::Choice(
                    Box::new(condition.node),
                    Box::new(then.node),
                    Box::new(otherwise.node),
                ),
                kind,
            }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(part)
    }

    /// Operators that bind at least as closely as `least`.
    fn binary(&mut self, least: u8) -> Result<TypedNode, ExpressionError> {
        self.descend()?;
        let mut left = self.unary()?;
        while let Word::Operator(operator) = self.peek().word {
            let (binding, needs, gives) = operator.shape();
            if binding < least {
                break;
            }
            self.next += 1;
            // `2 ** 3 ** 2` is `2 ** 9`; all others go from left to right.
            let right = self.binary(binding + u8::from(operator != Operator::Power))?;
            self.expect_kind(&left, needs)?;
            self.expect_kind(&right, needs)?;
            left = TypedNode {
                at: left.at,
                end: right.end,
                node: Node::Binary(operator, Box::new(left.node), Box::new(right.node)),
                kind: gives,
            };
            // Evaluation goes down the left side, too.
            self.check_height(&left)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<TypedNode, ExpressionError> {
        let at = self.peek().at;
        let is_not = self.take(&Word::Not);
        if !is_not && !self.take(&Word::Operator(Operator::Minus)) {
            return self.single();
        }
        self.descend()?;
        // `-2 ** 2` is `-(2 ** 2)`.
        let inner = if is_not {
            self.unary()?
        } else {
            self.binary(Operator::Power.shape().0)?
        };
        self.depth -= 1;
        let kind = if is_not {
            ExpressionKind::Truth
        } else {
            ExpressionKind::Number
        };
        self.expect_kind(&inner, kind)?;
        let node = Box::new(inner.node);
        Ok(TypedNode {
            node: if is_not {
                Node::Not(node)
            } else {
                Node::Negative(node)
            },
            kind,
            at,
            end: inner.end,
        })
    }

    fn single(&mut self) -> Result<TypedNode, ExpressionError> {
        let token = self.peek();
        let part = |node, kind| TypedNode {
            node,
            kind,
            at: token.at,
            end: token.at + token.length,
        };
        self.next += 1;
        Ok(match &token.word {
            Word::Number(value) => part(Node::Number(*value), ExpressionKind::Number),
            Word::Text(value) => {
                let (value, at) = (value.clone(), token.at);
                part(Node::Text { value, at }, ExpressionKind::Text)
            }
            Word::Open => {
                let inner = self.choice()?;
                self.expect(&Word::Close, "expected `)`")?;
                inner
            }
            Word::Name(name) => match name.as_str() {
                "true" | "false" => part(Node::Truth(name == "true"), ExpressionKind::Truth),
                "active_requests" => part(Node::ActiveRequests, ExpressionKind::Number),
                "t" => part(Node::Seconds, ExpressionKind::Number),
                "pi" => part(Node::Number(std::f64::consts::PI), ExpressionKind::Number),
                _ => return self.call(&token, name),
            },
            Word::End => {
                let message = format!("expected {ACCEPTED} before the end");
                return Err(self.wrong(token.at, token.length, message));
            }
            _ => {
                let message = format!("expected {ACCEPTED}");
                return Err(self.wrong(token.at, token.length, message));
            }
        })
    }

    fn call(&mut self, token: &Token, name: &str) -> Result<TypedNode, ExpressionError> {
        let entry = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, function, count)) = entry else {
            let functions = FUNCTIONS.iter().map(|(name, ..)| format!("{name}()"));
            let functions = functions.collect::<Vec<_>>().join(", ");
            let message = format!(
                "unknown name `{name}`: the names are active_requests, t, pi, true, false and {functions}"
            );
            return Err(self.wrong(token.at, token.length, message));
        };
        self.expect(&Word::Open, "expected `(`")?;
        let mut arguments = Vec::new();
        while self.peek().word != Word::Close && (arguments.is_empty() || self.take(&Word::Comma)) {
            let argument = self.choice()?;
            self.expect_kind(&argument, ExpressionKind::Number)?;
            arguments.push(argument.node);
        }
        let end = self.peek();
        self.expect(&Word::Close, "expected `,` or `)`")?;
        if arguments.len() != *count {
            let message = format!("{name}() takes {count} values, not {}", arguments.len());
            return Err(self.wrong(token.at, end.at + 1 - token.at, message));
        }
        Ok(TypedNode {
            node: Node::Call(*function, arguments),
            kind: ExpressionKind::Number,
            at: token.at,
            end: end.at + 1,
        })
    }

    fn peek(&self) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[self.next.min(last)].clone()
    }

    fn take(&mut self, word: &Word) -> bool {
        let matches = self.peek().word == *word;
        self.next += usize::from(matches);
        matches
    }

    fn expect(&mut self, word: &Word, message: &str) -> Result<(), ExpressionError> {
        if self.take(word) {
            return Ok(());
        }
        let token = self.peek();
        Err(self.wrong(token.at, token.length, message.to_owned()))
    }

    fn expect_kind(&self, part: &TypedNode, kind: ExpressionKind) -> Result<(), ExpressionError> {
        if part.kind == kind {
            return Ok(());
        }
        let message = format!("expected {}, found {}", kind.words(), part.kind.words());
        Err(self.wrong(part.at, part.end - part.at, message))
    }

    fn descend(&mut self) -> Result<(), ExpressionError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let token = self.peek();
        Err(self.wrong(
            token.at,
            token.length,
            "the expression is nested too deeply".to_owned(),
        ))
    }

    fn check_height(&self, part: &TypedNode) -> Result<(), ExpressionError> {
        let (mut node, mut height) = (&part.node, 0);
        while let Node::Binary(_, left, _) = node {
            node = left;
            height += 1;
        }
        if height <= 8 * DEPTH_MAX {
            return Ok(());
        }
        Err(self.wrong(
            part.at,
            part.end - part.at,
            "the expression has too many operators".to_owned(),
        ))
    }

    fn wrong(&self, at: usize, length: usize, message: String) -> ExpressionError {
        ExpressionError {
            message,
            text: self.text.to_owned(),
            at,
            length,
        }
    }
}

impl Operator {
    /// Its precedence, the type of both sides, and the type of its result.
    const fn shape(self) -> (u8, ExpressionKind, ExpressionKind) {
        use ExpressionKind::{Number, Truth};
        match self {
            Self::Or => (0, Truth, Truth),
            Self::And => (1, Truth, Truth),
            Self::Equal | Self::Unequal => (2, Number, Truth),
            Self::Less | Self::LessOrEqual | Self::More | Self::MoreOrEqual => (3, Number, Truth),
            Self::Plus | Self::Minus => (4, Number, Number),
            Self::Times | Self::Divided | Self::Remainder => (5, Number, Number),
            Self::Power => (6, Number, Number),
        }
    }
}

impl ExpressionKind {
    const fn words(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Truth => "a condition",
            Self::Text => "a text",
            Self::Mixed => "a value that differs in type between the branches of `?:`",
        }
    }
}
