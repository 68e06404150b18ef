//! Real mounts, and real programs that use them.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test, and says what it skips"
)]

#[path = "fuse/disk.rs"]
mod disk;
#[path = "fuse/place.rs"]
mod place;
#[path = "fuse/support.rs"]
mod support;
