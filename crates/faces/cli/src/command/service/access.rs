//! Rights of the callers of a service.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use stillwell_config::files::read_text;
use stillwell_nighthawk::service::{AccessPlan, AccessToken, AllowedFolder, LoadLimits};

use crate::arguments::AccessArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Environment variable of the token, for services and their clients.
const TOKEN_VARIABLE: &str = "STILLWELL_SERVICE_TOKEN";

fn usage(error: anyhow::Error) -> CommandError {
    CommandError::new(Exit::Usage, error)
}

/// Returns the rights that the command line gives to callers.
pub(super) fn plan(arguments: &AccessArguments) -> Result<AccessPlan, CommandError> {
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
