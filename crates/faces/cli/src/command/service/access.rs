//! Rights of the callers of a service.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use stillwell_config::files::read_text;
use stillwell_nighthawk::service::{AccessPlan, AccessToken, AllowedFolder, LoadLimits};

use crate::arguments::{AccessArguments, ServiceRole};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Environment variable of the token, for services and their clients.
const TOKEN_VARIABLE: &str = "STILLWELL_SERVICE_TOKEN";

fn usage(error: anyhow::Error) -> CommandError {
    CommandError::new(Exit::Usage, error)
}

/// Returns the rights that the command line gives to callers of a service of this role.
pub(super) fn plan(
    arguments: &AccessArguments,
    role: ServiceRole,
) -> Result<AccessPlan, CommandError> {
    check_role(arguments, role).map_err(usage)?;
    let targets = &arguments.allow_target;
    let folder = arguments.allow_files.as_deref().map(|folder| {
        let opened = AllowedFolder::open(folder);
        opened.with_context(|| format!("--allow-files {}", folder.display()))
    });
    let folder = folder.transpose().map_err(usage)?;
    Ok(AccessPlan {
        token: match &arguments.token_file {
            Some(path) => Some(token_of_file(path)?),
            None => token_of_environment()?,
        },
        targets: (!targets.is_empty()).then(|| targets.clone()),
        limits: LoadLimits {
            rate_max: arguments.max_rate,
            duration_max: arguments.max_duration,
            connections_max: arguments.max_connections,
        },
        folder,
    })
}

/// Refuses options that have no effect on a service of this role.
fn check_role(arguments: &AccessArguments, role: ServiceRole) -> anyhow::Result<()> {
    if role == ServiceRole::TrafficGeneratorService {
        return Ok(());
    }
    for (flag, is_given) in [
        ("--allow-files", arguments.allow_files.is_some()),
        ("--max-rate", arguments.max_rate.is_some()),
        ("--max-duration", arguments.max_duration.is_some()),
        ("--max-connections", arguments.max_connections.is_some()),
    ] {
        if is_given {
            anyhow::bail!("{flag} is for --service traffic-generator-service");
        }
    }
    if !arguments.allow_target.is_empty() && role == ServiceRole::DummyRequestSource {
        anyhow::bail!(
            "--allow-target is for --service traffic-generator-service and --service distributor"
        );
    }
    Ok(())
}

/// Refuses an address that other hosts reach, unless callers need a secret or `is_insecure`.
/// `secrets` names those that the command line takes, with their options.
pub(super) fn require_secret(
    listen: SocketAddr,
    has_secret: bool,
    is_insecure: bool,
    secrets: &str,
) -> Result<(), CommandError> {
    if listen.ip().is_loopback() || has_secret {
        return Ok(());
    }
    if !is_insecure {
        return Err(usage(anyhow::anyhow!(
            "other hosts can reach {listen}, so callers need {secrets}; \
             --insecure accepts every caller"
        )));
    }
    Paint::print_message("warning: every host that reaches this service can use it (--insecure)");
    Ok(())
}

/// Reads the token in the file at `path`.
pub(super) fn token_of_file(path: &Path) -> Result<AccessToken, CommandError> {
    let text = read_text(path).with_context(|| format!("read {}", path.display()));
    let token = AccessToken::new(&text.map_err(usage)?).map_err(anyhow::Error::msg);
    let token = token.with_context(|| format!("read {}", path.display()));
    token.map_err(usage)
}

/// Returns the token of the environment, if there is one.
pub(crate) fn token_of_environment() -> Result<Option<AccessToken>, CommandError> {
    let Some(text) = std::env::var_os(TOKEN_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let token = AccessToken::new(&text.to_string_lossy()).map_err(anyhow::Error::msg);
    let token = token.context(TOKEN_VARIABLE);
    token.map(Some).map_err(usage)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::NighthawkServiceArguments;

    #[test]
    fn options_without_an_effect_on_a_role_are_refused() {
        let roles = [
            "traffic-generator-service",
            "distributor",
            "dummy-request-source",
        ];
        for (flag, value, refused_by) in [
            ("--allow-files", "/", &roles[1..]),
            ("--max-rate", "1", &roles[1..]),
            ("--max-duration", "1s", &roles[1..]),
            ("--max-connections", "1", &roles[1..]),
            ("--allow-target", "127.0.0.1", &roles[2..]),
            ("--token-file", "/token", &roles[3..]),
        ] {
            for role in roles {
                let line = ["nighthawk_service", "--service", role, flag, value];
                let parsed = NighthawkServiceArguments::try_parse_from(line).unwrap();
                let error = check_role(&parsed.access, parsed.service).err();
                assert_eq!(error.is_some(), refused_by.contains(&role), "{line:?}");
                assert!(error.is_none_or(|error| error.to_string().starts_with(flag)));
            }
        }
    }
}
