//! Results in a store of objects that is compatible with S3.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::{Context, bail};
use stillwell_http::{Scheme, StoreKeys, Target, Unsigned, encoded_path};
use stillwell_plan::ClientTlsPlan;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::{Endpoint, Request, Response};
use stillwell_wire::tls::ClientTls;
use tokio::time::timeout;

use crate::command::places;

/// How long the store may take.
const PUT_MAX: Duration = Duration::from_secs(60);
/// What of a refusal is read.
const ANSWER_MAX: ByteSize = ByteSize::mib(1);

/// A place in a store, and who asks.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// The endpoint.
    target: Target,
    keys: StoreKeys,
    bucket: String,
    /// Without slashes at its ends; may be empty.
    prefix: String,
}

impl Store {
    /// The store that `results` means, if it means one: `s3://BUCKET/PREFIX`. The
    /// endpoint and the keys are in the environment.
    pub(super) fn of(results: Option<&PathBuf>) -> anyhow::Result<Option<Self>> {
        let Some(rest) = results.and_then(|path| path.to_str()?.strip_prefix("s3://")) else {
            return Ok(None);
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_fit) {
            bail!("`s3://{rest}` names no bucket: write `s3://BUCKET/PREFIX`");
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let needed = |name: &str| {
            variable(name).with_context(|| format!("results go to a store, and {name} is not set"))
        };
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let target: Target = endpoint.parse().with_context(|| {
            format!("`{endpoint}` is no endpoint of a store: write http://HOST:PORT")
        })?;
        let keys = StoreKeys {
            access: needed("AWS_ACCESS_KEY_ID")?,
            secret: needed("AWS_SECRET_ACCESS_KEY")?,
            session: variable("AWS_SESSION_TOKEN"),
            region,
        };
        Ok(Some(Self {
            target,
            keys,
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
        }))
    }

    /// Puts `table` there, named after the folder in which it lies here as well; gives
    /// its place.
    pub(super) fn put(&self, folder: &Path, table: Vec<u8>) -> anyhow::Result<String> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        let key = format!("{}/{}{slash}{name}.parquet", self.bucket, self.prefix);
        let shown = format!("s3://{key}");
        let (store, path) = (self.clone(), encoded_path(&format!("/{key}")));
        let mut scope = Scope::new(&Token::new());
        let (sender, answer) = sync_channel(1);
        scope.worker(Place::default(), "store", move |_| async move {
            let answer = timeout(PUT_MAX, store.ask(&path, &table)).await;
            let answer = answer.unwrap_or_else(|_| bail!("no answer within {PUT_MAX:?}"));
            // Somebody waits for it: the lines below.
            sender.send(answer)?;
            Ok(())
        })?;
        let answer = answer.recv().context("the store was not asked")?;
        scope.close(Nanos::from_secs(1));
        let answer = answer.with_context(|| format!("put {shown} by {}", self.target))?;
        match answer.status {
            200..300 => Ok(shown),
            status => {
                let body = String::from_utf8_lossy(&answer.body);
                let said: String = body.chars().take(400).collect();
                bail!(
                    "put {shown} by {}: answered with {status}: {said}",
                    self.target
                )
            }
        }
    }

    async fn ask(&self, path: &str, table: &[u8]) -> anyhow::Result<Response> {
        let host = self.target.authority();
        let time = places::timestamp(clock::wall().as_u64() / 1_000_000_000);
        let time = format!("{}Z", time.replace('-', "T"));
        let unsigned = Unsigned {
            method: "PUT",
            host: &host,
            path,
            headers: &[],
            body: table,
            time: &time,
        };
        let signed = unsigned.sign(&self.keys);
        let fixed = [("user-agent", "stillwell"), ("connection", "close")];
        let signed = signed
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let request = Request {
            method: "PUT",
            path,
            authority: &host,
            headers: &signed.chain(fixed).collect::<Vec<_>>(),
            body: table,
        };
        let tls = match self.target.scheme() {
            Scheme::Https => Some(ClientTls::new(&ClientTlsPlan::default())?),
            _ => None,
        };
        let endpoint = Endpoint::of_target(&self.target, tls);
        Ok(endpoint.request(&request, ANSWER_MAX).await?)
    }
}
