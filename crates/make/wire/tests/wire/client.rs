use std::future::pending;

use stillwell_metric::Outcome;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::{Endpoint, Request, RequestError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::on_worker;

const LIMIT: ByteSize = ByteSize::mib(1);

fn post(body: &[u8]) -> Request<'_> {
    Request {
        method: "POST",
        path: "/in",
        authority: "localhost",
        headers: &[("connection", "close")],
        body,
    }
}

#[test]
fn a_response_that_comes_early_counts() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        // More than the socket takes while the server does not read.
        let body = vec![b'x'; 8 << 20];
        let (endpoint, request) = (Endpoint::unix(&path), post(&body));
        let server = async {
            let (mut stream, _) = listener.accept().await?;
            stream.read_exact(&mut [0; 16]).await?;
            let response = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno";
            stream.write_all(response).await
        };
        let (response, served) = tokio::join!(endpoint.request(&request, LIMIT), server);
        served?;
        let response = response?;
        assert_eq!(
            (response.status, response.body.as_slice()),
            (413, &b"no"[..])
        );
        Ok(())
    });
}

#[test]
fn a_response_that_stalls_ends_its_request() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let server = async {
            let (mut stream, _) = listener.accept().await?;
            let part = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no";
            stream.write_all(part).await?;
            pending::<std::io::Result<()>>().await
        };
        let (endpoint, request) = (Endpoint::unix(&path), post(b""));
        let stall = Nanos::from_millis(20);
        let error = tokio::select! {
            response = endpoint.request_unless_stalled(stall, &request, LIMIT) => {
                response.unwrap_err()
            }
            served = server => unreachable!("it never ends: {served:?}"),
        };
        assert!(
            matches!(error, RequestError::TimedOut { after, .. } if after == stall),
            "{error}"
        );
        assert_eq!(error.outcome(), Outcome::TimedOut);
        Ok(())
    });
}

#[test]
fn a_deadline_ends_a_request_that_gets_no_response() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let server = async {
            let accepted = listener.accept().await;
            pending::<()>().await;
            drop(accepted);
        };
        let (endpoint, request) = (Endpoint::unix(&path), post(b""));
        let error = tokio::select! {
            response = endpoint.request_within(Nanos::from_millis(20), &request, LIMIT) => {
                response.unwrap_err()
            }
            () = server => unreachable!("it never ends"),
        };
        assert!(matches!(error, RequestError::TimedOut { .. }), "{error}");
        assert_eq!(
            (error.was_sent(), error.outcome()),
            (true, Outcome::TimedOut)
        );
        drop(listener);
        let refused = endpoint.request(&request, LIMIT).await.unwrap_err();
        assert_eq!(
            (refused.was_sent(), refused.outcome()),
            (false, Outcome::ConnectRefused)
        );
        Ok(())
    });
}
