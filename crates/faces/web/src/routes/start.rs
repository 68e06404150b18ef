//! Commands: their forms, their start, their progress and their end.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use stillwell_scope::clock;

use super::{Sent, Server, Shared, refused};
use crate::answer::{self, Answer};
use crate::fields::Fields;
use crate::orders::{FieldError, OrderKind, located, words};
use crate::pages::{self, StartView};
use stillwell_experiment::library::{PlaceBelow, PlaceError};

/// The forms, and the commands so far.
pub(super) async fn form(
    State(shared): Server,
    RawQuery(query): RawQuery,
) -> Result<Answer, Answer> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let named = OrderKind::of_command(fields.line("form"));
    let kind = match fields.line("file") {
        "" => named,
        _ => Some(OrderKind::Experiment),
    };
    let page = filled(&shared, kind.map(|kind| (kind, &fields)), None).await?;
    Ok(answer::page(StatusCode::OK, page))
}

async fn filled(
    shared: &Arc<Shared>,
    filled: Option<(OrderKind, &Fields)>,
    error: Option<&FieldError>,
) -> Result<String, Answer> {
    let listing = shared.listing().await?;
    let view = StartView {
        filled,
        error,
        files: &listing.files,
        jobs: &shared.jobs.views(),
        now: clock::now(),
    };
    Ok(pages::start(&view, shared.chrome()))
}

/// Starts a command, or shows its form again.
pub(super) async fn submit(
    State(shared): Server,
    Path(command): Path<String>,
    sent: Sent,
) -> Result<Answer, Answer> {
    let Some(kind) = OrderKind::of_command(&command) else {
        return Err(refused(
            &shared,
            StatusCode::NOT_FOUND,
            "There is no such form.",
        ));
    };
    let fields = Fields::parse(&sent);
    match order(&shared, kind, &fields) {
        Ok(id) => Ok(answer::see(&format!("/commands/{id}"))),
        Err(error) => {
            let page = filled(&shared, Some((kind, &fields)), Some(&error)).await?;
            Ok(answer::page(StatusCode::UNPROCESSABLE_ENTITY, page))
        }
    }
}

/// Adds the command of a form to the queue.
fn order(shared: &Shared, kind: OrderKind, fields: &Fields) -> Result<u64, FieldError> {
    let whole = |message: String| FieldError { field: "", message };
    let file = match fields.line("file") {
        "" => None,
        address => Some(experiment(shared, address)?),
    };
    let results = match kind.results() {
        Some((folder, _)) => shared.program.new_folder(folder, kind.command()),
        None => new_folder(shared, fields.line("folder"))?,
    };
    let words = words(kind, fields, &results, file.as_deref())?;
    let checked = shared.program.check_words(&words);
    checked.map_err(|message| located(kind, message))?;
    let place = PlaceBelow::parse(&format!("0/{results}"));
    let place = place.map_err(|error| whole(error.to_string()))?;
    let submitted = shared.jobs.submit(words, place);
    submitted.map_err(|error| whole(error.to_string()))
}

/// Checks the path of a folder below the first root, of which no part is a link.
fn new_folder(shared: &Shared, path: &str) -> Result<String, FieldError> {
    let refuse = |message: String| FieldError {
        field: "folder",
        message,
    };
    if path.is_empty() {
        return Err(refuse("name a folder".to_owned()));
    }
    let place = PlaceBelow::parse(&format!("0/{path}"));
    let place = place.map_err(|error| refuse(error.to_string()))?;
    for length in 1..=place.names.len() {
        let above = PlaceBelow {
            names: place.names[..length].to_vec(),
            ..place.clone()
        };
        match shared.roots.path(&above) {
            Ok(_) => {}
            // It is made by the command.
            Err(PlaceError::Open { .. }) => break,
            Err(error) => return Err(refuse(error.to_string())),
        }
    }
    Ok(place.shown())
}

/// Returns the path of an experiment below the first root, where commands run.
fn experiment(shared: &Shared, address: &str) -> Result<String, FieldError> {
    let refuse = |message: String| FieldError {
        field: "file",
        message,
    };
    let place = PlaceBelow::parse(address).map_err(|error| refuse(error.to_string()))?;
    shared
        .roots
        .path(&place)
        .map_err(|error| refuse(error.to_string()))?;
    match place.root {
        0 => Ok(place.shown()),
        _ => Err(refuse("choose a file in the first folder".to_owned())),
    }
}

/// The page of a command.
pub(super) async fn job(State(shared): Server, Path(id): Path<u64>) -> Result<Answer, Answer> {
    let view = shared.jobs.view(id).ok_or_else(|| missing(&shared))?;
    let page = pages::job(&view, clock::now(), shared.chrome());
    Ok(answer::page(StatusCode::OK, page))
}

/// The events of a command.
pub(super) async fn events(State(shared): Server, Path(id): Path<u64>) -> Result<Answer, Answer> {
    let events = shared.jobs.watch(id).ok_or_else(|| missing(&shared))?;
    Ok(answer::events(events))
}

/// Stops a command.
pub(super) async fn stop(State(shared): Server, Path(id): Path<u64>) -> Result<Answer, Answer> {
    match shared.jobs.stop(id) {
        true => Ok(answer::see(&format!("/commands/{id}"))),
        false => Err(missing(&shared)),
    }
}

fn missing(shared: &Shared) -> Answer {
    let message = "This command is not on this server, or was removed from its list. Its results may still be in the list.";
    refused(shared, StatusCode::NOT_FOUND, message)
}
