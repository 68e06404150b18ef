//! Services and messages that are described by their users: `protoc -o` writes such
//! descriptions, servers with reflection return them.
//!
//! Nothing is generated: JSON or text becomes a message by its description alone.
//! Descriptions may come from a network; of their options only those that say how a
//! field is laid out are looked at.

mod binary;
mod text_format;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto,
    FileDescriptorSet, MessageOptions,
};
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value};
use stillwell_text::nearest;

pub use text_format::{TextFormatError, read_text_format};

/// Names that an error lists.
const NAMES_MAX: usize = 20;

/// Services and messages that are known.
#[derive(Clone, Debug)]
pub struct Descriptors {
    pool: DescriptorPool,
}

/// A method, by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MethodName {
    /// The full name of its service.
    pub service: String,
    /// Its own.
    pub method: String,
}

/// A method that is described.
#[derive(Clone, Debug)]
pub struct GrpcMethod {
    descriptor: MethodDescriptor,
}

/// Bytes that describe nothing.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DescriptorsError {
    /// They are something else.
    #[error("it is not a descriptor set as `protoc -o FILE` writes it: {problem}")]
    Bytes {
        /// Description of the problem.
        problem: String,
    },
    /// They contradict each other or are incomplete.
    #[error("it is inconsistent or incomplete: {problem}")]
    Set {
        /// Description of the problem.
        problem: String,
    },
    /// An imported file is missing.
    #[error("it lacks {file}, which {by} imports: run protoc with --include_imports")]
    Import {
        /// The one that is missing.
        file: String,
        /// Name of the file that needs it.
        by: String,
    },
}

/// A method that is not described.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no {what} `{given}`{}; {}", near(.nearest.as_ref()), listed(.names))]
pub struct MethodError {
    /// Service or method.
    pub what: &'static str,
    /// Requested name.
    pub given: String,
    /// Similar name.
    pub nearest: Option<String>,
    /// Known names.
    pub names: Vec<String>,
}

fn near(name: Option<&String>) -> String {
    name.map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}

fn listed(names: &[String]) -> String {
    let hidden = names.len().saturating_sub(NAMES_MAX);
    let shown = names[..names.len() - hidden].join(", ");
    match (names.len(), hidden) {
        (0, _) => "the descriptors contain none".to_owned(),
        (_, 0) => format!("known: {shown}"),
        (_, hidden) => format!("known: {shown} and {hidden} more"),
    }
}

/// A message that does not fit its type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MessageTextError {
    /// A text that is nothing at all.
    #[error("it is not JSON: {problem}")]
    Json {
        /// Description of the problem with its position.
        problem: String,
    },
    /// A value that does not fit.
    #[error("it does not match {message}{}: {problem}", at(.field.as_ref()))]
    Shape {
        /// The type.
        message: String,
        /// The field in question, with those that lead to it.
        field: Option<String>,
        /// Description of the problem.
        problem: String,
    },
    /// No value at all.
    #[error("there is no message in it: write {{}} for an empty one")]
    Nothing,
}

fn at(field: Option<&String>) -> String {
    field.map_or_else(String::new, |field| format!(", field `{field}`"))
}

/// Text that is not the name of a method.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{given}` is not a method: write package.Service/Method")]
pub struct MethodNameError {
    /// Given text.
    pub given: String,
}

impl FromStr for MethodName {
    type Err = MethodNameError;

    fn from_str(text: &str) -> Result<Self, MethodNameError> {
        let wrong = || MethodNameError {
            given: text.to_owned(),
        };
        let text = text.strip_prefix('/').unwrap_or(text);
        // As reflection and some tools write it.
        let parts = text.rsplit_once('/').or_else(|| text.rsplit_once('.'));
        let (service, method) = parts.ok_or_else(wrong)?;
        if !is_name(service) || !is_name(method) {
            return Err(wrong());
        }
        Ok(Self {
            service: service.to_owned(),
            method: method.to_owned(),
        })
    }
}

/// Returns true for words with a dot between each two.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.split('.')
        .all(|word| !word.is_empty() && word.chars().all(is_part))
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.method)
    }
}

impl Descriptors {
    /// Those of a `google.protobuf.FileDescriptorSet`.
    ///
    /// # Errors
    /// [`DescriptorsError`] where the bytes are none.
    pub fn of_set(bytes: &[u8]) -> Result<Self, DescriptorsError> {
        let set = FileDescriptorSet::decode(bytes).map_err(no_bytes)?;
        if set.file.is_empty() {
            let problem = "it describes no file".to_owned();
            return Err(DescriptorsError::Bytes { problem });
        }
        Self::of(set.file)
    }

    /// Those of files, each a `google.protobuf.FileDescriptorProto`, in any order;
    /// the same one may be there several times.
    ///
    /// # Errors
    /// [`DescriptorsError`] where one is none, or one is missing.
    pub fn of_files(files: &[Vec<u8>]) -> Result<Self, DescriptorsError> {
        let files = files
            .iter()
            .map(|file| FileDescriptorProto::decode(file.as_slice()));
        Self::of(files.collect::<Result<_, _>>().map_err(no_bytes)?)
    }

    fn of(mut files: Vec<FileDescriptorProto>) -> Result<Self, DescriptorsError> {
        let mut names = BTreeSet::new();
        files.retain(|file| names.insert(file.name().to_owned()));
        for file in &files {
            let mut imports = file.dependency.iter();
            if let Some(missing) = imports.find(|import| !names.contains(*import)) {
                return Err(DescriptorsError::Import {
                    file: missing.clone(),
                    by: file.name().to_owned(),
                });
            }
        }
        for file in &files {
            // What is wrong here the library stumbles over.
            if !matches!(file.syntax(), "" | "proto2" | "proto3") {
                let syntax = file.syntax();
                let problem = format!(
                    "{} is in the syntax `{syntax}`, which is not supported",
                    file.name()
                );
                return Err(DescriptorsError::Set { problem });
            }
            if let Some(name) = empty_enumeration(&file.enum_type, &file.message_type) {
                let problem = format!("the enumeration {name} has no values");
                return Err(DescriptorsError::Set { problem });
            }
        }
        files.iter_mut().for_each(simplify);
        let pool = DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files });
        let pool = pool.map_err(|error| DescriptorsError::Set {
            problem: error.to_string(),
        })?;
        let descriptors = Self { pool };
        // A method with another name could not be selected.
        if let Some(name) = descriptors
            .methods()
            .map(|method| method.name())
            .find(is_no_name)
        {
            let problem = format!("a method is called `{name}`, which is not a valid name");
            return Err(DescriptorsError::Set { problem });
        }
        Ok(descriptors)
    }

    /// The method of this name.
    ///
    /// # Errors
    /// [`MethodError`] says what there is instead.
    pub fn method(&self, name: &MethodName) -> Result<GrpcMethod, MethodError> {
        let missing = |what, name: &str, given: String, names: Vec<String>| MethodError {
            what,
            given,
            nearest: nearest(name, names.iter().map(String::as_str)).map(str::to_owned),
            names,
        };
        let Some(service) = self.pool.get_service_by_name(&name.service) else {
            let all = self.pool.services();
            let names = all.map(|service| service.full_name().to_owned()).collect();
            return Err(missing(
                "service",
                &name.service,
                name.service.clone(),
                names,
            ));
        };
        match service
            .methods()
            .find(|method| method.name() == name.method)
        {
            Some(descriptor) => Ok(GrpcMethod { descriptor }),
            None => {
                let all = service.methods();
                let names = all.map(|method| method.name().to_owned()).collect();
                Err(missing("method", &name.method, name.to_string(), names))
            }
        }
    }

    /// Every method that is described.
    pub fn methods(&self) -> impl Iterator<Item = GrpcMethod> + '_ {
        let services = self.pool.services();
        services.flat_map(|service| {
            let methods: Vec<MethodDescriptor> = service.methods().collect();
            methods
                .into_iter()
                .map(|descriptor| GrpcMethod { descriptor })
        })
    }
}

fn is_no_name(name: &MethodName) -> bool {
    !is_name(&name.service) || !is_name(&name.method)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are handed over as they come"
)]
fn no_bytes(error: prost_reflect::prost::DecodeError) -> DescriptorsError {
    DescriptorsError::Bytes {
        problem: error.to_string(),
    }
}

/// An enumeration without values, of these or of those in `messages`.
fn empty_enumeration<'f>(
    enums: &'f [EnumDescriptorProto],
    messages: &'f [DescriptorProto],
) -> Option<&'f str> {
    let empty = enums.iter().find(|kind| kind.value.is_empty());
    let mut inner = messages.iter();
    empty.map(EnumDescriptorProto::name).or_else(|| {
        inner.find_map(|message| empty_enumeration(&message.enum_type, &message.nested_type))
    })
}

/// Leaves out what is for compilers and readers: options may hold anything, and a
/// library that reads them may fail.
fn simplify(file: &mut FileDescriptorProto) {
    file.options = None;
    file.source_code_info = None;
    file.extension.iter_mut().for_each(simplify_field);
    file.message_type.iter_mut().for_each(simplify_message);
    for kind in &mut file.enum_type {
        kind.options = None;
        kind.value.iter_mut().for_each(|value| value.options = None);
    }
    for service in &mut file.service {
        service.options = None;
        let methods = service.method.iter_mut();
        methods.for_each(|method| method.options = None);
    }
}

fn simplify_message(message: &mut DescriptorProto) {
    message.options = message.options.take().map(|options| MessageOptions {
        map_entry: options.map_entry,
        ..MessageOptions::default()
    });
    message.field.iter_mut().for_each(simplify_field);
    message.extension.iter_mut().for_each(simplify_field);
    let ranges = message.extension_range.iter_mut();
    ranges.for_each(|range| range.options = None);
    let choices = message.oneof_decl.iter_mut();
    choices.for_each(|choice| choice.options = None);
    for kind in &mut message.enum_type {
        kind.options = None;
        kind.value.iter_mut().for_each(|value| value.options = None);
    }
    message.nested_type.iter_mut().for_each(simplify_message);
}

fn simplify_field(field: &mut FieldDescriptorProto) {
    field.options = field.options.take().map(|options| FieldOptions {
        packed: options.packed,
        ..FieldOptions::default()
    });
}

impl GrpcMethod {
    /// By its full name.
    #[must_use]
    pub fn name(&self) -> MethodName {
        MethodName {
            service: self.descriptor.parent_service().full_name().to_owned(),
            method: self.descriptor.name().to_owned(),
        }
    }

    /// Returns true if a call may send any number of messages, rather than one.
    #[must_use]
    pub fn client_streams(&self) -> bool {
        self.descriptor.is_client_streaming()
    }

    /// Returns true if an answer may have any number of messages, rather than one.
    #[must_use]
    pub fn server_streams(&self) -> bool {
        self.descriptor.is_server_streaming()
    }

    /// The messages that `text` holds in the JSON form of protocol buffers, one
    /// behind the other, in binary.
    ///
    /// # Errors
    /// [`MessageTextError`] names the field that is wrong.
    pub fn messages_of_json(&self, text: &str) -> Result<Vec<Vec<u8>>, MessageTextError> {
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let encode = |value: Result<Value, serde_json::Error>| {
            let value = value.map_err(|error| MessageTextError::Json {
                problem: error.to_string(),
            })?;
            let input = self.descriptor.input();
            match DynamicMessage::deserialize(input.clone(), &value) {
                Ok(message) => Ok(message.encode_to_vec()),
                Err(error) => {
                    let (fields, problem) = culprit(&input, &value, &error);
                    let field = (!fields.is_empty()).then(|| fields.join("."));
                    Err(self.shape(field, problem))
                }
            }
        };
        let messages: Vec<Vec<u8>> = values.map(encode).collect::<Result<_, _>>()?;
        if messages.is_empty() {
            return Err(MessageTextError::Nothing);
        }
        Ok(messages)
    }

    /// The message that `text` holds in the text format of protocol buffers, in
    /// binary.
    ///
    /// # Errors
    /// [`MessageTextError`] names the field that is wrong.
    pub fn message_of_text(&self, text: &str) -> Result<Vec<u8>, MessageTextError> {
        let message = read_text_format(&self.descriptor.input(), text);
        let message = message.map_err(|error| self.shape(None, error.to_string()))?;
        Ok(message.encode_to_vec())
    }

    /// Checks that `bytes` are a message that the method accepts.
    ///
    /// # Errors
    /// [`MessageTextError`] names the field that is wrong.
    pub fn check(&self, bytes: &[u8]) -> Result<(), MessageTextError> {
        let input = self.descriptor.input();
        let Err(error) = DynamicMessage::decode(input.clone(), bytes) else {
            return Ok(());
        };
        let whole = || (Vec::new(), error.to_string());
        let (fields, problem) = binary::culprit(&input, bytes, 0).unwrap_or_else(whole);
        let field = (!fields.is_empty()).then(|| fields.join("."));
        Err(self.shape(field, problem))
    }

    fn shape(&self, field: Option<String>, problem: String) -> MessageTextError {
        MessageTextError::Shape {
            message: self.descriptor.input().full_name().to_owned(),
            field,
            problem,
        }
    }
}

/// Returns the innermost field of `value` that is wrong alone, with the reason; `whole` is the
/// reason for the whole value.
fn culprit(
    message: &MessageDescriptor,
    value: &Value,
    whole: &serde_json::Error,
) -> (Vec<String>, String) {
    let Some(wrong) = wrong_field(message, value) else {
        return (Vec::new(), whole.to_string());
    };
    let (mut fields, problem) = match &wrong.inner {
        Some((message, value)) => culprit(message, value, &wrong.error),
        None => (Vec::new(), wrong.error.to_string()),
    };
    fields.insert(0, wrong.name);
    (fields, problem)
}

/// A field that is wrong.
struct WrongField {
    name: String,
    /// The message in it, where that is why.
    inner: Option<(MessageDescriptor, Value)>,
    error: serde_json::Error,
}

/// Returns the first field that is wrong alone.
fn wrong_field(message: &MessageDescriptor, value: &Value) -> Option<WrongField> {
    let read = |message: &MessageDescriptor, value: &Value| {
        DynamicMessage::deserialize(message.clone(), value).err()
    };
    let mut fields = value.as_object()?.iter();
    let (name, value, error) = fields.find_map(|(name, value)| {
        let single = Map::from_iter([(name.clone(), value.clone())]);
        let error = read(message, &Value::Object(single))?;
        Some((name.clone(), value, error))
    })?;
    let field = message.get_field_by_json_name(&name);
    let field = field.or_else(|| message.get_field_by_name(&name));
    let inner = field.filter(|field| !field.is_map()).and_then(|field| {
        let Kind::Message(inner) = field.kind() else {
            return None;
        };
        let is_wrong = |value: &&Value| value.is_object() && read(&inner, value).is_some();
        let wrong = match value {
            Value::Array(all) => all.iter().find(is_wrong),
            single => Some(single).filter(is_wrong),
        };
        wrong.map(|value| (inner.clone(), value.clone()))
    });
    Some(WrongField { name, inner, error })
}

#[cfg(test)]
pub(crate) mod tests;
