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
        listing: &listing,
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
    let file = match fields.line("file") {
        "" => None,
        address => Some(experiment(shared, address)?),
    };
    let place = match kind.results() {
        Some((folder, _)) => {
            let is_taken = |path: &str| is_taken(shared, path);
            let program = &shared.program;
            let path = program.new_folder(folder, kind.command(), &is_taken);
            results_place(shared, "", &path)?
        }
        None => results_place(shared, "folder", fields.line("folder"))?,
    };
    let words = words(kind, fields, &place.shown(), file.as_deref())?;
    let checked = shared.program.check_words(&words);
    checked.map_err(|message| located(kind, message))?;
    let submitted = shared.jobs.submit(words, place);
    submitted.map_err(|error| FieldError {
        field: "",
        message: error.to_string(),
    })
}

/// Returns true if a path below the first root exists, or a command will make it.
fn is_taken(shared: &Shared, path: &str) -> bool {
    PlaceBelow::parse(&format!("0/{path}"))
        .is_ok_and(|place| shared.jobs.has_results_at(&place) || shared.roots.path(&place).is_ok())
}

/// Returns the place of a folder below the first root, of which no part is a link. It may be new.
fn results_place(
    shared: &Shared,
    field: &'static str,
    path: &str,
) -> Result<PlaceBelow, FieldError> {
    let refuse = |message: String| FieldError { field, message };
    let place = folder_below(path).map_err(|reason| refuse(reason.to_owned()))?;
    match shared.roots.path(&place) {
        // The command makes the part that is missing.
        Ok(_) | Err(PlaceError::Open { .. }) => Ok(place),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// Reads the path of a folder below the first root, as users write it.
fn folder_below(path: &str) -> Result<PlaceBelow, &'static str> {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path.is_empty() {
        return Err("name a folder");
    }
    let place = PlaceBelow::parse(&format!("0/{path}"));
    place.map_err(|_| "name a folder below that of this server, such as shop")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_as_in_a_shell() {
        for (path, expected) in [
            ("shop", Ok("0/shop")),
            ("./shop", Ok("0/shop")),
            ("shop/", Ok("0/shop")),
            ("./a/shop/", Ok("0/a/shop")),
            (".stillwell/loads/a", Ok("0/.stillwell/loads/a")),
            ("", Err("name a folder")),
            ("./", Err("name a folder")),
            ("../shop", Err("name a folder below")),
            ("/shop", Err("name a folder below")),
            (".", Err("name a folder below")),
            ("a//b", Err("name a folder below")),
        ] {
            match (folder_below(path), expected) {
                (Ok(place), Ok(address)) => assert_eq!(place.address(), address, "{path}"),
                (Err(message), Err(start)) => assert!(message.starts_with(start), "{path}"),
                (read, _) => panic!("{path}: {read:?}"),
            }
        }
    }
}
