//! The statements of a program.

use stillwell_text::{Entry, Key, Node, Span, Value};

use super::Mistake;
use super::token::{Token, Word};

/// Maximum depth of values in values.
const DEPTH_MAX: usize = 32;

/// A name and its place.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// The name.
    pub(super) text: String,
    /// Its place.
    pub(super) span: Span,
}

/// A connector's definition.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    /// Its name.
    pub(super) name: Name,
    /// Its kind, such as `bench`.
    pub(super) kind: Name,
    /// The settings after `with`.
    pub(super) settings: Vec<Entry>,
}

/// An instance: its name and the name of its definition.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// `connector` or `pipeline`.
    pub(super) kind: String,
    /// Its name.
    pub(super) name: Name,
    /// The definition.
    pub(super) of: Name,
}

/// An end of a connection, such as `/connector/bench/out`.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// `connector` or `pipeline`.
    pub(super) kind: String,
    /// The instance.
    pub(super) name: Name,
}

/// A program: one flow and its definitions.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    /// Definitions of connectors.
    pub(super) connectors: Vec<Connector>,
    /// Definitions of pipelines, all of which pass events on.
    pub(super) pipelines: Vec<Name>,
    /// Created connectors and pipelines.
    pub(super) instances: Vec<Instance>,
    /// Connections.
    pub(super) connections: Vec<(End, End)>,
    /// The flows that are defined.
    pub(super) flows: Vec<Name>,
    /// The flows that are deployed.
    pub(super) deployed: Vec<Name>,
}

/// Parses a program.
pub(super) fn parse(tokens: &[Token]) -> Result<Program, Mistake> {
    let mut parser = Parser {
        tokens,
        at: 0,
        program: Program::default(),
    };
    while parser.at < tokens.len() {
        parser.statement(false)?;
    }
    Ok(parser.program)
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    program: Program,
}

impl<'t> Parser<'t> {
    fn statement(&mut self, is_in_flow: bool) -> Result<(), Mistake> {
        let keyword = self.name("a statement")?;
        match (keyword.text.as_str(), is_in_flow) {
            ("use", _) => self.import()?,
            ("define", _) => self.define(is_in_flow)?,
            ("create", true) => self.create()?,
            ("connect", true) => self.connect()?,
            ("deploy", false) => {
                self.keyword("flow")?;
                let flow = self.name("the name of a flow")?;
                self.program.deployed.push(flow);
            }
            _ => {
                let statement = format!("`{}`", keyword.text);
                return Err(Mistake::unsupported(keyword.span, &statement));
            }
        }
        self.semicolon()
    }

    /// A module that is used; its functions are known or refused where they are called.
    fn import(&mut self) -> Result<(), Mistake> {
        let module = self.name("a module")?;
        if self.takes('{') {
            while !self.takes('}') {
                self.name("a module")?;
                self.takes(',');
            }
        }
        let root = module.text.split(':').next().unwrap_or_default();
        if !["std", "tremor"].contains(&root) {
            let what = format!("module `{}`", module.text);
            return Err(Mistake::unsupported(module.span, &what));
        }
        Ok(())
    }

    fn define(&mut self, is_in_flow: bool) -> Result<(), Mistake> {
        let kind = self.name("what is defined")?;
        let name = self.name("a name")?;
        match kind.text.as_str() {
            "flow" if !is_in_flow => {
                self.keyword("flow")?;
                while !self.takes_keyword("end") {
                    self.statement(true)?;
                }
                self.program.flows.push(name);
            }
            "connector" => {
                self.keyword("from")?;
                let kind = self.name("the kind of a connector")?;
                self.refuse_arguments()?;
                let has_settings = self.takes_keyword("with");
                let settings = if has_settings {
                    self.settings()?
                } else {
                    Vec::new()
                };
                // Definitions without settings have no end of their own.
                if has_settings {
                    self.keyword("end")?;
                }
                let connector = Connector {
                    name,
                    kind,
                    settings,
                };
                self.program.connectors.push(connector);
            }
            "pipeline" => {
                self.refuse_arguments()?;
                self.keyword("pipeline")?;
                self.passing_query()?;
                self.program.pipelines.push(name);
            }
            other => {
                return Err(Mistake::unsupported(
                    kind.span,
                    &format!("`define {other}`"),
                ));
            }
        }
        Ok(())
    }

    fn refuse_arguments(&self) -> Result<(), Mistake> {
        match self.tokens.get(self.at) {
            Some(Token {
                word: Word::Name(name),
                span,
            }) if name == "args" => Err(Mistake::unsupported(*span, "`args`")),
            _ => Ok(()),
        }
    }

    /// The one query that passes events on, up to the end of its pipeline.
    fn passing_query(&mut self) -> Result<(), Mistake> {
        for expected in ["select", "event", "from", "in", "into", "out"] {
            let word = self.name("a query")?;
            // Ports may be written with their default names.
            let is_port = self.takes('/');
            if is_port {
                self.name("a port")?;
            }
            if word.text != expected || is_port {
                let what = format!("`{}` in a pipeline", word.text);
                return Err(Mistake::unsupported(word.span, &what));
            }
        }
        self.semicolon()?;
        self.keyword("end")
    }

    fn create(&mut self) -> Result<(), Mistake> {
        let kind = self.name("`connector` or `pipeline`")?;
        let name = self.name("a name")?;
        let of = match self.takes_keyword("from") {
            true => self.name("a definition")?,
            false => name.clone(),
        };
        if let Some(Token {
            word: Word::Name(word),
            span,
        }) = self.tokens.get(self.at)
        {
            return Err(Mistake::unsupported(*span, &format!("`create … {word}`")));
        }
        let kind = kind.text;
        self.program.instances.push(Instance { kind, name, of });
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Mistake> {
        let from = self.end("out")?;
        self.keyword("to")?;
        let to = self.end("in")?;
        self.program.connections.push((from, to));
        Ok(())
    }

    /// One end of a connection, whose port is `port`.
    fn end(&mut self, port: &str) -> Result<End, Mistake> {
        self.sign('/')?;
        let kind = self.name("`connector` or `pipeline`")?;
        self.sign('/')?;
        let name = self.name("a name")?;
        if self.takes('/') {
            let used = self.name("a port")?;
            if used.text != port {
                let what = format!("port `{}`", used.text);
                return Err(Mistake::unsupported(used.span, &what));
            }
        }
        Ok(End {
            kind: kind.text,
            name,
        })
    }

    fn settings(&mut self) -> Result<Vec<Entry>, Mistake> {
        let mut settings = Vec::new();
        loop {
            let key = self.name("a setting")?;
            self.sign('=')?;
            let value = self.value(0)?;
            settings.push(Entry {
                key: Key {
                    text: key.text,
                    span: key.span,
                },
                value,
            });
            // A comma may be after the last one.
            let is_end = !self.takes(',') || self.is_keyword("end");
            if is_end {
                return Ok(settings);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Mistake> {
        let token = self.next("a value")?;
        let (span, scalar) = (token.span, |text: &str, quoted| Value::Scalar {
            text: text.to_owned(),
            quoted,
        });
        if depth > DEPTH_MAX {
            let message = format!("values are nested more than {DEPTH_MAX} deep");
            return Err(Mistake::syntax(span, message));
        }
        let value = match &token.word {
            Word::Text(text) => scalar(text, true),
            Word::Number(text) => scalar(text, false),
            Word::Name(name) if ["true", "false"].contains(&name.as_str()) => scalar(name, false),
            Word::Name(name) if name == "null" => Value::Null,
            Word::Name(name) => Value::Scalar {
                text: self.call(name, span)?,
                quoted: false,
            },
            Word::Sign('{') => Value::Map(self.record(depth)?),
            Word::Sign('[') => {
                let mut items = Vec::new();
                while !self.takes(']') {
                    items.push(self.value(depth + 1)?);
                    if !self.takes(',') {
                        self.sign(']')?;
                        break;
                    }
                }
                Value::List(items)
            }
            Word::Sign(sign) => {
                return Err(Mistake::unsupported(span, &format!("`{sign}` as a value")));
            }
        };
        if let Some(Token {
            word: Word::Sign(sign @ ('+' | '-' | '*' | '/' | '.' | '[')),
            span,
        }) = self.tokens.get(self.at)
        {
            return Err(Mistake::unsupported(
                *span,
                &format!("`{sign}` after a value"),
            ));
        }
        Ok(Node { span, value })
    }

    fn record(&mut self, depth: usize) -> Result<Vec<Entry>, Mistake> {
        let mut entries: Vec<Entry> = Vec::new();
        while !self.takes('}') {
            let token = self.next("a key")?;
            let Word::Text(key) = &token.word else {
                return Err(Mistake::unsupported(token.span, &token.word.describe()));
            };
            let key = Key {
                text: key.clone(),
                span: token.span,
            };
            if entries.iter().any(|entry| entry.key.text == key.text) {
                let message = format!("key `{}` occurs twice", key.text);
                return Err(Mistake::syntax(key.span, message));
            }
            self.sign(':')?;
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, value });
            if !self.takes(',') {
                self.sign('}')?;
                break;
            }
        }
        Ok(entries)
    }

    /// A call of a function of `std::time::nanos`, in nanoseconds.
    fn call(&mut self, function: &str, span: Span) -> Result<String, Mistake> {
        let unknown = || Mistake::unsupported(span, &format!("`{function}`"));
        let short = function.strip_prefix("std::time::").unwrap_or(function);
        let unit: u64 = match short {
            "nanos::from_nanos" => 1,
            "nanos::from_micros" => 1_000,
            "nanos::from_millis" => 1_000_000,
            "nanos::from_seconds" => 1_000_000_000,
            "nanos::from_minutes" => 60_000_000_000,
            "nanos::from_hours" => 3_600_000_000_000,
            _ => return Err(unknown()),
        };
        self.sign('(')?;
        let token = self.next("a whole number")?;
        let (span, word) = (token.span, token.word.clone());
        self.sign(')')?;
        let number = match &word {
            Word::Number(text) => text.parse::<u64>().ok(),
            _ => return Err(Mistake::unsupported(span, &word.describe())),
        };
        let nanoseconds = number.and_then(|number| number.checked_mul(unit));
        let nanoseconds = nanoseconds.ok_or_else(|| {
            Mistake::syntax(
                span,
                format!("{} is too large or not a whole number", word.describe()),
            )
        })?;
        Ok(nanoseconds.to_string())
    }

    /// The next word, or that the program ends before `expected`.
    fn next(&mut self, expected: &str) -> Result<&'t Token, Mistake> {
        let last = self
            .tokens
            .last()
            .map_or(Span { start: 0, end: 0 }, |token| token.span);
        let token = self.tokens.get(self.at);
        self.at += 1;
        token.ok_or_else(|| Mistake::syntax(last, format!("the program ends before {expected}")))
    }

    fn name(&mut self, expected: &str) -> Result<Name, Mistake> {
        let token = self.next(expected)?;
        match &token.word {
            Word::Name(text) => Ok(Name {
                text: text.clone(),
                span: token.span,
            }),
            other => {
                let message = format!("expected {expected}, found {}", other.describe());
                Err(Mistake::syntax(token.span, message))
            }
        }
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), Mistake> {
        let name = self.name(&format!("`{keyword}`"))?;
        if name.text == keyword {
            return Ok(());
        }
        let message = format!("expected `{keyword}`, found `{}`", name.text);
        Err(Mistake::syntax(name.span, message))
    }

    fn sign(&mut self, sign: char) -> Result<(), Mistake> {
        let token = self.next(&format!("`{sign}`"))?;
        if token.word == Word::Sign(sign) {
            return Ok(());
        }
        let message = format!("expected `{sign}`, found {}", token.word.describe());
        Err(Mistake::syntax(token.span, message))
    }

    /// The end of a statement; the last one of a program may lack it.
    fn semicolon(&mut self) -> Result<(), Mistake> {
        if self.at == self.tokens.len() {
            return Ok(());
        }
        self.sign(';')
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        let token = self.tokens.get(self.at);
        token.is_some_and(|token| matches!(&token.word, Word::Name(name) if name == keyword))
    }

    fn takes_keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.is_keyword(keyword);
        self.at += usize::from(is_next);
        is_next
    }

    fn takes(&mut self, sign: char) -> bool {
        let token = self.tokens.get(self.at);
        let is_next = token.is_some_and(|token| token.word == Word::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }
}
