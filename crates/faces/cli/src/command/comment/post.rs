//! Requests to the host of a repository.

use std::sync::mpsc::sync_channel;

use stillwell_http::Scheme;
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_scope::{Place, Scope, Token, explain};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::{Endpoint, Request, Response};
use stillwell_wire::tls::ClientTls;

use super::host::{CommentThread, RemoteComment, is_full, with_marker};

/// Time limits.
#[derive(Clone, Copy, Debug)]
struct PostLimits {
    /// Of one request.
    request: Nanos,
    /// Of all requests.
    total: Nanos,
    /// Pauses before the second and the third attempt.
    pauses: [Nanos; 2],
}

const LIMITS: PostLimits = PostLimits {
    request: Nanos::from_secs(10),
    total: Nanos::from_secs(60),
    pauses: [Nanos::from_millis(500), Nanos::from_secs(2)],
};
/// Largest page of a list.
const PAGE_MAX: ByteSize = ByteSize::mib(16);
/// Pages of the list in which the comment is looked for.
const PAGES_MAX: usize = 30;

/// Result of a post.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Posted {
    Created,
    Updated,
    Unchanged,
}

/// Reason why there is no comment.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum PostError {
    /// The token may not do this.
    #[error("the token has no permission to comment (status {0}), as in pull requests from forks")]
    Forbidden(u16),
    /// The host refused the request.
    #[error("the host answered with status {0}")]
    Refused(u16),
    /// No answer, or one that could not be used.
    #[error("{0}")]
    Failed(String),
    /// All attempts together took too long.
    #[error("the host did not answer within {0}")]
    TimedOut(Nanos),
}

impl PostError {
    /// Returns true if another attempt may succeed.
    const fn is_transient(&self) -> bool {
        match self {
            Self::Refused(status) => *status >= 500 || *status == 429,
            Self::Failed(_) => true,
            Self::Forbidden(_) | Self::TimedOut(_) => false,
        }
    }
}

/// Makes the comment with `marker` have this text: replaces it, or creates it.
pub(super) fn post(thread: &CommentThread, marker: &str, text: &str) -> Result<Posted, PostError> {
    post_within(LIMITS, thread, marker, text)
}

/// Posts on a thread with a runtime.
fn post_within(
    limits: PostLimits,
    thread: &CommentThread,
    marker: &str,
    text: &str,
) -> Result<Posted, PostError> {
    let failed = |error: String| PostError::Failed(error);
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(1);
    let (thread, marker, text) = (thread.clone(), marker.to_owned(), text.to_owned());
    let worker = scope.worker(Place::default(), "comment", move |_| async move {
        let access = Access {
            thread: &thread,
            limits,
        };
        let attempts = access.attempts(&marker, &text);
        let result = tokio::time::timeout(limits.total.as_duration(), attempts).await;
        sender.send(result.unwrap_or(Err(PostError::TimedOut(limits.total))))?;
        Ok(())
    });
    worker.map_err(|error| failed(explain(&error)))?;
    let result = receiver.recv();
    drop(scope.close(Nanos::SECOND));
    result.unwrap_or_else(|_| {
        Err(failed(
            "the thread that posts the comment ended early".to_owned(),
        ))
    })
}

/// A thread of comments, and the limits of requests to it.
#[derive(Clone, Copy, Debug)]
struct Access<'t> {
    thread: &'t CommentThread,
    limits: PostLimits,
}

impl Access<'_> {
    async fn attempts(self, marker: &str, text: &str) -> Result<Posted, PostError> {
        let mut pauses = self.limits.pauses.iter();
        loop {
            // The list is read again each time: a request without an answer may have created the comment.
            match self.attempt(marker, text).await {
                Err(error) if error.is_transient() => match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause.as_duration()).await,
                    None => return Err(error),
                },
                result => return result,
            }
        }
    }

    async fn attempt(self, marker: &str, text: &str) -> Result<Posted, PostError> {
        let body = CommentThread::body(text);
        match self.find(marker).await? {
            Some(comment) if is_same(&comment, text) => Ok(Posted::Unchanged),
            Some(comment) => {
                let (method, path) = self.thread.update(&comment);
                self.request(method, &path, &body).await?;
                Ok(Posted::Updated)
            }
            None => {
                self.request("POST", &self.thread.list, &body).await?;
                Ok(Posted::Created)
            }
        }
    }

    /// Returns the comment with the marker, if there is one.
    async fn find(self, marker: &str) -> Result<Option<RemoteComment>, PostError> {
        for number in 1..=PAGES_MAX {
            let page = self.thread.page(number);
            let response = self.request("GET", &page, "").await?;
            let page: Vec<RemoteComment> =
                serde_json::from_slice(&response.body).map_err(|error| {
                    PostError::Failed(format!("the list of comments could not be read: {error}"))
                })?;
            if let Some(comment) = with_marker(&page, marker) {
                return Ok(Some(comment.clone()));
            }
            if !is_full(&page) {
                break;
            }
        }
        Ok(None)
    }

    /// Sends one request; only a success is returned.
    async fn request(self, method: &str, path: &str, body: &str) -> Result<Response, PostError> {
        let target = &self.thread.target;
        let tls = match target.scheme() {
            Scheme::Https => Some(ClientTls::new(&ClientTlsPlan::default())),
            _ => None,
        };
        let tls = tls.transpose();
        let tls = tls.map_err(|error| PostError::Failed(explain(&error)))?;
        let authority = target.authority();
        let headers = self.thread.headers();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let request = Request {
            method,
            path,
            authority: &authority,
            headers: &headers,
            body: body.as_bytes(),
        };
        let endpoint = Endpoint::of_target(target, tls);
        let response = endpoint.request_within(self.limits.request, &request, PAGE_MAX);
        let response = response.await.map_err(|error| {
            let error = explain(&error);
            PostError::Failed(format!("{}: {error}", target.host()))
        })?;
        match response.status {
            200..300 => Ok(response),
            status @ (401 | 403 | 404) => Err(PostError::Forbidden(status)),
            status => Err(PostError::Refused(status)),
        }
    }
}

/// Returns true if the comment has this text; hosts may cut the end of the last line.
fn is_same(comment: &RemoteComment, text: &str) -> bool {
    let body = comment.body.as_deref().unwrap_or_default();
    body.trim_end() == text.trim_end()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::host::thread_at;
    use super::*;

    #[test]
    fn a_host_that_does_not_answer_is_given_up() {
        // Connections wait in its queue.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = thread_at(&format!("http://{address}"));
        let short = Nanos::from_millis(20);
        let limits = |request, total| PostLimits {
            request,
            total,
            pauses: [short; 2],
        };
        let long = Nanos::from_secs(60);
        let error = post_within(limits(short, long), &thread, "<!-- m -->", "text").unwrap_err();
        assert!(matches!(error, PostError::Failed(_)), "{error}");
        listener.set_nonblocking(true).unwrap();
        let attempts = std::iter::from_fn(|| listener.accept().ok()).count();
        assert_eq!(attempts, 3);

        let error = post_within(limits(long, short), &thread, "<!-- m -->", "text").unwrap_err();
        assert_eq!(error, PostError::TimedOut(short));
    }
}
