//! `stillwell schema`.

use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run() -> Result<Exit, CommandError> {
    let schema = serde_json::to_string_pretty(&stillwell_config::schema())
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Paint::data(&format!("{schema}\n"))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}
