//! The messages and services that are known: a compiler's descriptors of the `.proto`
//! files, which users are given as well.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};

use super::error::WireError;

/// Made of the files beside it; a test compares.
const DESCRIPTORS: &[u8] = include_bytes!("../../proto/descriptors.binpb");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema {
    pool: DescriptorPool::decode(DESCRIPTORS)
        .unwrap_or_else(|error| unreachable!("a test reads the descriptors: {error}")),
});

/// Every message and service that is known.
#[derive(Debug)]
pub struct Schema {
    pool: DescriptorPool,
}

impl Schema {
    /// All that is known.
    #[must_use]
    pub fn shared() -> &'static Self {
        &SCHEMA
    }

    /// The full names of all services.
    #[must_use]
    pub fn services(&self) -> Vec<String> {
        let services = self.pool.services();
        services
            .map(|service| service.full_name().to_owned())
            .collect()
    }

    /// The file at `path` and all that it imports, each as the bytes of a
    /// `google.protobuf.FileDescriptorProto`; `None` where there is no such file.
    #[must_use]
    pub fn describe_file(&self, path: &str) -> Option<Vec<Vec<u8>>> {
        let mut files = vec![self.pool.get_file_by_name(path)?];
        let mut next = 0;
        while let Some(file) = files.get(next).cloned() {
            next += 1;
            for import in file.dependencies() {
                if !files.contains(&import) {
                    files.push(import);
                }
            }
        }
        Some(files.iter().map(FileDescriptor::encode_to_vec).collect())
    }

    /// The same of the file that defines `symbol`: the full name of a message, an
    /// enumeration, a service, or one of its methods.
    #[must_use]
    pub fn describe_symbol(&self, symbol: &str) -> Option<Vec<Vec<u8>>> {
        self.describe_file(self.file_of(symbol)?.name())
    }

    fn file_of(&self, symbol: &str) -> Option<FileDescriptor> {
        if let Some(message) = self.pool.get_message_by_name(symbol) {
            return Some(message.parent_file());
        }
        if let Some(values) = self.pool.get_enum_by_name(symbol) {
            return Some(values.parent_file());
        }
        let mut services = self.pool.services();
        let service = services.find(|service| {
            let is_method = |name: &str| service.methods().any(|method| method.name() == name);
            match symbol.strip_prefix(service.full_name()) {
                Some("") => true,
                Some(rest) => rest.strip_prefix('.').is_some_and(is_method),
                None => false,
            }
        });
        service.map(|service| service.parent_file())
    }

    /// The message of this full name.
    pub(super) fn message(&self, name: &str) -> Result<MessageDescriptor, WireError> {
        let message = self.pool.get_message_by_name(name);
        message.ok_or_else(|| WireError::NoSuch {
            name: name.to_owned(),
        })
    }

    /// `true` where the message of this full name is known.
    pub(super) fn has_message(&self, name: &str) -> bool {
        self.pool.get_message_by_name(name).is_some()
    }
}
