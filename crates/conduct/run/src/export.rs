//! Files of a run besides its capture: a second record, a page, logs.

use std::path::PathBuf;
use std::sync::Arc;

use stillwell_capture::{CaptureError, RunIdentity, SampleFormat, SampleWriter};
use stillwell_metric::{Beat, Labels, Sample};
use stillwell_plan::{ObserverPlan, Phase};
use stillwell_telemetry::{PagePlan, RunMetrics, RunMetricsWriter, SamplePage};
use stillwell_units::RunId;

/// Files of a run besides its capture; by default none.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// The same samples in another format, written while the run goes on.
    pub samples: Option<Arc<dyn SampleFormat>>,
    /// A page with the newest values, for Prometheus.
    pub page: Option<PagePlan>,
    /// Export of the samples to other programs during the run.
    pub metrics: Option<RunMetrics>,
    /// File of the target's standard output, in place of the capture's.
    pub stdout: Option<PathBuf>,
    /// File of its standard error.
    pub stderr: Option<PathBuf>,
}

/// Exports while they are written.
#[derive(Debug)]
pub(crate) struct Exporter {
    samples: Option<Box<dyn SampleWriter>>,
    page: Option<SamplePage>,
    metrics: Option<RunMetricsWriter>,
}

impl Exporter {
    pub(crate) fn begin(
        exports: &Exports,
        identity: Option<&RunIdentity>,
        run: RunId,
        observer: &ObserverPlan,
    ) -> Result<Self, CaptureError> {
        let samples = exports.samples.as_ref();
        let page = exports.page.as_ref();
        let metrics = exports.metrics.as_ref();
        Ok(Self {
            samples: samples.map(|format| format.begin(run)).transpose()?,
            page: page.map(|plan| SamplePage::new(plan, observer)),
            metrics: metrics.map(|metrics| metrics.begin(labels(identity), observer)),
        })
    }

    /// The page to be served, if there is one.
    pub(crate) const fn page(&self) -> Option<&SamplePage> {
        self.page.as_ref()
    }

    pub(crate) fn beat(
        &mut self,
        beat: &Beat,
        phase: Phase,
        samples: &[Sample],
    ) -> Result<(), CaptureError> {
        if let Some(page) = &self.page {
            page.show(samples);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.beat(samples);
        }
        match &mut self.samples {
            Some(writer) => writer.beat(beat, phase, samples),
            None => Ok(()),
        }
    }

    pub(crate) fn close(self) -> Result<(), CaptureError> {
        // Exports the last values.
        drop(self.metrics);
        self.samples.map_or(Ok(()), SampleWriter::close)
    }
}

/// Returns the labels of a run of a suite.
fn labels(identity: Option<&RunIdentity>) -> Labels {
    identity.map_or_else(Labels::none, |identity| {
        Labels::none()
            .with("experiment", identity.experiment.as_str())
            .with("variant", identity.variant.as_str())
    })
}
