//! One question over a connection of its own, and its answer.

use stillwell_http::{OneShot, Response};
use stillwell_units::ByteSize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Writes `request` and reads the answer, whose body is at most `body_max`.
///
/// # Errors
/// What went wrong, in words.
pub(crate) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
    body_max: ByteSize,
) -> Result<Response, String> {
    let lost = |error: std::io::Error| error.to_string();
    stream.write_all(request).await.map_err(lost)?;
    let mut answer = OneShot::new(body_max);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer).await.map_err(lost)?;
        if length == 0 {
            return answer.finish().map_err(with_source);
        }
        if let Some(response) = answer.push(&buffer[..length]).map_err(with_source)? {
            return Ok(response);
        }
    }
}

pub(crate) fn with_source(error: impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
