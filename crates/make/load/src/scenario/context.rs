//! State that the users of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::ScenarioPlan;
use stillwell_plan::tls::{Alpn, ClientTlsPlan};
use stillwell_units::{Moment, Nanos, Seed, as_usize};
use stillwell_wire::client::Endpoint;
use stillwell_wire::tls::ClientTls;

use super::exchange::StepError;
use super::extract::PreparedStep;
use super::gate::RequestGate;
use super::result::ScenarioError;
use super::user::User;

/// A scenario with TLS and prepared steps; for any number of workers.
#[derive(Clone, Debug)]
pub(super) struct PreparedUsers {
    pub(super) plan: Arc<ScenarioPlan>,
    endpoint: Endpoint,
    flows: Arc<[Vec<PreparedStep>]>,
}

impl PreparedUsers {
    /// Prepares TLS and the steps of `plan`. Opens nothing.
    pub(super) fn new(plan: ScenarioPlan) -> Result<Self, ScenarioError> {
        let alpn = match plan.protocol {
            LoadProtocol::Http1 => Alpn::Http1,
            LoadProtocol::Http2 => Alpn::Http2,
            LoadProtocol::Http3 => return Err(ScenarioError::Http3),
        };
        let endpoint = match &plan.tls_host {
            None => Endpoint::tcp(plan.address.clone()),
            Some(host) => Endpoint::Tls {
                address: plan.address.clone(),
                tls: ClientTls::new(&ClientTlsPlan {
                    alpn: vec![alpn],
                    ..plan.tls.clone()
                })?,
                host: host.clone(),
            },
        };
        let mut number = 0;
        let mut flows = Vec::new();
        for flow in &plan.flows {
            let mut steps = Vec::new();
            for step in &flow.steps {
                steps.push(PreparedStep::new(step, number)?);
                number += 1;
            }
            flows.push(steps);
        }
        Ok(Self {
            endpoint,
            flows: flows.into(),
            plan: Arc::new(plan),
        })
    }
}

/// One of several workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerShare {
    pub(super) index: u64,
    pub(super) of: u64,
}

/// End of the request of a step.
pub(super) struct StepEnd {
    /// Time at which the step was due.
    pub(super) due: Moment,
    /// Time at which the request was sent; `due` if it was not.
    pub(super) sent: Moment,
    /// Time of the first byte of the response; `end` if there is none.
    pub(super) first_byte: Moment,
    pub(super) end: Moment,
    /// Length of the request.
    pub(super) bytes: usize,
    /// Status of the response, if there is one.
    pub(super) status: Option<u16>,
    pub(super) failure: Option<StepError>,
}

/// Records the requests of steps.
pub(super) trait StepTally {
    /// Records one request.
    fn record(&self, step: &PreparedStep, ended: StepEnd);
}

/// State that the users of one worker share.
pub(super) struct UserContext {
    pub(super) plan: Arc<ScenarioPlan>,
    pub(super) endpoint: Endpoint,
    pub(super) tally: Rc<dyn StepTally>,
    pub(super) gate: RequestGate,
    flows: Arc<[Vec<PreparedStep>]>,
    random: RefCell<Xoshiro256PlusPlus>,
    next_row: Cell<usize>,
    row_stride: usize,
    /// Users that ended, with their connections.
    idle: RefCell<Vec<User>>,
}

impl UserContext {
    pub(super) fn new(
        prepared: &PreparedUsers,
        seed: &Seed,
        share: WorkerShare,
        tally: Rc<dyn StepTally>,
    ) -> Self {
        let seed = seed.derive("scenario", share.index);
        Self {
            plan: Arc::clone(&prepared.plan),
            endpoint: prepared.endpoint.clone().for_worker(),
            tally,
            gate: RequestGate::default(),
            flows: Arc::clone(&prepared.flows),
            random: RefCell::new(Xoshiro256PlusPlus::from_seed(*seed.bytes())),
            next_row: Cell::new(as_usize(share.index)),
            row_stride: as_usize(share.of),
            idle: RefCell::default(),
        }
    }

    /// Returns the buffers and the connection of a user that ended, or new ones.
    pub(super) fn user(&self) -> User {
        let idle = self.idle.borrow_mut().pop();
        idle.unwrap_or_else(|| User::new(&self.plan))
    }

    /// Keeps the buffers and the connection of a user that ended.
    pub(super) fn keep(&self, user: User) {
        self.idle.borrow_mut().push(user);
    }

    /// Returns the next row of data, if there is any.
    pub(super) fn row(&self) -> Option<&[String]> {
        let rows = &self.plan.rows;
        let number = self.next_row.get();
        self.next_row.set(number.wrapping_add(self.row_stride));
        rows.get(number.checked_rem(rows.len())?).map(Vec::as_slice)
    }

    /// Chooses a flow by weight.
    pub(super) fn choose_flow(&self) -> &[PreparedStep] {
        let flows = &self.plan.flows;
        let weights = flows.iter().map(|flow| u64::from(flow.weight));
        let sum: u64 = weights.clone().sum();
        if flows.len() == 1 || sum == 0 {
            return &self.flows[0];
        }
        let mut left = self.random.borrow_mut().next_u64() % sum;
        for (index, weight) in weights.enumerate() {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return &self.flows[index],
            }
        }
        &self.flows[0]
    }

    /// Returns a random time from `shortest` to `longest`.
    pub(super) fn think_time(&self, (shortest, longest): (Nanos, Nanos)) -> Nanos {
        let spread = longest.saturating_sub(shortest).as_u64();
        if spread == 0 {
            return shortest;
        }
        shortest + Nanos::new(self.random.borrow_mut().next_u64() % (spread + 1))
    }
}
