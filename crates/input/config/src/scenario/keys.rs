//! Keys of a scenario file.

use crate::element::{
    DURATION, Element, Field, Shape, TEXT_MAP, TEXTS, concat, optional, required,
};

/// A time, or the shortest and longest of random times.
const THINK: Shape = Shape::Like("100ms..2s");

const STEPS: Shape = Shape::List(&Shape::Element(&STEP));

/// A whole file.
pub(crate) const SCENARIO_FILE: Element = Element::new(
    "scenario file",
    "A file with a scenario.",
    &[required(
        "scenario",
        Shape::Element(&SCENARIO),
        "The scenario.",
    )],
);

/// Keys of a scenario, wherever it is.
pub(crate) const SCENARIO_FIELDS: [Field; 9] = [
    optional(
        "url",
        Shape::Text,
        "Base URL; the command line overrides it.",
    ),
    optional(
        "users",
        Shape::Whole,
        "Closed loop: number of users at a time; 10 by default.",
    ),
    optional(
        "arrivals",
        Shape::Like("50/s"),
        "Open loop: users that arrive per second.",
    ),
    optional(
        "users_max",
        Shape::Whole,
        "Maximum number of users at a time, only with `arrivals`; 10000 by default.",
    ),
    optional("variables", TEXT_MAP, "Variables and their values."),
    optional(
        "data",
        Shape::Text,
        "CSV file; its first row names variables. Each user takes the next row.",
    ),
    optional("headers", TEXT_MAP, "Headers of all steps."),
    optional("steps", STEPS, "Steps, in order."),
    optional(
        "flows",
        Shape::List(&Shape::Element(&FLOW)),
        "Several flows; each user follows one.",
    ),
];

const LOAD_FIELDS: [Field; SCENARIO_FIELDS.len() + 1] = concat(
    &SCENARIO_FIELDS,
    &[optional(
        "duration",
        DURATION,
        "Length of the measured time [default: 10s]; a generator ignores it.",
    )],
);

/// A scenario.
pub(super) const SCENARIO: Element =
    Element::new("scenario", "Users that follow steps.", &LOAD_FIELDS).one_of(&["steps", "flows"]);

/// A flow.
pub(super) const FLOW: Element = Element::new(
    "scenario flow",
    "Steps that a share of the users follows.",
    &[
        required("name", Shape::Text, "Name in the report."),
        optional(
            "weight",
            Shape::Whole,
            "Share of users, relative to other flows; 1 by default.",
        ),
        required("steps", STEPS, "Steps, in order."),
    ],
);

/// A step.
pub(super) const STEP: Element = Element::new(
    "scenario step",
    "A request, checks of its response and values to take from it.",
    &[
        required("name", Shape::Text, "Name in the report."),
        optional(
            "method",
            Shape::Text,
            "Method; GET by default, POST with a body.",
        ),
        required(
            "path",
            Shape::Like("/items/{{id}}"),
            "Path and query, below the base URL.",
        ),
        optional("headers", TEXT_MAP, "Headers."),
        optional("body", Shape::Text, "Body."),
        optional(
            "take",
            Shape::Map(&Shape::Element(&TAKE)),
            "Variables and where their values are in the response.",
        ),
        optional(
            "check",
            Shape::Element(&CHECK),
            "Checks of the response; a user ends at a step that fails.",
        ),
        optional("think", THINK, "Think time after the step."),
    ],
);

/// A value of a response.
pub(super) const TAKE: Element = Element::new(
    "scenario take",
    "Place of a value in the response.",
    &[
        optional(
            "json",
            Shape::Like("/items/0/id"),
            "JSON pointer into the body.",
        ),
        optional("header", Shape::Text, "Name of a header."),
        optional(
            "regex",
            Shape::Text,
            "Regular expression on the body: its first group, or the whole match.",
        ),
    ],
)
.one_of(&["json", "header", "regex"]);

/// Checks of a response.
pub(super) const CHECK: Element = Element::new(
    "scenario check",
    "Checks of a response.",
    &[
        optional(
            "status",
            Shape::Whole,
            "Accepted status; 200 to 399 by default.",
        ),
        optional(
            "contains",
            Shape::Any(&[Shape::Text, TEXTS]),
            "Texts that the body must contain.",
        ),
    ],
);
