//! File systems of our own.
//!
//! * [`protocol`]: requests of the kernel to a file system, and their answers (FUSE). Bytes in,
//!   bytes out.
//! * [`Mount`]: a mounted file system. Dropping it unmounts it. The next run removes what a killed
//!   run left. Processes with open files are named and do not delay the end.
//! * [`serve`]: the loop that answers for one [`FileSystem`], on a thread of a scope. It ends with
//!   its token.
//! * [`Disk`]: a folder shown through a disk that may be slow, small and late with `fsync`, and
//!   counts its requests.
//!
//! The kernel's protocol is implemented here and no library is linked (ADR 0031): answers must be
//! able to wait without a thread each, and the loop must end with its token even while processes
//! use the file system.

mod disk;
mod mount;
pub mod protocol;
mod serve;

pub use disk::{Disk, DiskControls, DiskError, DiskServer};
pub use mount::{Device, ExistingEntries, Mount, MountError, MountNote, MountOwner};
/// An error of the kernel, by its number.
pub use rustix::io::Errno;
pub use serve::{Answer, FileSystem, serve};
