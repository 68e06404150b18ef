//! Reads `.proto` files, as much of the language as ours use: messages, nested
//! ones too, enumerations, `oneof`, `repeated`, `map` with texts for keys,
//! services and comments.

use super::schema::{Enum, Field, File, Kind, Message, Method, Schema, Service};

/// Why a file is none of ours.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{path}: {problem}")]
pub(super) struct ParseError {
    path: String,
    problem: String,
}

type Parsed<T> = Result<T, String>;

/// What all of `files`, path and text, say.
pub(super) fn schema(files: &[(&'static str, impl AsRef<str>)]) -> Result<Schema, ParseError> {
    let mut schema = Schema::default();
    for (path, text) in files {
        let fail = |problem| ParseError {
            path: (*path).to_owned(),
            problem,
        };
        let tokens = tokens(text.as_ref()).map_err(fail)?;
        let mut parser = Parser {
            tokens: &tokens,
            schema: &mut schema,
        };
        let file = parser.file(path).map_err(fail)?;
        schema.files.push(file);
    }
    resolve(&mut schema).map_err(|problem| ParseError {
        path: "all files".to_owned(),
        problem,
    })?;
    Ok(schema)
}

/// Words, numbers, texts (with their first quote) and signs.
fn tokens(text: &str) -> Parsed<Vec<&str>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => {
                rest = rest
                    .split_once('\n')
                    .map_or("", |(_, rest)| rest)
                    .trim_start();
                continue;
            }
            '"' => rest[1..].find('"').ok_or("a text has no end")? + 1,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        let behind = behind
            .strip_prefix('"')
            .filter(|_| first == '"')
            .unwrap_or(behind);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

struct Parser<'t, 's> {
    tokens: &'t [&'t str],
    schema: &'s mut Schema,
}

impl<'t> Parser<'t, '_> {
    fn next(&mut self) -> Parsed<&'t str> {
        let (first, rest) = self.tokens.split_first().ok_or("it ends too early")?;
        self.tokens = rest;
        Ok(first)
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        let next = self.next()?;
        if next == token {
            return Ok(());
        }
        Err(format!("`{next}` stands where `{token}` should"))
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.tokens.first() == Some(&token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn file(&mut self, path: &'static str) -> Parsed<File> {
        let mut file = File {
            path,
            ..File::default()
        };
        while !self.tokens.is_empty() {
            match self.next()? {
                "syntax" => {
                    self.expect("=")?;
                    self.expect("\"proto3")?;
                    self.expect(";")?;
                }
                "package" => {
                    self.next()?.clone_into(&mut file.package);
                    self.expect(";")?;
                }
                "import" => {
                    file.imports.push(self.next()?.trim_matches('"').to_owned());
                    self.expect(";")?;
                }
                "message" => {
                    let name = self.message(&file.package)?;
                    file.messages.push(name);
                }
                "enum" => {
                    let name = self.enumeration(&file.package)?;
                    file.enums.push(name);
                }
                "service" => {
                    let service = self.service()?;
                    file.services.push(service);
                }
                other => return Err(format!("`{other}` begins nothing")),
            }
        }
        Ok(file)
    }

    /// A message within `scope`; gives its full name.
    fn message(&mut self, scope: &str) -> Parsed<String> {
        let full = format!("{scope}.{}", self.next()?);
        let mut message = Message::default();
        self.expect("{")?;
        while !self.takes("}") {
            if self.takes("message") {
                message.messages.push(self.message(&full)?);
            } else if self.takes("enum") {
                message.enums.push(self.enumeration(&full)?);
            } else if self.takes("oneof") {
                let choice = Some(message.choices.len());
                message.choices.push(self.next()?.to_owned());
                self.expect("{")?;
                while !self.takes("}") {
                    message.fields.push(self.field(choice)?);
                }
            } else {
                message.fields.push(self.field(None)?);
            }
        }
        self.schema.messages.insert(full.clone(), message);
        Ok(full)
    }

    fn field(&mut self, choice: Option<usize>) -> Parsed<Field> {
        let repeated = self.takes("repeated");
        let kind = if self.takes("map") {
            self.expect("<")?;
            self.expect("string")?;
            self.expect(",")?;
            let value = kind(self.next()?);
            self.expect(">")?;
            Kind::Map(Box::new(value))
        } else {
            kind(self.next()?)
        };
        let name = self.next()?.to_owned();
        self.expect("=")?;
        let number = self.number()?;
        self.expect(";")?;
        Ok(Field {
            name,
            number,
            kind,
            repeated,
            choice,
        })
    }

    fn number(&mut self) -> Parsed<u32> {
        let text = self.next()?;
        text.parse().map_err(|_| format!("`{text}` is no number"))
    }

    fn enumeration(&mut self, scope: &str) -> Parsed<String> {
        let full = format!("{scope}.{}", self.next()?);
        let mut values = Vec::new();
        self.expect("{")?;
        while !self.takes("}") {
            let name = self.next()?.to_owned();
            self.expect("=")?;
            values.push((name, self.number()?));
            self.expect(";")?;
        }
        self.schema.enums.insert(full.clone(), Enum { values });
        Ok(full)
    }

    fn service(&mut self) -> Parsed<Service> {
        let mut service = Service {
            name: self.next()?.to_owned(),
            methods: Vec::new(),
        };
        self.expect("{")?;
        while !self.takes("}") {
            self.expect("rpc")?;
            let name = self.next()?.to_owned();
            let (client_streams, input) = self.side()?;
            self.expect("returns")?;
            let (server_streams, output) = self.side()?;
            self.expect(";")?;
            service.methods.push(Method {
                name,
                input,
                output,
                client_streams,
                server_streams,
            });
        }
        Ok(service)
    }

    fn side(&mut self) -> Parsed<(bool, String)> {
        self.expect("(")?;
        let streams = self.takes("stream");
        let name = self.next()?.to_owned();
        self.expect(")")?;
        Ok((streams, name))
    }
}

/// A scalar, or a name that is looked up once all are known.
fn kind(name: &str) -> Kind {
    match name {
        "double" => Kind::Double,
        "float" => Kind::Float,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "uint32" => Kind::Uint32,
        "uint64" => Kind::Uint64,
        "bool" => Kind::Bool,
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        other => Kind::Message(other.to_owned()),
    }
}

/// Makes every name the full one.
fn resolve(schema: &mut Schema) -> Parsed<()> {
    let scopes: Vec<String> = schema.messages.keys().cloned().collect();
    for scope in scopes {
        let Some(mut message) = schema.messages.remove(&scope) else {
            continue;
        };
        // A message may hold itself.
        schema.messages.insert(scope.clone(), Message::default());
        for field in &mut message.fields {
            let kind = match &mut field.kind {
                Kind::Map(value) => value.as_mut(),
                other => other,
            };
            if let Kind::Message(name) = kind {
                *kind = look_up(schema, &scope, name)?;
            }
        }
        schema.messages.insert(scope, message);
    }
    let mut files = std::mem::take(&mut schema.files);
    for file in &mut files {
        let scope = file.package.clone();
        for method in file.services.iter_mut().flat_map(|own| &mut own.methods) {
            for side in [&mut method.input, &mut method.output] {
                if let Kind::Message(full) = look_up(schema, &scope, side)? {
                    *side = full;
                }
            }
        }
    }
    schema.files = files;
    Ok(())
}

/// What `name` means within `scope`: the innermost one counts.
fn look_up(schema: &Schema, scope: &str, name: &str) -> Parsed<Kind> {
    let mut outer = scope;
    loop {
        let full = match outer {
            "" => name.to_owned(),
            outer => format!("{outer}.{name}"),
        };
        if schema.messages.contains_key(&full) {
            return Ok(Kind::Message(full));
        }
        if schema.enums.contains_key(&full) {
            return Ok(Kind::Enum(full));
        }
        if outer.is_empty() {
            return Err(format!("nobody defines `{name}`, which `{scope}` names"));
        }
        outer = outer.rsplit_once('.').map_or("", |(outer, _)| outer);
    }
}
