//! Services that call each other, and the traces that this leaves.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::between::Between;

/// Calls within calls at most; deeper ones are left out.
pub const TRACE_DEPTH_MAX: usize = 16;

/// A simulated system of services: each trace walks through it from one
/// operation that nothing calls.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "OtlpTracesParts")]
pub struct OtlpTracesPlan {
    services: Vec<TraceService>,
    error_rate: f64,
}

#[derive(Deserialize)]
struct OtlpTracesParts {
    services: Vec<TraceService>,
    error_rate: f64,
}

impl TryFrom<OtlpTracesParts> for OtlpTracesPlan {
    type Error = TopologyError;

    fn try_from(parts: OtlpTracesParts) -> Result<Self, TopologyError> {
        Self::try_new(parts.services, parts.error_rate)
    }
}

/// One service.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TraceService {
    /// Its name, of which there is only one.
    pub name: String,
    /// Attributes of its resource beside `service.name`.
    pub resource_attributes: Vec<TraceAttribute>,
    /// The instrumentation scope of its spans.
    pub scope_name: Option<String>,
    /// The version of that scope.
    pub scope_version: String,
    /// Its operations or action.
    pub operations: Vec<TraceOperation>,
}

/// One operation of a service.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TraceOperation {
    /// Name that is unique in its service.
    pub id: String,
    /// Kind of work.
    pub work: TraceWork,
    /// True if traces begin here; where not said, if nothing calls it.
    pub root: Option<bool>,
    /// Its calls, in order.
    pub calls: Vec<TraceCall>,
    /// Attributes of its spans.
    pub attributes: Vec<TraceAttribute>,
}

/// The work of an operation, from which its span's name and further attributes
/// follow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceWork {
    /// Something with a name.
    Plain {
        /// The name of its spans.
        span_name: String,
    },
    /// An HTTP request.
    Http {
        /// `GET`, say.
        method: String,
        /// `/items/{id}`, say.
        route: String,
    },
    /// A gRPC call.
    Grpc {
        /// The service as gRPC knows it.
        service: String,
        /// The method.
        method: String,
    },
    /// A database query.
    Database {
        /// `postgresql`, say.
        system: String,
        /// The database's name.
        name: Option<String>,
        /// The table.
        table: Option<String>,
        /// The query.
        query: String,
    },
}

/// One operation calling another.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TraceCall {
    /// The service called, as an index.
    pub service: usize,
    /// Its operation, as an index.
    pub operation: usize,
    /// Probability of the call, from 0 to 1.
    pub rate: f64,
    /// Times it is repeated at most.
    pub repeat_max: u32,
    /// Attributes of both spans of the call.
    pub attributes: Vec<TraceAttribute>,
}

/// An attribute.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TraceAttribute {
    /// Key of the attribute.
    pub key: String,
    /// Source of its value.
    pub value: TraceValue,
}

/// Source of an attribute's value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceValue {
    /// Always this text.
    Text(String),
    /// Always this number.
    Integer(i64),
    /// So many random letters and digits.
    RandomText {
        /// Characters.
        length: u16,
    },
    /// Any of these numbers.
    RandomInteger(Between<i64>),
    /// One of these texts, at least one.
    OneOf(Vec<String>),
}

/// An error in a topology.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// There is nothing.
    #[error("a topology needs a service with an operation")]
    Empty,
    /// Two services have one name.
    #[error("two services are called `{name}`")]
    SameService {
        /// The name.
        name: String,
    },
    /// Two operations of a service have one identity.
    #[error("service `{service}` has two operations `{id}`")]
    SameOperation {
        /// The service.
        service: String,
        /// The identity.
        id: String,
    },
    /// The error rate is no probability.
    #[error("an error rate of {rate} is not between 0 and 1")]
    ErrorRate {
        /// The rate.
        rate: f64,
    },
    /// Every operation is called by another.
    #[error("no trace can begin: every operation is called by another")]
    NoRoot,
}

impl OtlpTracesPlan {
    /// Returns a system of `services` whose spans fail with probability `error_rate`.
    ///
    /// # Errors
    /// [`TopologyError`] if a name is not unique, no trace can begin, or the rate is no probability.
    pub fn try_new(services: Vec<TraceService>, error_rate: f64) -> Result<Self, TopologyError> {
        let plan = Self {
            services,
            error_rate,
        };
        plan.check()?;
        Ok(plan)
    }

    /// The services.
    #[must_use]
    pub fn services(&self) -> &[TraceService] {
        &self.services
    }

    /// Probability that a span fails, from 0 to 1.
    #[must_use]
    pub const fn error_rate(&self) -> f64 {
        self.error_rate
    }

    fn check(&self) -> Result<(), TopologyError> {
        if !(0.0..=1.0).contains(&self.error_rate) {
            return Err(TopologyError::ErrorRate {
                rate: self.error_rate,
            });
        }
        let mut services = HashSet::new();
        for service in &self.services {
            if !services.insert(service.name.as_str()) {
                return Err(TopologyError::SameService {
                    name: service.name.clone(),
                });
            }
            let mut ids = HashSet::new();
            for operation in &service.operations {
                if !ids.insert(operation.id.as_str()) {
                    return Err(TopologyError::SameOperation {
                        service: service.name.clone(),
                        id: operation.id.clone(),
                    });
                }
            }
        }
        let mut operations = self.services.iter().flat_map(|service| &service.operations);
        if operations.next().is_none() {
            return Err(TopologyError::Empty);
        }
        match self.roots().is_empty() {
            true => Err(TopologyError::NoRoot),
            false => Ok(()),
        }
    }

    /// First operations of traces: service and operation as indices.
    #[must_use]
    pub fn roots(&self) -> Vec<(usize, usize)> {
        let operations = self.services.iter().flat_map(|service| &service.operations);
        let calls = operations.flat_map(|operation| &operation.calls);
        let called: HashSet<_> = calls.map(|call| (call.service, call.operation)).collect();
        let mut roots = Vec::new();
        for (service_index, service) in self.services.iter().enumerate() {
            for (index, operation) in service.operations.iter().enumerate() {
                let place = (service_index, index);
                if operation.root.unwrap_or_else(|| !called.contains(&place)) {
                    roots.push(place);
                }
            }
        }
        roots
    }
}
