//! `stillwell schema`.

use stillwell_config::SchemaOf;
use stillwell_report::DECISION_JSON_SCHEMA;
use stillwell_report::load::BRIEF_LOAD_JSON_SCHEMA;

use crate::arguments::SchemaKind;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(kind: SchemaKind) -> Result<Exit, CommandError> {
    let schema = match kind {
        SchemaKind::Experiment => of_configuration(SchemaOf::Experiment)?,
        SchemaKind::Bench => of_configuration(SchemaOf::Bench)?,
        SchemaKind::Scenario => of_configuration(SchemaOf::Scenario)?,
        SchemaKind::Load => BRIEF_LOAD_JSON_SCHEMA.to_owned(),
        SchemaKind::Decision => DECISION_JSON_SCHEMA.to_owned(),
    };
    Paint::data(&schema).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

fn of_configuration(kind: SchemaOf) -> Result<String, CommandError> {
    let schema = serde_json::to_string_pretty(&stillwell_config::schema(kind))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(format!("{schema}\n"))
}
