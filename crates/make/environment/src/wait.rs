//! Waits of a preparation.

use std::io;

/// Waits for `future` on this thread, which has no runtime.
///
/// # Errors
/// That of the operating system if there can be no runtime.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}
