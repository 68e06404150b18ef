//! What a run leaves besides its capture: lading's formats, a page, logs.

use std::net::SocketAddr;
use std::path::PathBuf;

use stillwell_capture::{CaptureError, LadingOutput, LadingWriter};
use stillwell_metric::{Beat, Labels, Sample};
use stillwell_plan::Phase;
use stillwell_units::RunId;

use crate::page::Page;

/// What a run leaves besides its capture; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// The same capture as lading writes it, while the run goes on.
    pub lading: Option<LadingOutput>,
    /// A page with the newest values, for Prometheus.
    pub page: Option<PagePlan>,
    /// Where the subject's standard output goes instead of into the capture.
    pub stdout: Option<PathBuf>,
    /// Where its standard error goes.
    pub stderr: Option<PathBuf>,
}

/// A page with the newest value of every series in lading's words, as a
/// Prometheus server scrapes it. Histograms are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct PagePlan {
    /// Where it is served.
    pub address: PageAddress,
    /// Labels of every series.
    pub labels: Labels,
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
    lading: Option<LadingWriter>,
    page: Option<Page>,
}

impl Exporter {
    pub(crate) fn begin(exports: &Exports, run: RunId) -> Result<Self, CaptureError> {
        let lading = exports.lading.as_ref();
        Ok(Self {
            lading: lading
                .map(|output| LadingWriter::create(output, run))
                .transpose()?,
            page: exports
                .page
                .as_ref()
                .map(|plan| Page::new(plan.labels.clone())),
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
        match &mut self.lading {
            Some(writer) => writer.beat(beat, phase, samples),
            None => Ok(()),
        }
    }

    pub(crate) fn close(self) -> Result<(), CaptureError> {
        self.lading.map_or(Ok(()), LadingWriter::close)
    }
}
