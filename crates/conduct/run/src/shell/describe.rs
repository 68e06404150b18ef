//! Calls that the target describes once it is ready.

use stillwell_plan::{GeneratorPlan, Phase, TransportPlan};
use stillwell_worker::Prepared;

use crate::fleet::Milestone;
use crate::machine::Event;
use crate::shell::{Shell, ShellMessage};

impl Shell {
    /// The target is ready, or is on another machine. Load starts once it has described the calls
    /// that have no description.
    pub(super) fn target_ready(&mut self) {
        let fleet = self.request.fleet.clone();
        if let Some(fleet) = fleet.as_ref().filter(|fleet| fleet.is_target()) {
            fleet.reach(Milestone::TargetReady);
        }
        let mut generators = self.request.plan.generators.iter();
        if !generators.any(is_undescribed) || self.generators.is_empty() {
            return self.begin_load();
        }
        if fleet.is_some_and(|fleet| !fleet.have_others_reached(Milestone::TargetReady)) {
            self.wait_for_target();
            return self.happen(Event::TargetAwaited);
        }
        self.describe_calls();
    }

    /// Has the target, which is ready, describe the calls.
    pub(super) fn describe_calls(&mut self) {
        let places = &self.request.places;
        let target = self.request.plan.target.filled(places);
        let generators = self.request.plan.generators.iter();
        let plans: Vec<GeneratorPlan> = generators.map(|plan| plan.beside(&target)).collect();
        let (describer, sender) = (self.request.describer.clone(), self.sender.clone());
        self.spawn("describe", move |_| {
            sender.send(ShellMessage::Described(describer.prepare(&plans)))?;
            Ok(())
        });
    }

    /// The calls are described, or cannot be.
    pub(super) fn calls_described(&mut self, described: Result<Vec<(usize, Prepared)>, String>) {
        let described = match described {
            Ok(described) => described,
            Err(reason) => return self.happen(Event::NotReady(reason)),
        };
        if self.machine.phase() != Phase::Ready {
            return;
        }
        let mut generators: Vec<_> = std::mem::take(&mut self.generators)
            .into_iter()
            .map(Some)
            .collect();
        for (index, with_messages) in described {
            if let Some(generator) = generators.get_mut(index) {
                *generator = generator.take().map(|of| of.sending_as(with_messages));
            }
        }
        self.generators = generators.into_iter().flatten().collect();
        self.begin_load();
    }

    fn begin_load(&mut self) {
        if self.start_inspector() {
            self.happen(Event::Ready);
        }
    }
}

fn is_undescribed(plan: &GeneratorPlan) -> bool {
    match &plan.transport {
        TransportPlan::Requests(requests) => requests.undescribed_call().is_some(),
        _ => false,
    }
}
