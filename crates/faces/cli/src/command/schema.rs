//! `stillwell schema`.

use crate::arguments::SchemaKind;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(kind: SchemaKind) -> Result<Exit, CommandError> {
    let schema = serde_json::to_string_pretty(&stillwell_config::schema(kind.into()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Paint::data(&format!("{schema}\n"))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}
