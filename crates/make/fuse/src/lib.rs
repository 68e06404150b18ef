//! File systems of our own.
//!
//! * [`protocol`]: what the kernel asks of a file system, and how it is answered
//!   (FUSE). Bytes in, bytes out.
//! * [`Mount`]: a file system at its place, and its end on every way out: whoever
//!   drops it takes it away, what a killed run left is cleared by the next one, and
//!   who still has files open is named and does not hold it up.
//! * [`serve`]: the loop that answers for one [`FileSystem`], on a thread of a scope.
//!   It ends with its token.
//! * [`Disk`]: a folder shown through a disk that may be slow, small and late with
//!   `fsync`, and counts what it was asked.
//!
//! The kernel's protocol is spoken here and no library is linked (ADR 0031): answers
//! must be able to wait without a thread each, and the loop must end with its token
//! whoever still uses the file system.

mod disk;
mod mount;
pub mod protocol;
mod serve;

pub use disk::{Disk, DiskControls, DiskError, DiskServer};
pub use mount::{Beneath, Device, Mount, MountError, MountNote};
/// An error of the kernel, by its number.
pub use rustix::io::Errno;
pub use serve::{Answer, FileSystem, serve};
