//! The part of a load that one of several generators sends.

use serde::{Deserialize, Serialize};

use super::{LoadPlan, LoadPlanError, LoadPlanParts};

/// The part of one generator in a load of several: its workers are some of those among
/// which the whole load is divided.
///
/// Nothing is rounded: a generator has the workers that it would have if all of them
/// were threads of one process, with the same schedule, connections and seeds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "FleetShareParts", into = "FleetShareParts")]
pub struct FleetShare {
    index: u16,
    of: u16,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct FleetShareParts {
    generator: u16,
    generators: u16,
}

impl FleetShare {
    /// Returns the part of generator `index`, counted from zero, of `of`; `None` unless
    /// `index` is below `of`.
    #[must_use]
    pub const fn new(index: u16, of: u16) -> Option<Self> {
        if index < of {
            Some(Self { index, of })
        } else {
            None
        }
    }

    /// Index of the generator, counted from zero.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Number of generators.
    #[must_use]
    pub const fn of(self) -> u16 {
        self.of
    }
}

impl TryFrom<FleetShareParts> for FleetShare {
    type Error = String;

    fn try_from(parts: FleetShareParts) -> Result<Self, String> {
        let FleetShareParts {
            generator,
            generators,
        } = parts;
        Self::new(generator, generators)
            .ok_or_else(|| format!("there is no generator {generator} of {generators}"))
    }
}

impl From<FleetShare> for FleetShareParts {
    fn from(share: FleetShare) -> Self {
        Self {
            generator: share.index,
            generators: share.of,
        }
    }
}

impl LoadPlanParts {
    /// Number of workers of this process, and of all generators together.
    #[must_use]
    pub fn worker_counts(&self) -> (u32, u32) {
        let here = u32::from(self.workers);
        let generators = self.fleet.map_or(1, FleetShare::of);
        (here, here * u32::from(generators))
    }

    /// Numbers of this process's workers among those of all generators.
    #[must_use]
    pub fn worker_numbers(&self) -> std::ops::Range<u32> {
        let (here, _) = self.worker_counts();
        let first = here * u32::from(self.fleet.map_or(0, FleetShare::index));
        first..first + here
    }

    /// Connections that this process opens.
    #[must_use]
    pub fn connections_here(&self) -> u64 {
        self.part_here(u64::from(self.client.connecting.connections))
    }

    /// Requests after which this process ends, if any.
    #[must_use]
    pub fn requests_here(&self) -> Option<u64> {
        self.until.requests.map(|requests| self.part_here(requests))
    }

    /// The part of `total` of this process's workers: each has the same, and the first
    /// ones one more until all is given away.
    fn part_here(&self, total: u64) -> u64 {
        let (_, all) = self.worker_counts();
        let all = u64::from(all.max(1));
        let workers = self.worker_numbers().map(u64::from);
        workers
            .map(|worker| total / all + u64::from(worker < total % all))
            .sum()
    }
}

impl LoadPlan {
    /// Returns the plans of `generators` generators that make this load together. This one
    /// is the load of one process that has all their workers.
    ///
    /// # Errors
    /// [`LoadPlanError::Generators`] unless each of them has the same number of workers.
    pub fn split(&self, generators: u16) -> Result<Vec<Self>, LoadPlanError> {
        let workers = self.workers;
        if generators == 0 || !workers.is_multiple_of(generators) {
            return Err(LoadPlanError::Generators {
                generators,
                workers,
            });
        }
        let plan = |index| {
            let parts = LoadPlanParts {
                workers: workers / generators,
                fleet: FleetShare::new(index, generators),
                ..self.0.clone()
            };
            Self::try_new(parts)
        };
        (0..generators).map(plan).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use stillwell_units::{Nanos, Seed};

    use super::*;
    use crate::generator::ExchangePlan;
    use crate::load::{BodyPlan, EndpointPlan, RequestPlan, Reuse};

    fn parts() -> LoadPlanParts {
        let endpoint = EndpointPlan {
            address: "127.0.0.1:1".to_owned(),
            tls_host: None,
            weight: 1,
            requests: vec![RequestPlan {
                method: "GET".to_owned(),
                path: "/".to_owned(),
                authority: "a".to_owned(),
                is_authority_stated: false,
                headers: Vec::new(),
                body: BodyPlan::Bytes(Vec::new()),
            }],
        };
        let exchange = ExchangePlan {
            timeout: Nanos::SECOND,
            connect_timeout: Nanos::SECOND,
            reuse: Reuse::Mru,
            ..ExchangePlan::default()
        };
        LoadPlanParts::closed(vec![endpoint], exchange.client(), Seed::from_number(7))
    }

    proptest! {
        #[test]
        fn for_all_fleets_the_parts_are_the_whole(
            generators in 1_u16..40,
            threads in 1_u16..5,
            spare in 0_u32..200,
            requests in 0_u64..100_000,
        ) {
            let workers = generators * threads;
            let mut parts = parts();
            parts.workers = workers;
            parts.client.connecting.connections = u32::from(workers) + spare;
            parts.until.requests = Some(requests);
            let whole = LoadPlan::try_new(parts).unwrap();
            let plans = whole.split(generators).unwrap();
            let connections: u64 = plans.iter().map(|plan| plan.connections_here()).sum();
            prop_assert_eq!(connections, u64::from(whole.client.connecting.connections));
            let here: u64 = plans.iter().filter_map(|plan| plan.requests_here()).sum();
            prop_assert_eq!(here, requests);
            let numbers: Vec<u32> = plans.iter().flat_map(|plan| plan.worker_numbers()).collect();
            prop_assert_eq!(numbers, (0..u32::from(workers)).collect::<Vec<_>>());
            prop_assert!(plans.iter().all(|plan| plan.worker_counts().1 == u32::from(workers)));
        }
    }

    #[test]
    fn a_plan_is_split_among_generators_with_equal_workers_only() {
        let mut parts = parts();
        parts.workers = 3;
        parts.client.connecting.connections = 9;
        let whole = LoadPlan::try_new(parts).unwrap();
        for generators in [0, 2, 4] {
            assert!(matches!(
                whole.split(generators),
                Err(LoadPlanError::Generators { workers: 3, .. })
            ));
        }
        let plan = whole.split(3).unwrap().remove(1);
        let text = serde_json::to_string(&plan).unwrap();
        assert!(
            text.contains(r#""fleet":{"generator":1,"generators":3}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<LoadPlan>(&text).unwrap(), plan);
        let wrong = text.replace(r#""generators":3"#, r#""generators":1"#);
        assert!(serde_json::from_str::<LoadPlan>(&wrong).is_err());
    }
}
