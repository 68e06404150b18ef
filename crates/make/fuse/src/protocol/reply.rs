//! Answers: each function puts a body behind what is in `out` already.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use stillwell_units::as_usize;

use super::{Init, MAJOR, MINOR, TRANSFER_MAX_BYTES};

/// Features of the kernel that are used: `FUSE_ASYNC_READ`, `FUSE_BIG_WRITES`,
/// `FUSE_PARALLEL_DIROPS`, `FUSE_MAX_PAGES`.
const WANTED_FLAGS: u32 = 1 | 1 << 5 | 1 << 18 | 1 << 22;
/// A page is no smaller anywhere.
const PAGE_BYTES: u32 = 4096;
/// Maximum number of concurrent background requests, such as reading ahead.
const BACKGROUND_MAX: u16 = 64;
/// Bytes of a block in what `stat` says.
const BLOCK_BYTES: u64 = 512;
/// Bytes of a block in what `statfs` says.
const STATFS_BLOCK_BYTES: u64 = 4096;
/// Bytes of a folder's entry before its name.
const ENTRY_HEAD_BYTES: usize = 24;

/// Attributes of a node. Times are in seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attributes {
    /// Its number, as `stat` shows it.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Blocks of 512 bytes that it takes.
    pub blocks: u64,
    /// When it was last read.
    pub accessed: (i64, u32),
    /// When its content last changed.
    pub modified: (i64, u32),
    /// When it last changed.
    pub changed: (i64, u32),
    /// Kind and permissions, as `stat` has them.
    pub mode: u32,
    /// Number of names.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// And of which group.
    pub gid: u32,
    /// The device, for a device file.
    pub device: u32,
}

impl Attributes {
    /// Makes a read-only file or folder of `size` bytes, last changed at `modified`.
    #[must_use]
    pub const fn read_only(
        inode: u64,
        kind: NodeKind,
        size: u64,
        modified: (i64, u32),
        owner: (u32, u32),
    ) -> Self {
        let (mode, links) = match kind {
            NodeKind::Folder => (0o040_555, 2),
            NodeKind::File => (0o100_444, 1),
        };
        Self {
            inode,
            size,
            blocks: size.div_ceil(BLOCK_BYTES),
            accessed: modified,
            modified,
            changed: modified,
            mode,
            links,
            uid: owner.0,
            gid: owner.1,
            device: 0,
        }
    }
}

/// The type of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeKind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// For how long the kernel may cache an answer, in whole seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// Lifetime of the name.
    pub name_secs: u64,
    /// Lifetime of the attributes.
    pub attributes_secs: u64,
}

impl Validity {
    /// No caching: the kernel repeats each request.
    pub const NONE: Self = Self {
        name_secs: 0,
        attributes_secs: 0,
    };
}

/// The kernel's treatment of an opened file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenFlags {
    /// It keeps what was read, and reads ahead.
    Cached,
    /// Each read of a program is a read of ours: `FOPEN_DIRECT_IO`.
    Direct,
}

/// One entry of a folder.
#[derive(Clone, Copy, Debug)]
pub struct FolderEntry<'a> {
    /// Its number.
    pub inode: u64,
    /// The offset after this entry, from which a listing continues.
    pub offset: u64,
    /// Its kind, as the upper bits of a mode have it.
    pub kind: u32,
    /// Its name.
    pub name: &'a OsStr,
}

/// The answer to [`Init`].
pub fn init_reply(init: Init, out: &mut Vec<u8>) {
    put_u32(out, MAJOR);
    put_u32(out, MINOR.min(init.minor));
    put_u32(out, init.readahead);
    put_u32(out, init.flags & WANTED_FLAGS);
    put_u16(out, BACKGROUND_MAX);
    put_u16(out, BACKGROUND_MAX / 4 * 3);
    put_u32(out, TRANSFER_MAX_BYTES);
    // Times are exact to the nanosecond.
    put_u32(out, 1);
    put_u16(
        out,
        u16::try_from(TRANSFER_MAX_BYTES / PAGE_BYTES).unwrap_or(u16::MAX),
    );
    put_u16(out, 0);
    out.extend([0; 32]);
}

/// Appends the answer to a lookup or to a request that makes a node.
pub fn put_entry(out: &mut Vec<u8>, node: u64, attributes: &Attributes, valid: Validity) {
    put_u64(out, node);
    put_u64(out, 0);
    put_u64(out, valid.name_secs);
    put_u64(out, valid.attributes_secs);
    put_u64(out, 0);
    put_fields(out, attributes);
}

/// The answer to a question for attributes, or to their change.
pub fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes, valid: Validity) {
    put_u64(out, valid.attributes_secs);
    put_u64(out, 0);
    put_fields(out, attributes);
}

fn put_fields(out: &mut Vec<u8>, attributes: &Attributes) {
    let times = [attributes.accessed, attributes.modified, attributes.changed];
    for number in [attributes.inode, attributes.size, attributes.blocks] {
        put_u64(out, number);
    }
    for (seconds, _) in times {
        put_u64(out, seconds.cast_unsigned());
    }
    for (_, rest) in times {
        put_u32(out, rest);
    }
    let Attributes {
        mode,
        links,
        uid,
        gid,
        device,
        ..
    } = *attributes;
    for number in [mode, links, uid, gid, device, PAGE_BYTES, 0] {
        put_u32(out, number);
    }
}

/// The answer to an open.
pub fn put_open(out: &mut Vec<u8>, handle: u64, flags: OpenFlags) {
    put_u64(out, handle);
    put_u32(out, u32::from(flags == OpenFlags::Direct));
    put_u32(out, 0);
}

/// The answer to a write.
pub fn put_written(out: &mut Vec<u8>, bytes: u32) {
    put_u32(out, bytes);
    put_u32(out, 0);
}

/// The answer to a question for room: bytes in all, and bytes that are free.
pub fn put_statfs(out: &mut Vec<u8>, bytes: u64, free: u64) {
    let (blocks, free) = (bytes / STATFS_BLOCK_BYTES, free / STATFS_BLOCK_BYTES);
    for number in [blocks, free, free, 1 << 20, 1 << 20] {
        put_u64(out, number);
    }
    for number in [PAGE_BYTES, 255, PAGE_BYTES, 0] {
        put_u32(out, number);
    }
    out.extend([0; 24]);
}

/// One entry of a listing that began at `from` of `out`, unless it would make it
/// longer than `size`; says whether it did not.
#[must_use]
pub fn put_folder_entry(out: &mut Vec<u8>, from: usize, size: u32, entry: FolderEntry<'_>) -> bool {
    let name = entry.name.as_bytes();
    let length = (ENTRY_HEAD_BYTES + name.len()).next_multiple_of(8);
    let room = as_usize(size);
    if out.len() - from + length > room {
        return false;
    }
    let end = out.len() + length;
    put_u64(out, entry.inode);
    put_u64(out, entry.offset);
    put_u32(out, u32::try_from(name.len()).unwrap_or(0));
    put_u32(out, entry.kind >> 12 & 0o17);
    out.extend(name);
    out.resize(end, 0);
    true
}

fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend(number.to_ne_bytes());
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_ne_bytes());
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_ne_bytes());
}
