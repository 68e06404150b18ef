//! Containers as targets, by what a command line and the environment say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stillwell_config::TargetOverride;
use stillwell_plan::target::{ContainerOrigin, ContainerTarget, ImagePlan};

use crate::exit::{CommandError, Exit};

/// Docker's own variable for where its engine is.
const HOST_VARIABLE: &str = "DOCKER_HOST";
/// Default socket of the engine.
const SOCKET: &str = "/var/run/docker.sock";

/// The container called `name`.
///
/// # Errors
/// Exit code 2 where that is no name, or the engine is on another machine.
pub(crate) fn named(name: &str) -> Result<TargetOverride, CommandError> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if name.is_empty() || !name.chars().all(is_of_name) || name.starts_with(['.', '-']) {
        let error = anyhow::anyhow!("`{name}` is not a container name");
        let hint = "write its name or id, as in `docker ps`";
        return Err(CommandError::new(Exit::Usage, error).hint(hint));
    }
    Ok(TargetOverride::Container(ContainerTarget {
        socket: socket()?,
        origin: ContainerOrigin::Named(name.to_owned()),
    }))
}

/// A container of `image`.
///
/// # Errors
/// Exit code 2 where that is no name, or the engine is on another machine.
pub(crate) fn of_image(
    image: &str,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
) -> Result<TargetOverride, CommandError> {
    if image.is_empty() || image.contains(char::is_whitespace) {
        let error = anyhow::anyhow!("`{image}` is not an image");
        let hint = "write one such as timberio/vector:0.40.0-debian";
        return Err(CommandError::new(Exit::Usage, error).hint(hint));
    }
    Ok(TargetOverride::Container(ContainerTarget {
        socket: socket()?,
        origin: ContainerOrigin::Image(ImagePlan {
            image: image.to_owned(),
            arguments,
            environment,
            ..ImagePlan::default()
        }),
    }))
}

fn socket() -> Result<PathBuf, CommandError> {
    let Ok(host) = std::env::var(HOST_VARIABLE) else {
        return Ok(SOCKET.into());
    };
    match host.strip_prefix("unix://") {
        Some(path) => Ok(path.into()),
        None if host.is_empty() => Ok(SOCKET.into()),
        None => {
            let error = anyhow::anyhow!("the engine at {HOST_VARIABLE}={host} is not supported");
            let hint = "Stillwell measures containers of this machine: unix:///PATH/TO/SOCKET";
            Err(CommandError::new(Exit::Usage, error).hint(hint))
        }
    }
}
