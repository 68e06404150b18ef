//! Catalogue of environments.

use std::sync::Arc;

use stillwell_plan::{GeneratorPlan, TransportPlan};
use stillwell_worker::{Opener, TransportError};

use crate::container::ContainersSetup;
use crate::file_tree::FileTree;
use crate::kubernetes::ObjectsSetup;
use crate::proc_fs::ProcFs;
use crate::process_tree::ProcessTree;

/// The opener of the environment that `plan` names; `None` where it names none.
pub(crate) fn opener(plan: &GeneratorPlan) -> Result<Option<Arc<dyn Opener>>, TransportError> {
    Ok(Some(match &plan.transport {
        TransportPlan::FileTree(tree) => Arc::new(FileTree::new(tree, &plan.seed)),
        TransportPlan::ProcessTree(tree) => Arc::new(ProcessTree::new(tree, &plan.seed)?),
        TransportPlan::ProcFs(folder) => Arc::new(ProcFs::new(folder, &plan.seed)?),
        TransportPlan::Container(containers) => {
            Arc::new(ContainersSetup::new(containers, &plan.id)?)
        }
        TransportPlan::Kubernetes(objects) => Arc::new(ObjectsSetup::new(objects, &plan.id)?),
        _ => return Ok(None),
    }))
}
