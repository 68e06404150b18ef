//! What reflection tells: the files, in the form in which compilers pass them on.

use super::bytes::{put_bytes, put_number};
use super::schema::{Enum, Field, File, Kind, Message, Method, Schema, Service};

impl Schema {
    /// The full names of all services.
    #[must_use]
    pub fn services(&self) -> Vec<String> {
        let of_file = |file: &File| {
            let package = file.package.clone();
            let names = file.services.iter();
            names
                .map(|service| format!("{package}.{}", service.name))
                .collect::<Vec<_>>()
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// The file at `path` and all that it imports, each as the bytes of a
    /// `google.protobuf.FileDescriptorProto`; `None` where there is no such file.
    #[must_use]
    pub fn describe_file(&self, path: &str) -> Option<Vec<Vec<u8>>> {
        let mut wanted = vec![path.to_owned()];
        let mut described = Vec::new();
        let mut next = 0;
        while let Some(path) = wanted.get(next).cloned() {
            next += 1;
            let file = self.files.iter().find(|file| file.path == path)?;
            described.push(self.file(file));
            for import in &file.imports {
                if !wanted.contains(import) {
                    wanted.push(import.clone());
                }
            }
        }
        Some(described)
    }

    /// The same of the file that defines `symbol`, a full name.
    #[must_use]
    pub fn describe_symbol(&self, symbol: &str) -> Option<Vec<Vec<u8>>> {
        self.describe_file(self.file_of(symbol)?.path)
    }

    fn file(&self, file: &File) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(1, file.path.as_bytes(), &mut out);
        put_bytes(2, file.package.as_bytes(), &mut out);
        for import in &file.imports {
            put_bytes(3, import.as_bytes(), &mut out);
        }
        for name in &file.messages {
            put_bytes(4, &self.message(name), &mut out);
        }
        for name in &file.enums {
            put_bytes(5, &self.enumeration(name), &mut out);
        }
        for service in &file.services {
            put_bytes(6, &self::service(service), &mut out);
        }
        put_bytes(12, b"proto3", &mut out);
        out
    }

    fn message(&self, full: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(1, last(full).as_bytes(), &mut out);
        let empty = Message::default();
        let message = self.messages.get(full).unwrap_or(&empty);
        for own in &message.fields {
            put_bytes(2, &field(own, full), &mut out);
        }
        for name in &message.messages {
            put_bytes(3, &self.message(name), &mut out);
        }
        for own in &message.fields {
            if let Kind::Map(value) = &own.kind {
                put_bytes(3, &entry(&own.name, value), &mut out);
            }
        }
        for name in &message.enums {
            put_bytes(4, &self.enumeration(name), &mut out);
        }
        for choice in &message.choices {
            let mut own = Vec::new();
            put_bytes(1, choice.as_bytes(), &mut own);
            put_bytes(8, &own, &mut out);
        }
        out
    }

    fn enumeration(&self, full: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(1, last(full).as_bytes(), &mut out);
        let empty = Enum::default();
        for (name, number) in &self.enums.get(full).unwrap_or(&empty).values {
            let mut value = Vec::new();
            put_bytes(1, name.as_bytes(), &mut value);
            put_number(2, u64::from(*number), &mut value);
            put_bytes(2, &value, &mut out);
        }
        out
    }
}

fn last(full: &str) -> &str {
    full.rsplit('.').next().unwrap_or(full)
}

const OPTIONAL: u64 = 1;
const REPEATED: u64 = 3;
const MESSAGE: u64 = 11;

fn field(field: &Field, scope: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let of_entry = || format!("{scope}.{}", entry_name(&field.name));
    let (of, name) = match &field.kind {
        Kind::Map(_) => (MESSAGE, Some(of_entry())),
        kind => type_of(kind),
    };
    let is_list = field.repeated || matches!(field.kind, Kind::Map(_));
    put_bytes(1, field.name.as_bytes(), &mut out);
    put_number(3, field.number.into(), &mut out);
    put_number(4, if is_list { REPEATED } else { OPTIONAL }, &mut out);
    put_number(5, of, &mut out);
    if let Some(name) = name {
        put_bytes(6, format!(".{name}").as_bytes(), &mut out);
    }
    if let Some(choice) = field.choice {
        put_number(9, choice as u64, &mut out);
    }
    put_bytes(10, camel(&field.name, false).as_bytes(), &mut out);
    out
}

fn type_of(kind: &Kind) -> (u64, Option<String>) {
    match kind {
        Kind::Double => (1, None),
        Kind::Float => (2, None),
        Kind::Int64 => (3, None),
        Kind::Uint64 => (4, None),
        Kind::Int32 => (5, None),
        Kind::Bool => (8, None),
        Kind::String => (9, None),
        Kind::Message(name) => (MESSAGE, Some(name.clone())),
        Kind::Bytes => (12, None),
        Kind::Uint32 => (13, None),
        Kind::Enum(name) => (14, Some(name.clone())),
        Kind::Map(_) => (MESSAGE, None),
    }
}

/// Entries of maps are messages with a key and a value.
fn entry(name: &str, value: &Kind) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(1, entry_name(name).as_bytes(), &mut out);
    let member = |name: &str, number, kind: &Kind| Field {
        name: name.to_owned(),
        number,
        kind: kind.clone(),
        repeated: false,
        choice: None,
    };
    put_bytes(2, &field(&member("key", 1, &Kind::String), ""), &mut out);
    put_bytes(2, &field(&member("value", 2, value), ""), &mut out);
    // Marked as such.
    let mut options = Vec::new();
    put_number(7, 1, &mut options);
    put_bytes(7, &options, &mut out);
    out
}

fn entry_name(field: &str) -> String {
    format!("{}Entry", camel(field, true))
}

fn camel(name: &str, begins_upper: bool) -> String {
    let mut is_upper = begins_upper;
    let mut camel = String::with_capacity(name.len());
    for c in name.chars() {
        if c == '_' {
            is_upper = true;
        } else if is_upper {
            camel.push(c.to_ascii_uppercase());
            is_upper = false;
        } else {
            camel.push(c);
        }
    }
    camel
}

fn service(service: &Service) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(1, service.name.as_bytes(), &mut out);
    for Method {
        name,
        input,
        output,
        client_streams,
        server_streams,
    } in &service.methods
    {
        let mut method = Vec::new();
        put_bytes(1, name.as_bytes(), &mut method);
        put_bytes(2, format!(".{input}").as_bytes(), &mut method);
        put_bytes(3, format!(".{output}").as_bytes(), &mut method);
        if *client_streams {
            put_number(5, 1, &mut method);
        }
        if *server_streams {
            put_number(6, 1, &mut method);
        }
        put_bytes(2, &method, &mut out);
    }
    out
}
