//! Generators and sinks: built and bound before anything starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_generator::{PrepareError, Prepared};
use stillwell_metric::Shard;
use stillwell_plan::{GeneratorPlan, PayloadFormat, RigPlan, SinkPlan};
use stillwell_sink::{BindError, BoundSink};
use stillwell_stamp::LedgerError;
use stillwell_units::RunId;

use crate::recording;
use crate::stamps::{self, RunLedger};

/// What is ready to start.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) generators: Vec<Prepared>,
    pub(crate) sinks: Vec<BoundSink>,
    /// The account of stamped events, if there are any.
    pub(crate) ledger: Option<RunLedger>,
}

/// Why a part could not be made ready.
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
    #[error("keep account of stamped events")]
    Ledger { source: LedgerError },
}

impl Parts {
    /// Binds every sink, then builds every payload. Sinks first, because a
    /// taken port is known at once.
    pub(crate) fn prepare(plan: &RigPlan, run: &RunId) -> Result<Self, PartsError> {
        let sinks = plan.sinks.iter().map(bind);
        let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
        let generators = plan.generators.iter().map(build);
        let generators = generators.collect::<Result<_, _>>()?;
        let generators = stamps::number(generators, run).map_err(PartsError::Generator)?;
        let ledger = stamps::ledger(&plan.generators, &generators, run)
            .map_err(|source| PartsError::Ledger { source })?;
        let entering = |sink: BoundSink| match &ledger {
            Some(ledger) => sink.with_ledger(Arc::clone(&ledger.shared)),
            None => sink,
        };
        Ok(Self {
            generators,
            sinks: sinks.into_iter().map(entering).collect(),
            ledger,
        })
    }

    /// What all of them count.
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

fn bind(plan: &SinkPlan) -> Result<BoundSink, PartsError> {
    stillwell_sink::bind(plan).map_err(PartsError::Sink)
}

fn build(plan: &GeneratorPlan) -> Result<Prepared, PartsError> {
    let is_recording = matches!(plan.payload.format, PayloadFormat::Replay(_));
    let files = plan.payload.format.files().iter();
    let contents: Vec<Vec<u8>> = files
        .map(|path| read(&plan.id, path, is_recording))
        .collect::<Result<_, _>>()?;
    stillwell_generator::prepare(plan, contents.as_slice()).map_err(PartsError::Generator)
}

/// A recording may be packed; other files are sent as they are.
fn read(id: &str, path: &Path, is_recording: bool) -> Result<Vec<u8>, PartsError> {
    let content = if is_recording {
        recording::read(path)
    } else {
        fs::read(path)
    };
    content.map_err(|source| PartsError::Lines {
        id: id.to_owned(),
        path: path.to_path_buf(),
        source,
    })
}
