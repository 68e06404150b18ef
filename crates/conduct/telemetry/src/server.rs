//! The accept loop of metrics pages, over HTTP/1.1.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use stillwell_scope::Tasks;
use stillwell_wire::Stream;
use stillwell_wire::server::{
    Page, PageRequest, PageServer, Pages, PlainReader, Reader as _, drive,
};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use crate::format::prometheus::PROMETHEUS_TEXT;

/// Pause after a failed accept; each one in a row is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);

/// The text of a page.
pub(crate) trait PageText {
    /// Returns the page as it is now.
    fn text(&mut self) -> String;

    /// Notes that the page was sent.
    fn sent(&mut self) {}
}

/// Path and limits of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageService {
    /// The only path with a page; `None` for any path and method.
    pub(crate) path: Option<&'static str>,
    /// Maximum number of connections at a time; others wait.
    pub(crate) connections_max: usize,
    /// Maximum time of a connection.
    pub(crate) connection_time_max: Duration,
    /// True if a connection may have more than one request.
    pub(crate) keeps_alive: bool,
}

impl PageService {
    /// Accepts and serves connections until it is dropped.
    pub(crate) async fn serve<T: PageText + 'static>(
        self,
        accept: impl AsyncFn() -> io::Result<Stream>,
        text: impl Fn() -> T,
    ) -> Infallible {
        let mut tasks = Tasks::new(self.connections_max);
        let mut pause = PAUSE_FIRST;
        loop {
            // Both arms are cancel-safe.
            let accepted = tokio::select! {
                () = tasks.next_end(), if !tasks.is_empty() => continue,
                accepted = accept(), if tasks.has_room() => accepted,
            };
            if let Ok(stream) = accepted {
                pause = PAUSE_FIRST;
                let served = self.serve_connection(text(), stream);
                tasks.spawn(async move {
                    let served = timeout(self.connection_time_max, served).await;
                    served.unwrap_or_default();
                });
            } else {
                // Without a free descriptor the next try would fail at once.
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_LONGEST);
            }
        }
    }

    async fn serve_connection<T: PageText>(self, text: T, mut stream: Stream) {
        let service = self;
        let pages = ServedPages { service, text };
        let (mut server, mut buffer) = (PageServer::new(pages), PlainReader.begin());
        let end = drive(&mut server, &PlainReader, &mut buffer, &mut stream).await;
        if end.is_some() {
            // The peer may have closed the connection already.
            stream.shutdown().await.unwrap_or_default();
        }
    }

    /// A response with `status`.
    fn page(self, status: u16, body: String, keeps_alive: bool) -> Page {
        let content_type = if status == 200 {
            PROMETHEUS_TEXT
        } else {
            "text/plain"
        };
        let mut headers = vec![("content-type", content_type)];
        if !self.keeps_alive {
            headers.push(("connection", "close"));
        }
        Page {
            status,
            headers,
            body: body.into_bytes(),
            is_head: false,
            is_last: !(self.keeps_alive && keeps_alive),
        }
    }
}

/// The pages of one connection.
struct ServedPages<T> {
    service: PageService,
    text: T,
}

impl<T: PageText> Pages for ServedPages<T> {
    fn page(&mut self, request: &PageRequest) -> Page {
        let path = request.target.split('?').next();
        let status = match self.service.path {
            Some(served) if path != Some(served) => 404,
            Some(_) if request.method != "GET" => 405,
            _ => 200,
        };
        let body = match self.service.path {
            Some(served) if status != 200 => format!("the metrics are at {served}\n"),
            _ => self.text.text(),
        };
        self.service.page(status, body, request.keeps_alive)
    }

    fn malformed(&mut self) -> Option<Page> {
        Some(self.service.page(400, String::new(), false))
    }

    fn sent(&mut self, status: u16) {
        if status == 200 {
            self.text.sent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PageText for () {
        fn text(&mut self) -> String {
            String::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_descriptors_accepting_does_not_spin() {
        let tries = std::cell::Cell::new(0);
        let accept = async || {
            tries.set(tries.get() + 1);
            Err(io::Error::from_raw_os_error(24))
        };
        let service = PageService {
            path: None,
            connections_max: 1,
            connection_time_max: Duration::from_secs(2),
            keeps_alive: false,
        };
        let served = timeout(Duration::from_secs(10), service.serve(accept, || ()));
        assert!(served.await.is_err());
        // Pauses double from 10 ms to 1 s.
        assert!((10..20).contains(&tries.get()), "{}", tries.get());
    }
}
