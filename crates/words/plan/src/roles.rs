//! One run on several machines: its roles, and the part of each.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::generator::StreamTarget;
use crate::load::FleetShare;
use crate::placement::{CpuChoice, Wanted};
use crate::target::ReadyProbe;
use crate::{GeneratorPlan, PayloadFormat, RunPlan, SinkProtocol, TargetKind, TransportPlan};

/// Numbers of tasks of a run on several machines. One more runs the target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunRoles {
    /// Tasks that share each generator; at least one.
    pub generators: u16,
    /// True if sinks have a task of their own, and are not beside the target.
    pub sinks: bool,
}

/// The role of a task.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskRole {
    /// It runs the target.
    Target,
    /// It runs all sinks.
    Sinks,
    /// It runs this part of each generator.
    Generators(FleetShare),
}

/// Addresses of the hosts by which parts reach each other: loopback on one machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunHosts {
    /// Address of the host of the target.
    pub target: IpAddr,
    /// Address of the host of the sinks.
    pub sinks: IpAddr,
}

impl Default for RunHosts {
    fn default() -> Self {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        Self {
            target: loopback,
            sinks: loopback,
        }
    }
}

impl RunRoles {
    /// Number of tasks.
    #[must_use]
    pub fn tasks(self) -> u16 {
        self.generators.saturating_add(1 + u16::from(self.sinks))
    }

    /// Returns the role of a task: the target's is the first, and generators are the last.
    #[must_use]
    pub fn role(self, task: u16) -> Option<TaskRole> {
        match (task, self.sinks) {
            (0, _) => Some(TaskRole::Target),
            (1, true) => Some(TaskRole::Sinks),
            _ => {
                let index = task - 1 - u16::from(self.sinks);
                FleetShare::new(index, self.generators).map(TaskRole::Generators)
            }
        }
    }

    /// Returns true if the task has the sinks, and so the delivery ledger.
    #[must_use]
    pub fn has_sinks(self, role: TaskRole) -> bool {
        match role {
            TaskRole::Target => !self.sinks,
            TaskRole::Sinks => true,
            TaskRole::Generators(_) => false,
        }
    }
}

impl TaskRole {
    /// Returns its name in messages and results.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Target => "target".to_owned(),
            Self::Sinks => "sinks".to_owned(),
            Self::Generators(share) => format!("generator {}", share.index()),
        }
    }
}

impl RunPlan {
    /// Returns the plan of all tasks of `roles` together: that of one process with all their
    /// generator threads.
    ///
    /// # Errors
    /// A sentence for readers about a part that cannot be on several machines.
    pub fn over(&self, roles: RunRoles) -> Result<Self, String> {
        let mut plan = self.clone();
        for generator in &mut plan.generators {
            check_generator(generator)?;
            let all = generator.concurrency.of_processes(roles.generators);
            generator.concurrency = all.map_err(|error| error.to_string())?;
        }
        if plan.generators.is_empty() {
            return Err(
                "the file has no generators: a run on several machines needs at least one"
                    .to_owned(),
            );
        }
        if !matches!(plan.target.kind, TargetKind::Child(_) | TargetKind::None) {
            return Err(
                "a run on several machines must start its target: give `target` a command"
                    .to_owned(),
            );
        }
        if !plan.timeline.is_empty() {
            return Err(
                "a run on several machines does not support `timeline`: remove it".to_owned(),
            );
        }
        let unmovable = plan.sinks.iter_mut().find_map(|sink| {
            let is_movable = sink.protocol.address_mut().is_some();
            (roles.sinks && !is_movable).then(|| sink.id.clone())
        });
        if let Some(id) = unmovable {
            return Err(format!(
                "sink `{id}` is a file or a Unix socket, which cannot be on another machine than \
                 the target: leave out --sinks"
            ));
        }
        if roles.sinks && plan.sinks.is_empty() {
            return Err("the file has no sinks: leave out --sinks".to_owned());
        }
        if plan.isolation.network == Wanted::Required || plan.isolation.links.is_some() {
            return Err(
                "a run on several machines cannot have a separate network namespace: remove \
                 `network`, and set `network` of `isolation` to `auto`"
                    .to_owned(),
            );
        }
        plan.isolation.network = Wanted::No;
        Ok(plan)
    }

    /// Returns what a task with `role` does of this plan, which is that of all tasks.
    #[must_use]
    pub fn part_of(&self, roles: RunRoles, role: TaskRole) -> Self {
        let mut plan = self.clone();
        match role {
            TaskRole::Generators(share) => {
                for generator in &mut plan.generators {
                    if let Ok(part) = generator.concurrency.part(share) {
                        generator.concurrency = part;
                    }
                }
                // Nothing arrives here.
                plan.phases.quiet = stillwell_units::Nanos::ZERO;
            }
            TaskRole::Target | TaskRole::Sinks => plan.generators.clear(),
        }
        if !roles.has_sinks(role) {
            plan.sinks.clear();
        }
        if role != TaskRole::Target {
            plan.target.kind = TargetKind::None;
            plan.target.ready = ReadyProbe::Immediately;
            plan.target.cpus = CpuChoice::Auto;
            plan.disks.clear();
            plan.checks.clear();
            plan.observer.inspector = None;
            plan.observer.perf = None;
            plan.observer.scrapes.clear();
            plan.observer.profiles.clear();
        }
        plan
    }

    /// Returns the same plan between `hosts`. Loopback addresses name the machine of the part that
    /// they belong to. In the target's command, environment and probe, `{host}` becomes the address
    /// of its machine and `{sinks.ID}` that of a sink.
    #[must_use]
    pub fn between(&self, hosts: &RunHosts) -> Self {
        let mut plan = self.clone();
        let mut sinks = Vec::new();
        for sink in &mut plan.sinks {
            let Some(address) = sink.protocol.address_mut() else {
                continue;
            };
            if address.ip().is_loopback() && !hosts.sinks.is_loopback() {
                address.set_ip(hosts.sinks);
            }
            let mut reached = *address;
            if reached.ip().is_unspecified() {
                reached.set_ip(hosts.sinks);
            }
            sinks.push((format!("{{sinks.{}}}", sink.id), reached.to_string()));
        }
        if !hosts.target.is_loopback() {
            for generator in &mut plan.generators {
                relocate(&mut generator.transport, hosts.target);
            }
        }
        let places = |text: &str| {
            let text = text.replace("{host}", &bracketed(hosts.target));
            let fill =
                |text: String, (place, address): &(String, String)| text.replace(place, address);
            sinks.iter().fold(text, fill)
        };
        match &mut plan.target.ready {
            ReadyProbe::Tcp { address } => *address = at_host(&places(address), hosts.target),
            ReadyProbe::Http { url } => *url = url_at_host(&places(url), hosts.target),
            _ => {}
        }
        if let TargetKind::Child(child) = &mut plan.target.kind {
            let variables = child.environment.variables.values_mut();
            for text in child.arguments.iter_mut().chain(variables) {
                *text = places(text);
            }
        }
        plan
    }
}

impl SinkProtocol {
    /// Returns the address of its listener, if it has one.
    pub(crate) const fn address_mut(&mut self) -> Option<&mut SocketAddr> {
        match self {
            Self::Tcp { address }
            | Self::Udp { address }
            | Self::Http { address, .. }
            | Self::Intake { address, .. }
            | Self::TcpRr { address, .. } => Some(address),
            Self::UnixStream { .. } | Self::UnixDatagram { .. } | Self::File { .. } => None,
        }
    }
}

/// Refuses a generator that cannot be on another machine than the target, or on several.
fn check_generator(generator: &GeneratorPlan) -> Result<(), String> {
    let id = &generator.id;
    if !is_relocatable(&generator.transport) {
        return Err(format!(
            "generator `{id}` sends over {}, which cannot reach a target on another machine: use \
             tcp, tls, udp, http, grpc, tcp_rr, requests or a trace agent",
            generator.transport.name()
        ));
    }
    if let TransportPlan::Requests(requests) = &generator.transport
        && requests.undescribed_call().is_some()
    {
        return Err(format!(
            "generator `{id}` needs the server's reflection, which a run on several machines does \
             not support: give `descriptors`"
        ));
    }
    let stamps = generator.stamps;
    if stamps.is_some_and(|stamps| stamps.form.prefix().is_some()) {
        return Err(format!(
            "generator `{id}` writes a time before each event, which the clocks of several machines \
             make useless: use another `form` of stamps"
        ));
    }
    match &generator.payload.format {
        PayloadFormat::Replay(replay) if replay.rounds.is_some() => Err(format!(
            "generator `{id}` replays a fixed number of rounds, which a run on several machines does \
             not support: remove `rounds`"
        )),
        _ => Ok(()),
    }
}

const fn is_relocatable(transport: &TransportPlan) -> bool {
    matches!(
        transport,
        TransportPlan::Tcp { .. }
            | TransportPlan::Udp { .. }
            | TransportPlan::Http { .. }
            | TransportPlan::Requests(_)
            | TransportPlan::Grpc { .. }
            | TransportPlan::TraceAgent { .. }
            | TransportPlan::TcpRr { .. }
            | TransportPlan::Tls {
                to: StreamTarget::Tcp(_),
                ..
            }
    )
}

fn relocate(transport: &mut TransportPlan, host: IpAddr) {
    match transport {
        TransportPlan::Tcp { address }
        | TransportPlan::TcpRr { address, .. }
        | TransportPlan::Tls {
            to: StreamTarget::Tcp(address),
            ..
        } => *address = at_host(address, host),
        TransportPlan::Udp { address, bind } => {
            let there = at_host(address, host);
            if there != *address {
                *address = there;
                // Datagrams from a loopback address do not leave the machine.
                let any = if host.is_ipv4() { "0.0.0.0" } else { "[::]" };
                *bind = replaced_host(bind, any);
            }
        }
        TransportPlan::Http { url, .. }
        | TransportPlan::Grpc { url }
        | TransportPlan::TraceAgent { url, .. } => *url = url_at_host(url, host),
        TransportPlan::Requests(requests) => {
            let url = url_at_host(requests.url(), host);
            requests.redirect(&url);
        }
        _ => {}
    }
}

/// Returns `address` at `host`, if it is one of this machine.
fn at_host(address: &str, host: IpAddr) -> String {
    let Some((name, _)) = address.rsplit_once(':') else {
        return address.to_owned();
    };
    let plain = name.trim_start_matches('[').trim_end_matches(']');
    let is_here = plain == "localhost" || plain.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    // A name that is in certificates stays where the target is on this machine.
    if is_here && !host.is_loopback() {
        replaced_host(address, &bracketed(host))
    } else {
        address.to_owned()
    }
}

fn replaced_host(address: &str, host: &str) -> String {
    match address.rsplit_once(':') {
        Some((_, port)) => format!("{host}:{port}"),
        None => address.to_owned(),
    }
}

/// The same for the address in a URL, if that has a port.
fn url_at_host(url: &str, host: IpAddr) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    format!("{scheme}://{}{path}", at_host(authority, host))
}

fn bracketed(host: IpAddr) -> String {
    match host {
        IpAddr::V4(host) => host.to_string(),
        IpAddr::V6(host) => format!("[{host}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_roles_in_a_fixed_order() {
        let beside = RunRoles {
            generators: 2,
            sinks: false,
        };
        let names = |roles: RunRoles| -> Vec<String> {
            let tasks = 0..roles.tasks();
            tasks.map(|task| roles.role(task).unwrap().name()).collect()
        };
        assert_eq!(names(beside), ["target", "generator 0", "generator 1"]);
        let apart = RunRoles {
            sinks: true,
            ..beside
        };
        assert_eq!(
            names(apart),
            ["target", "sinks", "generator 0", "generator 1"]
        );
        assert_eq!(apart.role(4), None);
        assert!(beside.has_sinks(TaskRole::Target) && !apart.has_sinks(TaskRole::Target));
    }

    #[test]
    fn loopback_addresses_name_the_machine_of_their_part() {
        let host = IpAddr::from([10, 0, 0, 7]);
        for (address, expected) in [
            ("127.0.0.1:90", "10.0.0.7:90"),
            ("localhost:90", "10.0.0.7:90"),
            ("[::1]:90", "10.0.0.7:90"),
            ("192.0.2.1:90", "192.0.2.1:90"),
            ("example.org:90", "example.org:90"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(at_host(address, host), expected);
        }
        let six: IpAddr = "fd00::7".parse().unwrap();
        assert_eq!(
            url_at_host("http://127.0.0.1:90/a?b", six),
            "http://[fd00::7]:90/a?b"
        );
        assert_eq!(
            at_host("localhost:90", IpAddr::from([127, 0, 0, 1])),
            "localhost:90"
        );
    }
}
