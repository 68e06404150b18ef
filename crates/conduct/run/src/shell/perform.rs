//! Actions of the machine.

use std::sync::Arc;

use stillwell_capture::TargetEnd;
use stillwell_metric::Shard;
use stillwell_observer::{ProcessSnapshot, TargetProbe, Watched};
use stillwell_plan::{Phase, TargetKind, TargetPlan};
use stillwell_scope::{Place, clock, explain};
use stillwell_target::INSPECTOR_STOP;
use stillwell_units::Moment;
use stillwell_worker::Prepared;

use crate::fleet::Milestone;
use crate::machine::{Action, Event};
use crate::parts::Parts;
use crate::request::Progress;
use crate::shell::{MARK_MAX, Shell, ShellMessage};
use crate::steps;
use crate::target::{self, Stage};
use crate::together::Link;

/// Number of other processes that are named.
const BUSIEST_COUNT: usize = 3;

impl Shell {
    pub(super) fn perform(&mut self, action: Action) {
        match action {
            Action::Enter(phase) => self.enter(phase),
            Action::Prepare => self.prepare(),
            Action::StartTarget => self.start_target_in_turn(),
            Action::AwaitReady => self.await_ready(),
            Action::Meet => self.meet(),
            Action::StartLoad => self.start_load(),
            Action::Step(step) => self.step(&step),
            Action::EndTarget(signal) => self.end_target(signal),
            Action::StartAgain => self.start_again(),
            Action::AwaitReadyAgain => self.await_ready_again(),
            Action::StopLoad => self.stop_load.cancel(),
            Action::AwaitQuiet => self.quiet_since = Some((clock::now(), self.received())),
            Action::StopTarget => self.stop_target(),
            Action::Close => self.close(),
            Action::Finish(outcome) => self.outcome = Some(outcome),
        }
    }

    /// Marks a phase. Where load begins or ends to be measured, waits for the
    /// sampler, so what is measured is what was counted between two marks.
    fn enter(&mut self, phase: Phase) {
        // Before the load begins: reading all processes takes CPU time that load generators need.
        if phase == Phase::Warmup {
            self.processes = Some(ProcessSnapshot::take());
        }
        let agreed = self.beyond.start.as_ref().map(|start| start.at);
        // Parts on other machines begin at the agreed time, whenever they have learnt it.
        let moment = match agreed.filter(|_| phase == Phase::Warmup) {
            Some(start) => start,
            None => clock::now(),
        };
        self.record.enter(phase, moment);
        self.quiet_since = None;
        if phase == Phase::Stop {
            let ledger = self.ledger.as_ref().filter(|_| self.has_counts());
            self.under_way = ledger.map(|ledger| ledger.shared.missing());
            self.keep_arrivals();
        }
        if let Some(link) = self.link.as_ref().filter(|_| phase == Phase::Drain) {
            link.load_over();
        }
        self.report(Progress::Phase {
            phase,
            ends_in: Some(self.machine.phase_length()),
        });
        if let Some(sampler) = &self.sampler {
            let detail = matches!(phase, Phase::Measure | Phase::Drain | Phase::Stop);
            sampler.mark(detail);
            if detail {
                self.await_beat(moment);
            }
        }
        if !matches!(phase, Phase::Warmup | Phase::Measure)
            && let Some(before) = self.processes.take()
        {
            let target = self.target.pid();
            let ours: Vec<u32> = target.into_iter().chain([std::process::id()]).collect();
            self.record
                .busiest(before.busiest_since(&ours, BUSIEST_COUNT));
        }
    }

    /// Waits for a beat that was taken at `moment` or later.
    fn await_beat(&mut self, moment: Moment) {
        let until = clock::now() + MARK_MAX;
        loop {
            let left = until.since(clock::now());
            let Ok(batch) = self.beats.recv_timeout(left.as_duration()) else {
                let what = "the sampler did not answer a phase mark in time".to_owned();
                self.record.event(self.machine.phase(), what);
                return;
            };
            let is_late_enough = batch.beat.moment >= moment;
            self.take_beat(batch);
            if is_late_enough {
                return;
            }
        }
    }

    pub(super) fn place(&self) -> Place {
        let division = self.stage.as_ref().map(|stage| &stage.division);
        Place {
            cpus: division.and_then(|division| division.ours.clone()),
            // Threads inherit the conductor's namespace.
            network: None,
        }
    }

    /// Places of sinks and of generators.
    fn places_of_ends(&self) -> (Place, Place) {
        let stage = self.stage.as_ref();
        let ends = stage.and_then(|stage| stage.separate_ends(&self.request.plan));
        let (mut sinks, mut generators) = (self.place(), self.place());
        if let Some((cpus_of_sinks, cpus_of_generators)) = ends {
            sinks.cpus = Some(cpus_of_sinks);
            generators.cpus = Some(cpus_of_generators);
        }
        (sinks, generators)
    }

    fn prepare(&mut self) {
        match Stage::set(&self.request, self.link.as_ref(), &mut self.record) {
            Ok(stage) => self.stage = Some(stage),
            Err(reason) => return self.happen(Event::PrepareFailed(reason)),
        }
        if let Err(reason) = self.serve_page() {
            return self.happen(Event::PrepareFailed(reason));
        }
        if let Some(reason) = steps::refusal(&self.request.plan) {
            return self.happen(Event::PrepareFailed(reason));
        }
        if let Err(reason) = self.start_links() {
            return self.happen(Event::PrepareFailed(reason));
        }
        let mut plan = self.request.plan.placed(&self.request.places);
        let (run, sender) = (self.request.run, self.sender.clone());
        let network = self.links.as_ref().map(|links| links.sinks().clone());
        let fleet = self.request.fleet.clone();
        let target = plan.target.filled(&self.request.places);
        for generator in &mut plan.generators {
            *generator = generator.beside(&target);
        }
        self.spawn("prepare", move |_| {
            let parts = Parts::prepare(&plan, &run, network.as_ref(), fleet.as_ref());
            let parts = parts.map_err(|error| explain(&error));
            sender.send(ShellMessage::Prepared(parts))?;
            Ok(())
        });
    }

    fn serve_page(&mut self) -> Result<(), String> {
        let place = self.place();
        let (Some(page), Some(plan)) = (self.record.page(), &self.request.exports.page) else {
            return Ok(());
        };
        let page = page.clone();
        page.serve(&plan.address, &mut self.scope, place)
            .map_err(|error| explain(&error))
    }

    pub(super) fn prepared(&mut self, mut parts: Parts) {
        self.shards = parts.shards();
        self.ledger.clone_from(&parts.ledger);
        self.sinks = parts.sinks.iter().flat_map(|sink| sink.shards()).collect();
        self.controls = parts.controls;
        let (mut place, _) = self.places_of_ends();
        place.network = self.links.as_ref().map(|links| links.sinks().clone());
        for sink in parts.sinks {
            if let Err(error) = sink.start(&mut self.scope, &place) {
                return self.happen(Event::PrepareFailed(explain(&error)));
            }
        }
        if let Err(reason) = self.mount(&mut parts.generators) {
            return self.happen(Event::PrepareFailed(reason));
        }
        let ends = |generator: &Prepared| generator.ends().to_vec();
        if parts
            .generators
            .iter()
            .all(|generator| !generator.ends().is_empty())
        {
            self.load_ends = parts.generators.iter().flat_map(ends).collect();
        }
        let over = |generator: &Prepared| generator.over().to_vec();
        self.load_over = parts.generators.iter().flat_map(over).collect();
        self.generators = parts.generators;
        self.count_beyond();
        self.listen_beyond();
        self.happen(Event::Prepared);
    }

    pub(super) fn start_target(&mut self) {
        let plan = self.request.plan.target.filled(&self.request.places);
        if let Some(reason) = target::address_in_use(&plan) {
            return self.happen(Event::StartFailed(reason));
        }
        match plan.kind {
            TargetKind::Container(container) => self.find_container(*container),
            _ => self.start_planned(&plan),
        }
    }

    /// Starts the target of `plan`, or looks at its process.
    pub(super) fn start_planned(&mut self, plan: &TargetPlan) {
        match self.launch(plan, false) {
            Ok(()) => self.happen(Event::Started),
            Err(reason) => self.happen(Event::StartFailed(reason)),
        }
    }

    /// Probe of the target; `is_again` if it was watched before.
    pub(super) fn target_probe(&self, is_again: bool) -> Option<TargetProbe> {
        let stage = self.stage.as_ref();
        let cgroup = stage.and_then(|stage| stage.cgroup.as_ref());
        self.target.pid().map(|pid| TargetProbe {
            cpus: stage.map_or_else(Vec::new, Stage::cpus_of_target_alone),
            ran_before: self.request.plan.target.is_others(),
            pid,
            cgroup: cgroup.map(target::cgroup_files).unwrap_or_default(),
            is_again,
        })
    }

    pub(super) fn start_sampler(&mut self) -> std::io::Result<()> {
        let target = self.target_probe(false);
        let mut shards = std::mem::take(&mut self.shards);
        shards.extend(
            self.restarts
                .clone()
                .map(|restarts| restarts as Arc<dyn Shard>),
        );
        if let Some(link) = &self.link {
            shards.push(Arc::new(link.beside()));
            if let Some(probe) = &target {
                link.watch(probe.clone());
            }
        }
        let watched = Watched {
            target,
            shards,
            threads: Box::new(self.scope.watch()),
            profiles: self.request.folder.join("profiles"),
        };
        let place = self.place();
        let sampler = stillwell_observer::start(
            &mut self.scope,
            &place,
            &self.request.plan.observer,
            watched,
            self.deliver.clone(),
        )?;
        self.sampler = Some(sampler);
        Ok(())
    }

    fn await_ready(&mut self) {
        self.probe(ShellMessage::Ready);
    }

    fn meet(&self) {
        if let Some(link) = &self.link {
            link.ready(clock::now());
        }
        if let Some(fleet) = &self.request.fleet {
            fleet.reach(Milestone::Ready);
        }
    }

    fn start_load(&mut self) {
        let (_, place) = self.places_of_ends();
        let plan = &self.request.plan;
        let reserved = plan.placement.reserved;
        let link = self.link.as_ref();
        let agreed = link.and_then(Link::start);
        let agreed = agreed.or_else(|| self.beyond.start.as_ref().map(|start| start.at));
        let start = agreed.unwrap_or_else(clock::now);
        let turns = link.and_then(|link| link.turns(start, &plan.phases));
        for generator in std::mem::take(&mut self.generators) {
            let mut generator = generator.fresh();
            if let Some(turns) = &turns {
                generator = generator.in_turns(turns.clone());
            }
            let started =
                generator.start(&mut self.scope, &place, reserved, start, &self.stop_load);
            if let Err(error) = started {
                return self.happen(Event::PartFailed {
                    part: "generator".to_owned(),
                    reason: explain(&error),
                });
            }
        }
    }

    fn stop_target(&mut self) {
        let (target, sender) = (self.target.clone(), self.sender.clone());
        let plan = self.request.plan.target.stop;
        let (inspector, container) = (self.inspector.take(), self.container.take());
        let samples = self.perf_samples().filter(|_| inspector.is_some());
        self.spawn("stop", move |_| {
            // While the target is still there: it may want to look at it once more.
            if let Some(inspector) = inspector {
                let stopped = inspector.stop(INSPECTOR_STOP);
                sender.send(ShellMessage::InspectorStopped(stopped))?;
            }
            if let Some(samples) = samples {
                sender.send(ShellMessage::Profiled(samples.store()))?;
            }
            let stopped = match container {
                Some(container) => {
                    let (stopped, failures) = container.stop(&target, plan);
                    sender.send(ShellMessage::ContainerFailed(failures))?;
                    stopped
                }
                None => target.stop(plan),
            };
            drop(target);
            sender.send(ShellMessage::Stopped(stopped))?;
            Ok(())
        });
    }

    /// Ends all parts, then writes down their last words.
    fn close(&mut self) {
        self.unmount();
        let deadline = self.request.plan.phases.close;
        let scope = std::mem::replace(
            &mut self.scope,
            stillwell_scope::Scope::new(&self.stop_load),
        );
        self.sampler = None;
        let ends = scope.close(deadline);
        self.remove_late_container();
        self.links_end();
        self.take_beats();
        self.parts_ended(&ends);
        self.end_load_beyond();
        self.finish_logs();
        self.record.manifest.target = self.target_end();
        let restarts = self.restarts.as_ref();
        self.record.manifest.restarts = restarts.map_or_else(Vec::new, |all| all.all());
        self.record.manifest.last_received = self.received_at();
        let ledger = self.ledger.as_ref();
        self.record.manifest.ledger =
            ledger.map(|ledger| ledger.record(self.was_quiet, self.under_way));
        self.write_ledger_part();
        self.stage = None;
        self.happen(Event::Closed);
    }

    fn target_end(&self) -> Option<TargetEnd> {
        self.target.pid()?;
        let exit = self.exit.or_else(|| self.target.exited())?;
        let memory = self.record.rss_max_bytes;
        Some(target::ending(&self.target, exit, self.killed, memory))
    }

    /// Starts a thread of the control plane; where the kernel gives none, the run
    /// ends.
    pub(super) fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce(&stillwell_scope::Token) -> Result<(), stillwell_scope::PartError>
        + Send
        + 'static,
    ) {
        let place = self.place();
        if let Err(error) = self.scope.thread(place, name, body) {
            self.happen(Event::PartFailed {
                part: name.to_owned(),
                reason: explain(&error),
            });
        }
    }
}
