//! State that all connections of a service share.

use std::sync::Arc;

use stillwell_scope::Token;

use crate::service::access::AccessPlan;
use crate::service::executor::LoadSlot;
use crate::service::role::Role;
use crate::service::store::Store;

/// State that all connections of a service share.
#[derive(Debug)]
pub(crate) struct ServiceState {
    pub(crate) role: Role,
    /// Cancelled when the service is to end.
    pub(crate) token: Token,
    pub(crate) place: LoadSlot,
    pub(crate) store: Store,
    pub(crate) access: Arc<AccessPlan>,
}
