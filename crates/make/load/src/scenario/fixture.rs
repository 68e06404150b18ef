//! A scenario of one request, for tests.

use std::rc::Rc;

use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::{FlowPlan, ScenarioPlan, ScenarioStepPlan, TextPart, TextTemplate};
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_units::{Nanos, Seed};

use super::context::{PreparedUsers, StepEnd, StepTally, UserContext, WorkerShare};
use super::extract::PreparedStep;

struct UncountedSteps;

impl StepTally for UncountedSteps {
    fn record(&self, _: &PreparedStep, _: StepEnd) {}
}

/// Returns the state of the only worker of `plan`.
pub(super) fn context_of(plan: ScenarioPlan) -> UserContext {
    let prepared = PreparedUsers::new(plan).unwrap();
    let share = WorkerShare { index: 0, of: 1 };
    let seed = Seed::from_number(1);
    UserContext::new(&prepared, &seed, share, Rc::new(UncountedSteps))
}

/// One step, which sends more than the kernel keeps for a server that does not read.
pub(super) fn one_step(address: String, method: &str, protocol: LoadProtocol) -> ScenarioPlan {
    let text = |text: String| TextTemplate(vec![TextPart::Text(text)]);
    let step = ScenarioStepPlan {
        name: "step".to_owned(),
        method: method.to_owned(),
        path: text("/".to_owned()),
        headers: Vec::new(),
        body: text("x".repeat(16 << 20)),
        takes: Vec::new(),
        status: None,
        contains: Vec::new(),
        think: (Nanos::ZERO, Nanos::ZERO),
    };
    ScenarioPlan {
        url: format!("http://{address}/"),
        address,
        authority: "a".to_owned(),
        base: String::new(),
        tls_host: None,
        tls: ClientTlsPlan::default(),
        is_to_target: false,
        protocol,
        timeout: Nanos::from_secs(20),
        connect_timeout: Nanos::from_secs(20),
        variables: Vec::new(),
        rows: Vec::new(),
        columns: Vec::new(),
        flows: vec![FlowPlan {
            name: String::new(),
            weight: 1,
            steps: vec![step],
        }],
    }
}
