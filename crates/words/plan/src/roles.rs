//! One run on several machines: its roles, and the part of each.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use stillwell_units::human;

use crate::generator::StreamTarget;
use crate::load::FleetShare;
use crate::placement::{CpuChoice, Wanted};
use crate::target::ReadyProbe;
use crate::{
    GeneratorPlan, PayloadFormat, RunPlan, SinkPlan, SinkProtocol, TargetKind, TransportPlan,
};

/// Numbers of tasks of a run on several machines. One more runs the target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunRoles {
    /// Tasks that share each generator; at least one.
    pub generators: u16,
    /// Tasks among which sinks are divided; none if they are beside the target.
    pub sinks: u16,
}

/// The role of a task.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "WrittenRole", into = "WrittenRole")]
pub enum TaskRole {
    /// It runs the target.
    Target,
    /// It runs these sinks.
    Sinks(SinkShare),
    /// It runs this part of each generator.
    Generators(FleetShare),
}

/// The sinks of one of several tasks: in the order of the plan, each task has one in turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SinkShare {
    index: u16,
    of: u16,
}

/// A role in files.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenRole {
    Target,
    /// All of them.
    Sinks,
    SomeSinks {
        task: u16,
        tasks: u16,
    },
    Generators(FleetShare),
}

/// Addresses of the hosts by which parts reach each other: loopback on one machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunHosts {
    /// Address of the host of the target.
    pub target: IpAddr,
    /// Addresses of the hosts of the sinks: one for each of their tasks, or that of all.
    pub sinks: Vec<IpAddr>,
}

impl Default for RunHosts {
    fn default() -> Self {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        Self {
            target: loopback,
            sinks: vec![loopback],
        }
    }
}

impl RunHosts {
    /// Returns the address of the host of a sink, by its index in the plan.
    fn of_sink(&self, index: usize) -> IpAddr {
        let turn = index.checked_rem(self.sinks.len());
        let host = turn.and_then(|turn| self.sinks.get(turn)).copied();
        host.unwrap_or_else(|| IpAddr::from([127, 0, 0, 1]))
    }
}

impl SinkShare {
    /// Returns the sinks of task `index`, counted from zero, of `of`; `None` unless `index` is
    /// below `of`.
    #[must_use]
    pub const fn new(index: u16, of: u16) -> Option<Self> {
        if index < of {
            Some(Self { index, of })
        } else {
            None
        }
    }

    /// Returns true if there are other tasks with sinks.
    #[must_use]
    pub const fn is_partial(self) -> bool {
        self.of > 1
    }

    /// Returns true if the sink with this index in the plan is of this task.
    fn has(self, index: usize) -> bool {
        index % usize::from(self.of) == usize::from(self.index)
    }
}

impl TryFrom<WrittenRole> for TaskRole {
    type Error = String;

    fn try_from(role: WrittenRole) -> Result<Self, String> {
        let (task, tasks) = match role {
            WrittenRole::Target => return Ok(Self::Target),
            WrittenRole::Generators(share) => return Ok(Self::Generators(share)),
            WrittenRole::Sinks => (0, 1),
            WrittenRole::SomeSinks { task, tasks } => (task, tasks),
        };
        let share = SinkShare::new(task, tasks).map(Self::Sinks);
        share.ok_or_else(|| format!("there is no task {task} of {tasks} with sinks"))
    }
}

impl From<TaskRole> for WrittenRole {
    fn from(role: TaskRole) -> Self {
        match role {
            TaskRole::Target => Self::Target,
            TaskRole::Generators(share) => Self::Generators(share),
            TaskRole::Sinks(SinkShare { of: 1, .. }) => Self::Sinks,
            TaskRole::Sinks(SinkShare { index, of }) => Self::SomeSinks {
                task: index,
                tasks: of,
            },
        }
    }
}

impl RunRoles {
    /// Number of tasks.
    #[must_use]
    pub fn tasks(self) -> u16 {
        self.generators.saturating_add(self.sinks).saturating_add(1)
    }

    /// Returns the role of a task: the target's is the first, and generators are the last.
    #[must_use]
    pub fn role(self, task: u16) -> Option<TaskRole> {
        let Some(task) = task.checked_sub(1) else {
            return Some(TaskRole::Target);
        };
        match task.checked_sub(self.sinks) {
            None => SinkShare::new(task, self.sinks).map(TaskRole::Sinks),
            Some(index) => FleetShare::new(index, self.generators).map(TaskRole::Generators),
        }
    }

    /// Returns true if the task has sinks, and so a delivery ledger.
    #[must_use]
    pub fn has_sinks(self, role: TaskRole) -> bool {
        match role {
            TaskRole::Target => self.sinks == 0,
            TaskRole::Sinks(_) => true,
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
            Self::Sinks(share) if share.is_partial() => format!("sinks {}", share.index),
            Self::Sinks(_) => "sinks".to_owned(),
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
        if roles.sinks > 0 {
            check_sinks(&mut plan.sinks, roles.sinks)?;
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
            TaskRole::Target | TaskRole::Sinks(_) => plan.generators.clear(),
        }
        let has_sink = |index| match role {
            TaskRole::Sinks(share) => share.has(index),
            _ => roles.has_sinks(role),
        };
        let sinks = std::mem::take(&mut plan.sinks).into_iter().enumerate();
        let sinks = sinks.filter(|(index, _)| has_sink(*index));
        plan.sinks = sinks.map(|(_, sink)| sink).collect();
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
        for (index, sink) in plan.sinks.iter_mut().enumerate() {
            let host = hosts.of_sink(index);
            let Some(address) = sink.protocol.address_mut() else {
                continue;
            };
            if address.ip().is_loopback() && !host.is_loopback() {
                address.set_ip(host);
            }
            let mut reached = *address;
            if reached.ip().is_unspecified() {
                reached.set_ip(host);
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

/// Refuses sinks that cannot be on other machines than the target, or on so many.
fn check_sinks(sinks: &mut [SinkPlan], tasks: u16) -> Result<(), String> {
    let unmovable = sinks.iter_mut().find_map(|sink| {
        let is_movable = sink.protocol.address_mut().is_some();
        (!is_movable).then(|| sink.id.clone())
    });
    if let Some(id) = unmovable {
        return Err(format!(
            "sink `{id}` is a file or a Unix socket, which cannot be on another machine than the \
             target: leave out --sinks"
        ));
    }
    match sinks.len() {
        0 => Err("the file has no sinks: leave out --sinks".to_owned()),
        count if count < usize::from(tasks) => Err(format!(
            "the file has {}, which cannot be divided among {tasks} machines: use --sinks {count}, \
             or add sinks to the file",
            human::counted(count as u64, "sink", "sinks")
        )),
        _ => Ok(()),
    }
}

/// Refuses a generator that cannot be on another machine than the target, or on several.
fn check_generator(generator: &GeneratorPlan) -> Result<(), String> {
    let id = &generator.id;
    if !generator.transport.properties().is_relocatable {
        return Err(format!(
            "generator `{id}` sends over {}, which cannot reach a target on another machine: use \
             tcp, tls, udp, http, grpc, tcp_rr, requests or a trace agent",
            generator.transport.name()
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
            if url != requests.url() {
                requests.send_to(&url);
            }
        }
        _ => {}
    }
}

/// Returns `address` at `host`, if it is one of this machine. It may have no port.
fn at_host(address: &str, host: IpAddr) -> String {
    let (name, _) = split_port(address);
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
    let (_, port) = split_port(address);
    format!("{host}{port}")
}

/// Splits an address before the colon of its port. The port is empty if there is none.
fn split_port(address: &str) -> (&str, &str) {
    let colon = address.rfind(':').filter(|colon| {
        // The colons of an IPv6 address are between brackets.
        !address[*colon..].contains(']')
    });
    address.split_at(colon.unwrap_or(address.len()))
}

/// Returns `url` with its address at `host`, if that is one of this machine.
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
    use crate::generator::tests::{every_transport, requests_to};

    #[test]
    fn tasks_have_roles_in_a_fixed_order() {
        let beside = RunRoles {
            generators: 2,
            sinks: 0,
        };
        let names = |roles: RunRoles| -> Vec<String> {
            let tasks = 0..roles.tasks();
            tasks.map(|task| roles.role(task).unwrap().name()).collect()
        };
        assert_eq!(names(beside), ["target", "generator 0", "generator 1"]);
        let apart = RunRoles { sinks: 1, ..beside };
        assert_eq!(
            names(apart),
            ["target", "sinks", "generator 0", "generator 1"]
        );
        assert_eq!(apart.role(4), None);
        assert!(beside.has_sinks(TaskRole::Target) && !apart.has_sinks(TaskRole::Target));
        let many = RunRoles { sinks: 2, ..beside };
        let expected = ["target", "sinks 0", "sinks 1", "generator 0", "generator 1"];
        assert_eq!(names(many), expected);
        assert_eq!(many.role(5), None);
        assert!(many.has_sinks(many.role(2).unwrap()) && !many.has_sinks(many.role(3).unwrap()));
    }

    #[test]
    fn roles_are_written_as_before_where_one_task_has_all_sinks() {
        let role = |index, of| TaskRole::Sinks(SinkShare::new(index, of).unwrap());
        for (role, text) in [
            (role(0, 1), "\"sinks\""),
            (role(1, 3), r#"{"some_sinks":{"task":1,"tasks":3}}"#),
            (TaskRole::Target, "\"target\""),
        ] {
            assert_eq!(serde_json::to_string(&role).unwrap(), text);
            assert_eq!(serde_json::from_str::<TaskRole>(text).unwrap(), role);
        }
        let odd = r#"{"some_sinks":{"task":3,"tasks":3}}"#;
        assert!(serde_json::from_str::<TaskRole>(odd).is_err());
    }

    #[test]
    fn sinks_are_given_to_tasks_in_turn_with_their_hosts() {
        let hosts = RunHosts {
            sinks: vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
            ..RunHosts::default()
        };
        let roles = RunRoles {
            generators: 1,
            sinks: 2,
        };
        for index in 0..5 {
            let owners = (0..roles.tasks()).filter(|task| match roles.role(*task) {
                Some(TaskRole::Sinks(share)) => share.has(index),
                _ => false,
            });
            let owners: Vec<u16> = owners.collect();
            let [owner] = owners[..] else {
                panic!("sink {index} of {owners:?}");
            };
            let host = hosts.sinks[usize::from(owner - 1)];
            assert_eq!(hosts.of_sink(index), host);
        }
        let loopback = RunHosts::default();
        assert_eq!(loopback.of_sink(3), loopback.target);
    }

    #[test]
    fn requests_to_a_loopback_url_go_to_the_machine_of_the_target() {
        for (url, expected) in [
            ("http://127.0.0.1/a", "http://10.0.0.7/a"),
            ("http://[::1]:81/a", "http://10.0.0.7:81/a"),
            ("http://192.0.2.1/a", "http://192.0.2.1/a"),
        ] {
            let mut transport = requests_to(url);
            relocate(&mut transport, IpAddr::from([10, 0, 0, 7]));
            assert_eq!(transport, requests_to(expected));
        }
    }

    #[test]
    fn a_relocatable_transport_sends_to_the_machine_of_the_target() {
        for (transport, properties) in every_transport() {
            let mut relocated = transport.clone();
            relocate(&mut relocated, IpAddr::from([10, 0, 0, 7]));
            let is_relocated = relocated != transport;
            assert_eq!(
                is_relocated,
                transport.properties().is_relocatable,
                "{properties}"
            );
        }
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
            ("127.0.0.1", "10.0.0.7"),
            ("localhost", "10.0.0.7"),
            ("[::1]", "10.0.0.7"),
            ("example.org", "example.org"),
            ("[2001:db8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(at_host(address, host), expected, "{address}");
        }
        for (url, expected) in [
            ("http://127.0.0.1/", "http://10.0.0.7/"),
            ("http://localhost/health", "http://10.0.0.7/health"),
            ("http://localhost?a:b", "http://10.0.0.7?a:b"),
            ("https://[::1]", "https://10.0.0.7"),
            ("http://[::1]:90/a:b", "http://10.0.0.7:90/a:b"),
            ("http://example.org/", "http://example.org/"),
        ] {
            assert_eq!(url_at_host(url, host), expected, "{url}");
        }
        let six: IpAddr = "fd00::7".parse().unwrap();
        assert_eq!(
            url_at_host("http://127.0.0.1:90/a?b", six),
            "http://[fd00::7]:90/a?b"
        );
        assert_eq!(url_at_host("http://localhost/a", six), "http://[fd00::7]/a");
        assert_eq!(
            at_host("localhost:90", IpAddr::from([127, 0, 0, 1])),
            "localhost:90"
        );
    }
}
