//! Requests that tell something: one connection each, as they are rare.

use stillwell_http::{OneShot, RequestTemplate, Response};
use stillwell_plan::{Alpn, ReceiverPlan};
use stillwell_scope::explain;
use stillwell_units::ByteSize;
use stillwell_wire::tls::{ClientTls, TlsStream};
use stillwell_wire::{Stream, dial};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The largest answer that is read.
const ANSWER_MAX: ByteSize = ByteSize::mib(1);

/// How much of an answer is told where it says why something was refused.
const WHY_MAX: usize = 200;

/// Somebody who is told something over HTTP.
#[derive(Debug)]
pub(super) struct Receiver {
    plan: ReceiverPlan,
    tls: Option<ClientTls>,
}

/// A connection to a receiver.
pub(super) enum Opened {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Receiver {
    pub(super) fn new(plan: &ReceiverPlan, tls: &ClientTls, alpn: Alpn) -> Self {
        Self {
            plan: plan.clone(),
            tls: plan.tls_host.as_ref().map(|_| tls.offering(&[alpn])),
        }
    }

    pub(super) const fn plan(&self) -> &ReceiverPlan {
        &self.plan
    }

    pub(super) async fn open(&self) -> Result<Opened, String> {
        let stream = dial::tcp(&self.plan.address).await;
        let stream = stream.map_err(|error| explain(&error))?;
        let (Some(tls), Some(host)) = (&self.tls, &self.plan.tls_host) else {
            return Ok(Opened::Plain(stream));
        };
        let name = tls.server_name(host).map_err(|error| explain(&error))?;
        let opened = tls.connect(Stream::from(stream), &name).await;
        let opened = opened.map_err(|error| explain(&error))?;
        Ok(Opened::Tls(Box::new(opened)))
    }

    /// Tells it `body`, and gives the body of an answer that agrees.
    pub(super) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, String> {
        let fixed = [("user-agent", "stillwell"), ("connection", "close")];
        let headers = [&fixed, headers].concat();
        let (path, authority) = (&self.plan.path, &self.plan.authority);
        let template = RequestTemplate::new("POST", path, authority, &headers);
        let template = template.map_err(|error| explain(&error))?;
        let mut request = Vec::new();
        template.write_head(body.len() as u64, &mut request);
        request.extend_from_slice(body);
        let answer = match self.open().await? {
            Opened::Plain(stream) => ask(stream, &request).await?,
            Opened::Tls(stream) => ask(*stream, &request).await?,
        };
        if (200..300).contains(&answer.status) {
            return Ok(answer.body);
        }
        let why = String::from_utf8_lossy(&answer.body);
        let why: String = why.trim().chars().take(WHY_MAX).collect();
        Err(format!("it answers {} {why}", answer.status))
    }
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &[u8],
) -> Result<Response, String> {
    let sent = async {
        stream.write_all(request).await?;
        stream.flush().await
    };
    // It may answer before it has read all, and close: the answer counts.
    let sent = sent.await;
    let mut answer = OneShot::new(ANSWER_MAX);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = match stream.read(&mut buffer).await {
            Ok(length) => length,
            Err(error) => return Err(explain(&sent.err().unwrap_or(error))),
        };
        if length == 0 {
            return answer.finish().map_err(|error| explain(&error));
        }
        let whole = answer.push(&buffer[..length]);
        if let Some(whole) = whole.map_err(|error| explain(&error))? {
            return Ok(whole);
        }
    }
}
