//! Descriptions of gRPC methods that a server gives when a run starts.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use stillwell_plan::generator::RequestsPlan;
use stillwell_plan::{GeneratorPlan, TransportPlan};
use stillwell_scope::explain;
use stillwell_worker::Prepared;

/// Describes the calls of generators.
pub trait DescribeCalls: Send + Sync {
    /// Returns `plan` with the messages of a method that its server describes. Blocks.
    ///
    /// # Errors
    /// The reason why the method is not described, or why the messages do not match it.
    fn described(&self, plan: &RequestsPlan) -> Result<RequestsPlan, Box<dyn Error + Send + Sync>>;
}

/// The source of descriptions of calls; none by default.
#[derive(Clone, Default)]
pub struct CallDescriber(Option<Arc<dyn DescribeCalls>>);

impl CallDescriber {
    /// Makes a describer of `source`.
    #[must_use]
    pub fn new(source: Arc<dyn DescribeCalls>) -> Self {
        Self(Some(source))
    }

    /// Prepares the generators of `plans` whose calls have no description yet. Returns them with
    /// their places in `plans`.
    pub(crate) fn prepare(
        &self,
        plans: &[GeneratorPlan],
    ) -> Result<Vec<(usize, Prepared)>, String> {
        let mut all = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            let TransportPlan::Requests(requests) = &plan.transport else {
                continue;
            };
            if requests.undescribed_call().is_none() {
                continue;
            }
            let source = self.0.as_ref();
            let source = source.ok_or_else(|| {
                "server reflection for gRPC is not available here: give `descriptors`".to_owned()
            });
            let described = source?.described(requests);
            let described = described.map_err(|error| explain(error.as_ref()))?;
            let plan = GeneratorPlan {
                transport: TransportPlan::Requests(Box::new(described)),
                ..plan.clone()
            };
            let nothing: &[Vec<u8>] = &[];
            let prepared = crate::prepare(&plan, nothing);
            all.push((index, prepared.map_err(|error| explain(&error))?));
        }
        Ok(all)
    }
}

impl fmt::Debug for CallDescriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_given = self.0.is_some();
        f.debug_tuple("CallDescriber").field(&is_given).finish()
    }
}
