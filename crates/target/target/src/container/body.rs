//! JSON bodies of a container engine's requests and responses.

use serde_json::{Map, Value, json};
use stillwell_plan::target::ImagePlan;

use crate::cgroup::Limits;

/// The label of every container that is made, with the run's name.
const LABEL: &str = "stillwell.target";

/// State of a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct State {
    pub(super) id: String,
    /// `running`, `exited` and so on.
    pub(super) status: String,
    /// The number of its first process, while it runs.
    pub(super) pid: Option<u32>,
    /// Exit code, once it has ended.
    pub(super) code: i32,
}

impl State {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let response: Value = serde_json::from_slice(body).ok()?;
        let state = response.get("State")?;
        let number = |key| state.get(key).and_then(Value::as_i64);
        let is_running = state.get("Running").and_then(Value::as_bool) == Some(true);
        let id = response.get("Id")?.as_str()?;
        let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let pid = number("Pid").and_then(|pid| u32::try_from(pid).ok());
        Some(Self {
            id: is_plain.then(|| id.to_owned())?,
            status: state.get("Status")?.as_str()?.to_owned(),
            pid: pid.filter(|pid| *pid > 0 && is_running),
            code: number("ExitCode").and_then(|code| i32::try_from(code).ok())?,
        })
    }
}

/// Returns the body of a request that creates a container.
pub(super) fn create(plan: &ImagePlan, limits: &Limits, run: &str) -> Vec<u8> {
    let environment = plan.environment.iter();
    let environment: Vec<String> = environment.map(|(k, v)| format!("{k}={v}")).collect();
    let binds = plan.mounts.iter().map(|mount| {
        let access = if mount.writable { "rw" } else { "ro" };
        format!("{}:{}:{access}", mount.source.display(), mount.at.display())
    });
    let mut host = limits_of(limits);
    host.insert("NetworkMode".to_owned(), "host".into());
    host.insert("Binds".to_owned(), binds.collect());
    let mut body = json!({
        "Image": plan.image,
        "Env": environment,
        "Labels": {LABEL: run},
        "HostConfig": host,
    });
    if let Some(program) = &plan.program {
        body["Entrypoint"] = json!([program]);
    }
    if plan.program.is_some() || !plan.arguments.is_empty() {
        body["Cmd"] = json!(plan.arguments);
    }
    body.to_string().into_bytes()
}

/// Returns the body of a request that limits a running container.
pub(super) fn update(limits: &Limits) -> Vec<u8> {
    Value::Object(limits_of(limits)).to_string().into_bytes()
}

fn limits_of(limits: &Limits) -> Map<String, Value> {
    let mut update = Map::new();
    if let Some(memory) = limits.memory {
        update.insert("Memory".to_owned(), memory.bytes().into());
        // Swap included: none beside it.
        update.insert("MemorySwap".to_owned(), memory.bytes().into());
    }
    if let Some(cpus) = &limits.cpus {
        let list: Vec<String> = cpus.iter().map(u16::to_string).collect();
        update.insert("CpusetCpus".to_owned(), list.join(",").into());
    }
    update
}

#[cfg(test)]
mod tests {
    use stillwell_plan::target::MountPlan;
    use stillwell_units::ByteSize;

    use super::*;

    #[test]
    fn a_container_is_described_with_its_limits() {
        let plan = ImagePlan {
            image: "timberio/vector:0.40".to_owned(),
            program: Some("/usr/bin/vector".to_owned()),
            arguments: vec!["--quiet".to_owned()],
            environment: [("A".to_owned(), "b".to_owned())].into(),
            mounts: vec![
                MountPlan::read_only("/lab/vector".into(), "/etc/vector".into()),
                MountPlan {
                    source: "/tmp/x".into(),
                    at: "/var/lib/vector".into(),
                    writable: true,
                },
            ],
        };
        let limits = Limits {
            memory: Some(ByteSize::mib(1024)),
            cpus: Some(vec![1, 3]),
        };
        let body: Value = serde_json::from_slice(&create(&plan, &limits, "00ff")).unwrap();
        let expected = json!({
            "Image": "timberio/vector:0.40",
            "Entrypoint": ["/usr/bin/vector"],
            "Cmd": ["--quiet"],
            "Env": ["A=b"],
            "Labels": {"stillwell.target": "00ff"},
            "HostConfig": {
                "NetworkMode": "host",
                "Binds": ["/lab/vector:/etc/vector:ro", "/tmp/x:/var/lib/vector:rw"],
                "Memory": 1_073_741_824,
                "MemorySwap": 1_073_741_824,
                "CpusetCpus": "1,3",
            },
        });
        assert_eq!(body, expected);
        let plain = create(&ImagePlan::default(), &Limits::default(), "");
        let plain: Value = serde_json::from_slice(&plain).unwrap();
        assert_eq!((plain.get("Cmd"), plain.get("Entrypoint")), (None, None));
    }

    #[test]
    fn only_what_runs_has_a_process() {
        let state = |running: bool, pid: i64, id: &str| {
            let state = json!({"Status": "x", "Running": running, "Pid": pid, "ExitCode": 3});
            State::read(json!({"Id": id, "State": state}).to_string().as_bytes())
        };
        assert_eq!(state(true, 42, "ab12").unwrap().pid, Some(42));
        assert_eq!(state(false, 42, "ab12").unwrap().pid, None);
        assert_eq!(state(true, 0, "ab12").unwrap().pid, None);
        assert_eq!(state(true, 42, "../x"), None);
        assert_eq!(State::read(b"{}"), None);
    }
}
