//! What messages look like, read from the `.proto` files that users are given as
//! well: there is one account of every field's name, number and type.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::parse;

/// The files, by the paths under which they import each other.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../proto/", $path)))),*]
    };
}

/// Path and text of every file but those that are others under another name.
const FILES: &[(&str, &str)] = files![
    "api/adaptive_load/adaptive_load.proto",
    "api/adaptive_load/benchmark_result.proto",
    "api/adaptive_load/metric_spec.proto",
    "api/adaptive_load/plugins.proto",
    "api/client/options.proto",
    "api/client/output.proto",
    "api/client/service.proto",
    "api/distributor/distributor.proto",
    "api/rate_limiter/linear_ramping_rate_limiter.proto",
    "api/request_source/request_source_plugin.proto",
    "api/request_source/service.proto",
    "api/sink/sink.proto",
    "api/user_defined_output/log_response_headers.proto",
    "envoy/api/v2/core/base.proto",
    "envoy/config/core/v3/address.proto",
    "envoy/config/core/v3/base.proto",
    "envoy/config/core/v3/extension.proto",
    "envoy/config/core/v3/protocol.proto",
    "envoy/config/metrics/v3/stats.proto",
    "envoy/extensions/transport_sockets/tls/v3/tls.proto",
    "envoy/type/v3/semantic_version.proto",
    "google/protobuf/any.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/rpc/status.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "stillwell/service/v1/samples.proto",
];

/// Reflection under the name that it had before there was a first version.
const REFLECTION: [&str; 2] = ["grpc/reflection/v1/", "package grpc.reflection.v1;"];
const REFLECTION_ALPHA: [&str; 2] = [
    "grpc/reflection/v1alpha/reflection.proto",
    "package grpc.reflection.v1alpha;",
];

/// Path and text of every file.
pub(super) fn files() -> Vec<(&'static str, Cow<'static, str>)> {
    let [folder, package] = REFLECTION;
    let of_alpha = FILES.iter().filter(|(path, _)| path.starts_with(folder));
    let alpha = of_alpha.map(|(_, text)| {
        let text = text.replace(package, REFLECTION_ALPHA[1]);
        (REFLECTION_ALPHA[0], Cow::from(text))
    });
    let own = FILES.iter().map(|(path, text)| (*path, Cow::from(*text)));
    own.chain(alpha).collect()
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    parse::schema(&files()).unwrap_or_else(|error| unreachable!("a test reads the files: {error}"))
});

/// Every message and service that is known.
#[derive(Debug, Default)]
pub struct Schema {
    pub(super) files: Vec<File>,
    pub(super) messages: BTreeMap<String, Message>,
    pub(super) enums: BTreeMap<String, Enum>,
}

/// One `.proto` file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) package: String,
    pub(super) imports: Vec<String>,
    /// Full names of what is not nested.
    pub(super) messages: Vec<String>,
    pub(super) enums: Vec<String>,
    pub(super) services: Vec<Service>,
}

/// A message.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
    /// Names of groups of which one field at most is there.
    pub(super) choices: Vec<String>,
    /// Full names of what is nested in it.
    pub(super) messages: Vec<String>,
    pub(super) enums: Vec<String>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) repeated: bool,
    /// Which of the message's choices it belongs to.
    pub(super) choice: Option<usize>,
}

/// What a field holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Bool,
    String,
    Bytes,
    /// Of this full name.
    Enum(String),
    /// Of this full name.
    Message(String),
    /// Keys are texts.
    Map(Box<Self>),
}

/// Names and numbers.
#[derive(Debug, Default)]
pub(super) struct Enum {
    pub(super) values: Vec<(String, u32)>,
}

/// A service.
#[derive(Debug, Default)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) methods: Vec<Method>,
}

/// A method of a service.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) name: String,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) client_streams: bool,
    pub(super) server_streams: bool,
}

impl Schema {
    /// All that is known.
    #[must_use]
    pub fn own() -> &'static Self {
        &SCHEMA
    }

    /// The file that defines `symbol`: a message, an enumeration, a service, or one
    /// of its methods, by its full name.
    pub(super) fn file_of(&self, symbol: &str) -> Option<&File> {
        self.files.iter().find(|file| {
            let is_within = |own: &String| {
                symbol == own
                    || symbol
                        .strip_prefix(own.as_str())
                        .is_some_and(|rest| rest.starts_with('.'))
            };
            let is_defined = self.messages.contains_key(symbol) || self.enums.contains_key(symbol);
            let in_services = file.services.iter().any(|service| {
                let full = format!("{}.{}", file.package, service.name);
                let is_method = |method: &Method| symbol == format!("{full}.{}", method.name);
                symbol == full || service.methods.iter().any(is_method)
            });
            in_services || (is_defined && file.messages.iter().chain(&file.enums).any(is_within))
        })
    }
}

impl Message {
    pub(super) fn by_number(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number)
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Enum {
    pub(super) fn name(&self, number: u64) -> Option<&str> {
        let mut values = self.values.iter();
        let found = values.find(|(_, own)| u64::from(*own) == number)?;
        Some(&found.0)
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let mut values = self.values.iter();
        values
            .find(|(own, _)| own == name)
            .map(|(_, number)| *number)
    }
}
