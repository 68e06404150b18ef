//! Rights of the callers of a service.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use stillwell_plan::LoadPlan;
use stillwell_plan::load::{LoadPace, LoadPlanParts};
use stillwell_plan::tls::{ClientTlsPlan, PemSource, RootSource, Verification};
use stillwell_units::{Nanos, RunId, Seed};

use super::files_below::{AllowedFolder, FilesBelow};
use super::remote::dial_address;
use super::target_pattern::TargetPattern;
use crate::request::{NighthawkRequest, RequestError};

/// Fewest characters of a token.
const TOKEN_CHARS_MIN: usize = 16;

/// Most characters of a token: a header carries it.
const TOKEN_CHARS_MAX: usize = 4096;

/// Largest certificate or key of a caller's request.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// Rights of the callers of a service.
#[derive(Debug, Default)]
pub struct AccessPlan {
    /// The token that every call must carry, if any.
    pub token: Option<AccessToken>,
    /// Targets of every caller's loads. `None`: any for callers on loopback, none for others.
    pub targets: Option<Vec<TargetPattern>>,
    /// Limits of each load.
    pub limits: LoadLimits,
    /// Folder below which requests may name files, if any.
    pub folder: Option<AllowedFolder>,
}

/// Limits of each load that a caller requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadLimits {
    /// Highest number of requests per second.
    pub rate_max: Option<f64>,
    /// Longest time that a load keeps the service: the wait for its start and its duration. The wait
    /// for its last responses is not longer either.
    pub duration_max: Option<Nanos>,
    /// Most connections.
    pub connections_max: Option<u32>,
}

/// A secret that callers and a service share. Its text is in no output.
#[derive(Clone, Eq, PartialEq)]
pub struct AccessToken(String);

/// The source of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Caller {
    /// Its address.
    pub address: IpAddr,
}

/// A reason why a caller may not make a load.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The load cannot be planned.
    #[error(transparent)]
    Request(Box<RequestError>),
    /// A file that the request names has mistakes, which its owner alone may read.
    #[error("a file that the request names is not valid; its content is not shown to callers")]
    File,
    /// A file that may not be read.
    #[error("read {path}")]
    Read {
        /// As the caller wrote it.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// A target that is not allowed.
    #[error("the target {address} is not allowed: start the service with --allow-target {address}")]
    Target {
        /// `host:port`.
        address: String,
    },
    /// A limit of the service.
    #[error("the load exceeds the limit of this service: {0}")]
    Limit(String),
}

impl AccessToken {
    /// Makes a token of `text`, without the white space around it.
    ///
    /// # Errors
    /// It is too short or too long, or has characters that a header cannot carry.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.len() < TOKEN_CHARS_MIN {
            return Err("a token has at least 16 characters");
        }
        if text.len() > TOKEN_CHARS_MAX {
            return Err("a token has at most 4096 characters");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token consists of printable ASCII characters without blanks");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the value of the header `authorization`.
    #[must_use]
    pub fn header_value(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns true if `value` is the header's value of this token. The time that it takes
    /// does not depend on the position of a difference.
    pub(crate) fn is_in(&self, value: &[u8]) -> bool {
        let wanted = self.header_value();
        let difference = wanted
            .bytes()
            .zip(value)
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        wanted.len() == value.len() && difference == 0
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken")
    }
}

impl Caller {
    /// Returns true if the caller is on this machine.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }
}

impl AccessPlan {
    /// Returns true if `caller` may have load sent to `address`, a `host:port`.
    #[must_use]
    pub fn allows_target(&self, caller: Caller, address: &str) -> bool {
        match &self.targets {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(address)),
            None => caller.is_local(),
        }
    }

    /// Returns the plan of the load that `caller` requests and that starts after `wait`, on a host
    /// that runs `cpus` threads at once. Certificates and keys in files are part of the plan.
    ///
    /// # Errors
    /// [`AccessError`] if it has no meaning or is not allowed.
    pub fn plan(
        &self,
        caller: Caller,
        request: &NighthawkRequest,
        wait: Nanos,
        cpus: usize,
        run: RunId,
        seed: Seed,
    ) -> Result<LoadPlan, AccessError> {
        let files = FilesBelow::new(self.folder.as_ref());
        let planned = request.plan_with(&files, cpus, run, seed);
        let plan = planned.map_err(|error| match error {
            RequestError::Message(_) if files.is_used() => AccessError::File,
            error => AccessError::Request(Box::new(error)),
        })?;
        let source = request.content.request_source.as_deref();
        for address in dialled(&plan).into_iter().chain(source.map(dial_address)) {
            if !self.allows_target(caller, &address) {
                return Err(AccessError::Target { address });
            }
        }
        self.limits.check(&plan, wait)?;
        let mut parts: LoadPlanParts = (*plan).clone();
        if let Some(most) = self.limits.duration_max {
            parts.grace = parts.grace.min(most);
        }
        resolve_tls(&files, &mut parts.client.tls)?;
        if let Some(tunnel) = &mut parts.client.tunnel {
            resolve_tls(&files, &mut tunnel.tls)?;
        }
        LoadPlan::try_new(parts).map_err(|error| AccessError::Request(Box::new(error.into())))
    }
}

impl LoadLimits {
    fn check(&self, plan: &LoadPlan, wait: Nanos) -> Result<(), AccessError> {
        let exceeds = |what: String| Err(AccessError::Limit(what));
        if let Some(most) = self.rate_max {
            let rate = match &plan.pace {
                LoadPace::Open { curve, .. } => curve.highest(),
                LoadPace::Closed => None,
            };
            if rate.is_none_or(|rate| rate > most) {
                return exceeds(format!("{most} requests per second (--max-rate)"));
            }
        }
        if let Some(most) = self.duration_max {
            let duration = plan.until.duration;
            if duration.is_none_or(|duration| wait + duration > most) {
                return exceeds(format!(
                    "{most} for the wait until the scheduled start and the duration (--max-duration)"
                ));
            }
        }
        if let Some(most) = self.connections_max
            && plan.client.connecting.connections > most
        {
            return exceeds(format!("{most} connections (--max-connections)"));
        }
        Ok(())
    }
}

/// Returns every address that the load of `plan` sends anything to, directly or through its proxy.
fn dialled(plan: &LoadPlan) -> Vec<String> {
    let endpoints = plan.endpoints.iter().map(|endpoint| &endpoint.address);
    let tunnel = plan.client.tunnel.iter().map(|tunnel| &tunnel.address);
    let sinks = plan.telemetry.sinks.iter().map(|sink| &sink.receiver);
    let export = plan
        .telemetry
        .trace
        .iter()
        .filter_map(|trace| trace.export.as_ref());
    let receivers = sinks.chain(export.map(|export| &export.receiver));
    let receivers = receivers.map(|receiver| &receiver.address);
    endpoints.chain(tunnel).chain(receivers).cloned().collect()
}

/// Reads the files of `tls` now, with the rights of the caller.
fn resolve_tls(files: &FilesBelow<'_>, tls: &mut ClientTlsPlan) -> Result<(), AccessError> {
    let refused = |path: &Path| {
        let path = path.display().to_string();
        move |source| AccessError::Read { path, source }
    };
    if let Some(identity) = &mut tls.identity {
        for source in [&mut identity.certificates, &mut identity.key] {
            if let PemSource::File(path) = source {
                use stillwell_config::files::Files as _;
                let bytes = files
                    .read_bytes(path, PEM_BYTES_MAX)
                    .map_err(refused(path))?;
                *source = PemSource::Text(String::from_utf8(bytes).map_err(|_| AccessError::File)?);
            }
        }
    }
    if let Verification::Roots { extra, .. } = &mut tls.verification {
        for source in extra {
            if let RootSource::File(path) = source {
                *path = files.checked_path(path).map_err(refused(path))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLineOptions;

    const LOCAL: Caller = Caller {
        address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    };

    fn remote_caller() -> Caller {
        Caller {
            address: "10.1.2.3".parse().unwrap(),
        }
    }

    fn refusal(access: &AccessPlan, caller: Caller, options: CommandLineOptions) -> String {
        refusal_of_later(access, caller, options, Nanos::ZERO)
    }

    /// The refusal of a load that starts after `wait`.
    fn refusal_of_later(
        access: &AccessPlan,
        caller: Caller,
        options: CommandLineOptions,
        wait: Nanos,
    ) -> String {
        let request = NighthawkRequest::try_from(&options).unwrap();
        let planned = access.plan(
            caller,
            &request,
            wait,
            2,
            RunId::from_bytes([0; 16]),
            Seed::from_number(1),
        );
        match planned {
            Ok(_) => String::new(),
            Err(error) => stillwell_scope::explain(&error),
        }
    }

    fn to(uri: &str) -> CommandLineOptions {
        CommandLineOptions {
            uri: Some(uri.to_owned()),
            ..CommandLineOptions::default()
        }
    }

    #[test]
    fn remote_callers_have_no_target_by_default_and_local_ones_any() {
        let access = AccessPlan::default();
        assert_eq!(refusal(&access, LOCAL, to("http://example.org/")), "");
        let why = refusal(&access, remote_caller(), to("http://example.org/"));
        assert!(why.contains("example.org:80 is not allowed"), "{why}");
        assert!(
            Caller {
                address: "::ffff:127.0.0.1".parse().unwrap()
            }
            .is_local()
        );
    }

    #[test]
    fn patterns_hold_for_all_addresses_that_a_load_dials() {
        let access = AccessPlan {
            targets: Some(vec!["10.0.0.0/8:80".parse().unwrap()]),
            ..AccessPlan::default()
        };
        assert_eq!(
            refusal(&access, remote_caller(), to("http://10.2.3.4/")),
            ""
        );
        assert!(refusal(&access, LOCAL, to("http://10.2.3.4:81/")).contains("10.2.3.4:81"));
        for (uri, address) in [
            ("grpc://192.168.0.1:90", "192.168.0.1:90"),
            ("grpc://192.168.0.1", "192.168.0.1:8443"),
            ("grpc://::1:90/path", "[::1]:90"),
        ] {
            let from_source = || CommandLineOptions {
                request_source: Some(uri.to_owned()),
                ..to("http://10.2.3.4/")
            };
            let why = refusal(&access, LOCAL, from_source());
            assert!(why.contains(&format!("--allow-target {address}")), "{why}");
            // The pattern that the message names permits it.
            let patterns = ["10.0.0.0/8:80", address];
            let targets = patterns.map(|pattern| pattern.parse::<TargetPattern>().unwrap());
            let wide = AccessPlan {
                targets: Some(targets.into()),
                ..AccessPlan::default()
            };
            assert_eq!(refusal(&wide, LOCAL, from_source()), "");
        }
    }

    #[test]
    fn loads_beyond_a_limit_are_refused() {
        let limits = LoadLimits {
            rate_max: Some(100.0),
            duration_max: Some(Nanos::from_secs(60)),
            connections_max: Some(10),
        };
        let access = AccessPlan {
            limits,
            ..AccessPlan::default()
        };
        let small = || CommandLineOptions {
            requests_per_second: Some(100),
            connections: Some(10),
            duration: Some(Nanos::from_secs(60)),
            ..to("http://127.0.0.1/")
        };
        assert_eq!(refusal(&access, LOCAL, small()), "");
        for (options, flag) in [
            (
                CommandLineOptions {
                    requests_per_second: Some(101),
                    ..small()
                },
                "--max-rate",
            ),
            (
                CommandLineOptions {
                    concurrency: Some("2".to_owned()),
                    ..small()
                },
                "--max-rate",
            ),
            (
                CommandLineOptions {
                    connections: Some(11),
                    ..small()
                },
                "--max-connections",
            ),
            (
                CommandLineOptions {
                    duration: Some(Nanos::from_secs(61)),
                    ..small()
                },
                "--max-duration",
            ),
            (
                CommandLineOptions {
                    duration: None,
                    no_duration: Some(true),
                    ..small()
                },
                "--max-duration",
            ),
        ] {
            let why = refusal(&access, LOCAL, options);
            assert!(why.contains(flag), "{flag}: {why}");
        }
    }

    #[test]
    fn the_longest_duration_includes_the_wait_for_the_start_and_bounds_that_for_responses() {
        let limits = LoadLimits {
            duration_max: Some(Nanos::from_secs(60)),
            ..LoadLimits::default()
        };
        let access = AccessPlan {
            limits,
            ..AccessPlan::default()
        };
        let load = |duration| CommandLineOptions {
            duration: Some(Nanos::from_secs(duration)),
            timeout: Some(Nanos::from_secs(1_000_000)),
            ..to("http://127.0.0.1/")
        };
        for (wait, duration, is_allowed) in [
            (0, 60, true),
            (0, 61, false),
            (10, 50, true),
            (11, 50, false),
            (1_000_000, 1, false),
        ] {
            let wait = Nanos::from_secs(wait);
            let why = refusal_of_later(&access, LOCAL, load(duration), wait);
            assert_eq!(why.is_empty(), is_allowed, "{wait} {duration}: {why}");
            assert!(is_allowed || why.contains("--max-duration"), "{why}");
        }
        let request = NighthawkRequest::try_from(&load(60)).unwrap();
        let (run, seed) = (RunId::from_bytes([0; 16]), Seed::from_number(1));
        let plan = access.plan(LOCAL, &request, Nanos::ZERO, 2, run, seed);
        assert_eq!(plan.unwrap().grace, Nanos::from_secs(60));
    }

    #[test]
    fn tokens_match_as_a_whole_and_are_not_shown() {
        let token = AccessToken::new("0123456789abcdef\n").unwrap();
        assert!(token.is_in(b"Bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcdef0",
        ] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "AccessToken");
        assert!(AccessToken::new("short").is_err());
        assert!(AccessToken::new("0123456789 abcdef").is_err());
    }
}
