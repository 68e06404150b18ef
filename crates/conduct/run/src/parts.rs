//! Generators and sinks: built and bound before anything starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use stillwell_metric::Shard;
use stillwell_plan::{GeneratorPlan, PayloadFormat, RunPlan, SinkPlan};
use stillwell_scope::{NetworkNamespace, Place, Scope, Token};
use stillwell_sink::{BindError, BoundSink};
use stillwell_stamp::LedgerError;
use stillwell_units::{Nanos, RunId};
use stillwell_worker::{PrepareError, Prepared};

use crate::fleet::RunFleet;
use crate::recording;
use crate::stamps::{self, RunLedger};
use crate::steps::Controls;

/// The longest time that the thread that binds may take to end; it has nothing left to do then.
const BIND_END_MAX: Nanos = Nanos::from_secs(5);

/// Parts that are ready to start.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) generators: Vec<Prepared>,
    pub(crate) sinks: Vec<BoundSink>,
    /// The account of stamped events, if there are any.
    pub(crate) ledger: Option<RunLedger>,
    /// Controls for steps of the timeline.
    pub(crate) controls: Controls,
}

/// The reason why a part could not be made ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartsError {
    #[error(transparent)]
    Sink(BindError),
    #[error("read {} for the generator `{id}`", path.display())]
    Lines {
        id: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Generator(PrepareError),
    #[error("bind sinks in a separate network")]
    Network { source: io::Error },
    #[error("create the ledger of stamped events")]
    Ledger { source: LedgerError },
}

impl Parts {
    /// Binds every sink, then builds every payload. Sinks first, because a
    /// taken port is known at once; in `network`, if they have one of their own.
    pub(crate) fn prepare(
        plan: &RunPlan,
        run: &RunId,
        network: Option<&NetworkNamespace>,
        fleet: Option<&RunFleet>,
    ) -> Result<Self, PartsError> {
        let mut controls = Controls::default();
        let sinks = bind_in(network, &plan.sinks)?.into_iter().zip(&plan.sinks);
        let sinks = sinks.map(|(sink, plan_of)| controls.steer(plan, &plan_of.id, sink));
        let sinks: Vec<BoundSink> = sinks.collect();
        let generators = plan.generators.iter().map(build);
        let generators = generators.collect::<Result<_, _>>()?;
        let generators = stamps::number(generators, run).map_err(PartsError::Generator)?;
        let ledger = match fleet {
            None => stamps::ledger(&plan.generators, &generators, run),
            Some(fleet) if fleet.has_sinks() => stamps::ledger_of_others(fleet.generators(), run),
            Some(_) => Ok(None),
        };
        let ledger = ledger.map_err(|source| PartsError::Ledger { source })?;
        let entering = |sink: BoundSink| match &ledger {
            Some(ledger) => sink.with_ledger(Arc::clone(&ledger.shared)),
            None => sink,
        };
        controls.write(&generators);
        Ok(Self {
            generators,
            sinks: sinks.into_iter().map(entering).collect(),
            ledger,
            controls,
        })
    }

    /// Returns all counters.
    pub(crate) fn shards(&self) -> Vec<Arc<dyn Shard>> {
        let mut shards: Vec<Arc<dyn Shard>> = Vec::new();
        for generator in &self.generators {
            shards.extend(generator.shards().into_iter().map(|s| s as Arc<dyn Shard>));
        }
        for sink in &self.sinks {
            shards.extend(sink.shards().into_iter().map(|s| s as Arc<dyn Shard>));
            shards.extend(sink.recorded());
        }
        if let Some(ledger) = &self.ledger {
            shards.push(Arc::clone(&ledger.shared) as Arc<dyn Shard>);
        }
        shards
    }
}

/// Binds sinks on a thread inside `network`, or on this one.
fn bind_in(
    network: Option<&NetworkNamespace>,
    plans: &[SinkPlan],
) -> Result<Vec<BoundSink>, PartsError> {
    let bind_all = |plans: &[SinkPlan]| plans.iter().map(bind).collect();
    let Some(network) = network else {
        return bind_all(plans);
    };
    let (sender, receiver) = sync_channel(1);
    let mut scope = Scope::new(&Token::new());
    let place = Place {
        cpus: None,
        network: Some(network.clone()),
    };
    let plans = plans.to_vec();
    let started = scope.thread(place, "bind", move |_| {
        sender.send(bind_all(&plans))?;
        Ok(())
    });
    started.map_err(|source| PartsError::Network { source })?;
    let bound = receiver.recv().map_err(|_| PartsError::Network {
        source: io::Error::other("the thread ended before it answered"),
    });
    drop(scope.close(BIND_END_MAX));
    bound?
}

fn bind(plan: &SinkPlan) -> Result<BoundSink, PartsError> {
    stillwell_sink::bind(plan).map_err(PartsError::Sink)
}

fn build(plan: &GeneratorPlan) -> Result<Prepared, PartsError> {
    let is_recording = matches!(plan.payload.format, PayloadFormat::Replay(_));
    let files = plan.payload.format.files().iter();
    let contents: Vec<Vec<u8>> = files
        .map(|path| read(&plan.id, path, is_recording))
        .collect::<Result<_, _>>()?;
    crate::prepare(plan, contents.as_slice()).map_err(PartsError::Generator)
}

/// Reads a regular file: a pipe or a device might have no end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("this is not a regular file"));
    }
    fs::read(path)
}

/// A recording may be packed; other files are sent as they are.
fn read(id: &str, path: &Path, is_recording: bool) -> Result<Vec<u8>, PartsError> {
    let content = if is_recording {
        recording::read(path)
    } else {
        read_regular(path)
    };
    content.map_err(|source| PartsError::Lines {
        id: id.to_owned(),
        path: path.to_path_buf(),
        source,
    })
}
