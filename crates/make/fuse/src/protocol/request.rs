//! Requests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::REQUEST_HEAD_BYTES;

/// Of [`SetAttributes`]: which fields mean something.
const VALID_MODE: u32 = 1;
const VALID_UID: u32 = 1 << 1;
const VALID_GID: u32 = 1 << 2;
const VALID_SIZE: u32 = 1 << 3;
const VALID_ATIME: u32 = 1 << 4;
const VALID_MTIME: u32 = 1 << 5;
const VALID_HANDLE: u32 = 1 << 6;
const VALID_ATIME_NOW: u32 = 1 << 7;
const VALID_MTIME_NOW: u32 = 1 << 8;

/// A request of the kernel.
#[derive(Debug)]
pub struct Request<'a> {
    /// Names the request in its answer.
    pub unique: u64,
    /// The node that the request concerns; 0 for none.
    pub node: u64,
    /// The user of the requesting process.
    pub uid: u32,
    /// And of which group.
    pub gid: u32,
    /// Number of the requesting thread in the namespace of the mounting process; 0 if it has none there.
    pub thread: u32,
    /// The operation.
    pub operation: Operation<'a>,
}

/// A requested operation.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "fields have the names of the arguments of their system calls"
)]
pub enum Operation<'a> {
    /// The beginning of everything.
    Init(Init),
    /// The end of everything.
    Destroy,
    /// Find the node of this name in the folder.
    Lookup { name: &'a OsStr },
    /// So many answers that named the node are forgotten. No answer.
    Forget { count: u64 },
    /// The same for many nodes: see [`forgotten`]. No answer.
    ForgetMany { pairs: &'a [u8] },
    /// Get the attributes of the node.
    GetAttributes,
    /// Change some of it.
    SetAttributes(SetAttributes),
    /// Read the target of the link.
    ReadLink,
    /// Make a link.
    SymbolicLink { name: &'a OsStr, target: &'a OsStr },
    /// Make a file, pipe or socket.
    MakeNode {
        mode: u32,
        device: u32,
        name: &'a OsStr,
    },
    /// Make a folder.
    MakeFolder { mode: u32, name: &'a OsStr },
    /// Remove a name that is no folder's.
    Unlink { name: &'a OsStr },
    /// Remove an empty folder.
    RemoveFolder { name: &'a OsStr },
    /// Give `from` the name `to` in the node `folder`; flags as renameat2's.
    Rename {
        folder: u64,
        flags: u32,
        from: &'a OsStr,
        to: &'a OsStr,
    },
    /// Give the node `from` one more name in this folder.
    Link { from: u64, name: &'a OsStr },
    /// Open the node; flags as open's.
    Open { flags: u32 },
    /// Make a file and open it.
    Create {
        flags: u32,
        mode: u32,
        name: &'a OsStr,
    },
    /// Read `size` bytes at most.
    Read { handle: u64, offset: u64, size: u32 },
    /// Write.
    Write {
        handle: u64,
        offset: u64,
        data: &'a [u8],
    },
    /// A descriptor is closed; there may be others of the handle.
    Flush { handle: u64 },
    /// The last descriptor of a handle was closed.
    Release { handle: u64 },
    /// See to it that all that was written is kept; of the file's content alone
    /// where `data_only`.
    Fsync { handle: u64, data_only: bool },
    /// The same of a folder.
    FsyncFolder,
    /// Open the folder.
    OpenFolder,
    /// List the folder from the entry after `offset` on, in `size` bytes at most.
    ReadFolder { handle: u64, offset: u64, size: u32 },
    /// Close the folder.
    ReleaseFolder { handle: u64 },
    /// Get the free space.
    StatFs,
    /// A signal came for the thread that waits for the answer to `unique`. Only the first one is reported. No
    /// answer.
    Interrupt { unique: u64 },
    /// Anything else, by its number.
    Other(u32),
}

/// Capabilities of the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Init {
    /// The kernel's version.
    pub major: u32,
    /// And within it.
    pub minor: u32,
    /// Bytes that it reads ahead at most.
    pub readahead: u32,
    /// Its features: `FUSE_ASYNC_READ` and so on.
    pub flags: u32,
}

/// Attributes of a node to change. Times are in seconds and nanoseconds since 1970; `None` within
/// one means now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetAttributes {
    /// The handle through which it is changed, if through one.
    pub handle: Option<u64>,
    /// Its permissions.
    pub mode: Option<u32>,
    /// The new owner.
    pub uid: Option<u32>,
    /// And of which group.
    pub gid: Option<u32>,
    /// Its length.
    pub size: Option<u64>,
    /// When it was last read.
    pub accessed: Option<Option<(i64, u32)>>,
    /// When it was last changed.
    pub modified: Option<Option<(i64, u32)>>,
}

/// Bytes that are no request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("read a request of the kernel: {length} bytes, opcode {opcode}")]
pub struct RequestError {
    /// Number of received bytes.
    pub length: usize,
    /// The operation, as far as known; 0 otherwise.
    pub opcode: u32,
    /// The request's name, with which it can be refused; 0 where there is none.
    pub unique: u64,
}

impl<'a> Request<'a> {
    /// Reads what the kernel has handed over.
    ///
    /// # Errors
    /// [`RequestError`] where bytes are missing.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RequestError> {
        let mut head = Fields(bytes);
        let read_head = |head: &mut Fields<'a>| {
            head.skip(4)?;
            Some((
                head.u32()?,
                head.u64()?,
                head.u64()?,
                head.u32()?,
                head.u32()?,
                head.u32()?,
            ))
        };
        let (opcode, unique, node, uid, gid, thread) =
            read_head(&mut head).ok_or(RequestError {
                length: bytes.len(),
                opcode: 0,
                unique: 0,
            })?;
        let failed = RequestError {
            length: bytes.len(),
            opcode,
            unique,
        };
        let body = bytes.get(REQUEST_HEAD_BYTES..).ok_or(failed)?;
        let operation = Operation::parse(opcode, Fields(body)).ok_or(failed)?;
        Ok(Self {
            unique,
            node,
            uid,
            gid,
            thread,
            operation,
        })
    }
}

impl<'a> Operation<'a> {
    fn parse(opcode: u32, mut body: Fields<'a>) -> Option<Self> {
        Some(match opcode {
            1 => Self::Lookup { name: body.name()? },
            2 => Self::Forget { count: body.u64()? },
            3 => Self::GetAttributes,
            4 => Self::SetAttributes(body.set_attributes()?),
            5 => Self::ReadLink,
            6..=13 | 35 | 45 => Self::parse_naming(opcode, body)?,
            14 => Self::Open { flags: body.u32()? },
            15 | 16 | 28 => Self::parse_transfer(opcode, body)?,
            17 => Self::StatFs,
            18 => Self::Release {
                handle: body.u64()?,
            },
            20 => Self::Fsync {
                handle: body.u64()?,
                data_only: body.u32()? & 1 != 0,
            },
            25 => Self::Flush {
                handle: body.u64()?,
            },
            26 => Self::Init(Init {
                major: body.u32()?,
                minor: body.u32()?,
                readahead: body.u32()?,
                flags: body.u32()?,
            }),
            27 => Self::OpenFolder,
            29 => Self::ReleaseFolder {
                handle: body.u64()?,
            },
            30 => Self::FsyncFolder,
            36 => Self::Interrupt {
                unique: body.u64()?,
            },
            38 => Self::Destroy,
            42 => {
                body.skip(8)?;
                Self::ForgetMany { pairs: body.0 }
            }
            from => Self::Other(from),
        })
    }

    /// Requests that make, move or remove a name.
    fn parse_naming(opcode: u32, mut body: Fields<'a>) -> Option<Self> {
        Some(match opcode {
            6 => Self::SymbolicLink {
                name: body.name()?,
                target: body.name()?,
            },
            8 => {
                let (mode, device) = (body.u32()?, body.u32()?);
                body.skip(8)?;
                let name = body.name()?;
                Self::MakeNode { mode, device, name }
            }
            9 => {
                let mode = body.u32()?;
                body.skip(4)?;
                let name = body.name()?;
                Self::MakeFolder { mode, name }
            }
            10 => Self::Unlink { name: body.name()? },
            11 => Self::RemoveFolder { name: body.name()? },
            12 | 45 => {
                let folder = body.u64()?;
                let mut flags = 0;
                if opcode == 45 {
                    flags = body.u32()?;
                    body.skip(4)?;
                }
                let (from, to) = (body.name()?, body.name()?);
                Self::Rename {
                    folder,
                    flags,
                    from,
                    to,
                }
            }
            13 => Self::Link {
                from: body.u64()?,
                name: body.name()?,
            },
            35 => {
                let (flags, mode) = (body.u32()?, body.u32()?);
                body.skip(8)?;
                let name = body.name()?;
                Self::Create { flags, mode, name }
            }
            from => Self::Other(from),
        })
    }

    /// Requests that move bytes.
    fn parse_transfer(opcode: u32, mut body: Fields<'a>) -> Option<Self> {
        let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()?);
        body.skip(20)?;
        Some(match opcode {
            15 => Self::Read {
                handle,
                offset,
                size,
            },
            28 => Self::ReadFolder {
                handle,
                offset,
                size,
            },
            _ => Self::Write {
                handle,
                offset,
                data: body.0.get(..usize::try_from(size).ok()?)?,
            },
        })
    }

    /// Returns true if the kernel waits for an answer.
    #[must_use]
    pub const fn expects_reply(&self) -> bool {
        !matches!(
            self,
            Self::Forget { .. } | Self::ForgetMany { .. } | Self::Interrupt { .. }
        )
    }
}

/// The nodes of [`Operation::ForgetMany`], and how many answers of each.
pub fn forgotten(pairs: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    pairs.chunks_exact(16).filter_map(|pair| {
        let mut fields = Fields(pair);
        Some((fields.u64()?, fields.u64()?))
    })
}

/// The unread fields.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// A name, which ends with a zero byte.
    fn name(&mut self) -> Option<&'a OsStr> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let name = OsStr::from_bytes(&self.0[..end]);
        self.0 = &self.0[end + 1..];
        Some(name)
    }

    fn set_attributes(&mut self) -> Option<SetAttributes> {
        let valid = self.u32()?;
        self.skip(4)?;
        let (handle, size) = (self.u64()?, self.u64()?);
        self.skip(8)?;
        let (accessed, modified) = (self.u64()?, self.u64()?);
        self.skip(8)?;
        let (accessed_rest, modified_rest) = (self.u32()?, self.u32()?);
        self.skip(4)?;
        let mode = self.u32()?;
        self.skip(4)?;
        let (uid, gid) = (self.u32()?, self.u32()?);
        let has = |bit: u32| valid & bit != 0;
        let time = |bit, now, seconds: u64, rest| {
            has(bit).then(|| (!has(now)).then_some((seconds.cast_signed(), rest)))
        };
        Some(SetAttributes {
            handle: has(VALID_HANDLE).then_some(handle),
            mode: has(VALID_MODE).then_some(mode),
            uid: has(VALID_UID).then_some(uid),
            gid: has(VALID_GID).then_some(gid),
            size: has(VALID_SIZE).then_some(size),
            accessed: time(VALID_ATIME, VALID_ATIME_NOW, accessed, accessed_rest),
            modified: time(VALID_MTIME, VALID_MTIME_NOW, modified, modified_rest),
        })
    }
}
