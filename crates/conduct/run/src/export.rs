//! What a run leaves besides its capture: a second record, a page, logs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use stillwell_capture::{CaptureError, SampleFormat, SampleWriter};
use stillwell_metric::{Beat, Labels, Sample, SeriesName};
use stillwell_plan::Phase;
use stillwell_units::RunId;

use crate::page::Page;

/// What a run leaves besides its capture; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// The same samples in another format, written while the run goes on.
    pub samples: Option<Arc<dyn SampleFormat>>,
    /// A page with the newest values, for Prometheus.
    pub page: Option<PagePlan>,
    /// Where the subject's standard output goes instead of into the capture.
    pub stdout: Option<PathBuf>,
    /// Where its standard error goes.
    pub stderr: Option<PathBuf>,
}

/// The name and labels of the series that a sample belongs to.
pub type SeriesNaming = fn(&Sample) -> (SeriesName, Labels);

/// A page with the newest value of every series, as a Prometheus server scrapes it.
/// Histograms are left out.
#[derive(Clone, Debug)]
pub struct PagePlan {
    /// Where it is served.
    pub address: PageAddress,
    /// Labels of every series.
    pub labels: Labels,
    /// Names and labels of the series.
    pub naming: SeriesNaming,
}

/// Where a page is served, at every path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PageAddress {
    /// Over TCP.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

/// Exports while they are written.
#[derive(Debug)]
pub(crate) struct Exporter {
    samples: Option<Box<dyn SampleWriter>>,
    page: Option<Page>,
}

impl Exporter {
    pub(crate) fn begin(exports: &Exports, run: RunId) -> Result<Self, CaptureError> {
        let samples = exports.samples.as_ref();
        Ok(Self {
            samples: samples.map(|format| format.begin(run)).transpose()?,
            page: exports
                .page
                .as_ref()
                .map(|plan| Page::new(plan.labels.clone(), plan.naming)),
        })
    }

    /// The page to be served, if there is one.
    pub(crate) const fn page(&self) -> Option<&Page> {
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
        match &mut self.samples {
            Some(writer) => writer.beat(beat, phase, samples),
            None => Ok(()),
        }
    }

    pub(crate) fn close(self) -> Result<(), CaptureError> {
        self.samples.map_or(Ok(()), SampleWriter::close)
    }
}
