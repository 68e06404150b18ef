//! Requests of the kernel to a file system and their answers: version 7.31 of its FUSE protocol, as
//! in `linux/fuse.h`. Bytes in, bytes out; no I/O.
//!
//! A request has a head of 40 bytes with the operation (`opcode`), the node and the length, and a
//! body. An answer has a head of 16 bytes and a body. Numbers have the machine's byte order.

mod reply;
mod request;

pub use reply::{
    Attributes, FolderEntry, NodeKind, OpenFlags, Validity, init_reply, put_attributes, put_entry,
    put_folder_entry, put_open, put_statfs, put_written,
};
pub use request::{Init, Operation, Request, RequestError, SetAttributes, forgotten};

/// The protocol's major version.
pub const MAJOR: u32 = 7;
/// The newest minor version that this crate speaks.
pub const MINOR: u32 = 31;
/// Bytes of a request's head.
pub const REQUEST_HEAD_BYTES: usize = 40;
/// Bytes of an answer's head.
pub const REPLY_HEAD_BYTES: usize = 16;
/// The node that every file system begins with.
pub const ROOT: u64 = 1;
/// Bytes that one write or read carries at most.
pub const TRANSFER_MAX_BYTES: u32 = 1 << 20;
/// The largest request: a write with its head.
pub const REQUEST_MAX_BYTES: usize = (1 << 20) + 4096;

#[cfg(test)]
mod tests;
