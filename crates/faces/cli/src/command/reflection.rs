//! Reads methods of servers by gRPC reflection.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use stillwell_config::requests::{
    Reflection, ReflectionFailure, ReflectionFailureKind, ReflectionRequest, described_calls,
};
use stillwell_nighthawk::service::{Channel, ChannelError, ReflectionError, reflected_files};
use stillwell_plan::generator::RequestsPlan;
use stillwell_run::{CallDescriber, DescribeCalls};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use tokio::time::timeout;

const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// Reflection over a connection of its own, on a thread of its own.
pub(super) struct Reflected;

/// Returns the source of descriptions of calls for runs.
pub(super) fn describer() -> CallDescriber {
    CallDescriber::new(Arc::new(Reflected))
}

impl DescribeCalls for Reflected {
    fn described(&self, plan: &RequestsPlan) -> Result<RequestsPlan, Box<dyn Error + Send + Sync>> {
        Ok(described_calls(plan, self)?)
    }
}

impl Reflection for Reflected {
    fn files(&self, request: &ReflectionRequest) -> Result<Vec<Vec<u8>>, ReflectionFailure> {
        files(request.clone()).map_err(|error| {
            let kind = match &error {
                ReflectionError::NotOffered => ReflectionFailureKind::NotOffered,
                ReflectionError::Channel(
                    ChannelError::Dial(_)
                    | ChannelError::Handshake(_)
                    | ChannelError::Broken { .. },
                ) => ReflectionFailureKind::Unreachable,
                _ => ReflectionFailureKind::Failed,
            };
            ReflectionFailure::new(kind, error)
        })
    }
}

fn files(request: ReflectionRequest) -> Result<Vec<Vec<u8>>, ReflectionError> {
    let foreign = |problem: String| ReflectionError::Foreign { problem };
    let (sender, answers) = sync_channel(1);
    let after = request.timeout;
    let mut scope = Scope::new(&Token::new());
    let query = async move {
        let channel = Channel::new(&request.address, request.tls.as_ref())?;
        let headers = request.headers.iter();
        let headers: Vec<(&str, &str)> = headers.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        reflected_files(&channel, &headers, &request.service).await
    };
    let started = scope.worker(Place::default(), "reflection", move |_| async move {
        let late = |_| Err(ReflectionError::TimedOut { after });
        let answer = timeout(after.as_duration(), query)
            .await
            .unwrap_or_else(late);
        // The receiver waits for it.
        sender.send(answer).unwrap_or_default();
        Ok(())
    });
    let answer = match started {
        Ok(_) => answers.recv().map_err(|error| foreign(error.to_string())),
        Err(error) => Err(foreign(error.to_string())),
    };
    scope.close(CLOSE_MAX);
    answer?
}
