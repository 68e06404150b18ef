//! Delivery of stamped events.

use stillwell_plan::stamp::StampForm;
use stillwell_units::human::count as grouped;
use stillwell_verdict::{CountBounds, LedgerFigures, LedgerRange, LedgerRecord, PrefixCounts};

use crate::words;

/// Ranges and events whose numbers are shown.
const SHOWN: usize = 5;

/// Returns the heads and texts of the rows.
pub(crate) fn rows(ledger: &LedgerRecord) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let many = ledger.generators.len() > 1;
    for generator in &ledger.generators {
        let of = if many {
            format!(" of {}", generator.id)
        } else {
            String::new()
        };
        let mut row = |head: &str, text: String| rows.push((format!("{head}{of}"), text));
        row("stamped", stamped(generator));
        row(
            "lost",
            with_places(counted(generator.lost), &lost_places(generator)),
        );
        let duplicated = match generator.expected.copies {
            1 => counted(generator.duplicated),
            copies => format!(
                "{}, beyond {copies} copies each",
                counted(generator.duplicated)
            ),
        };
        row("duplicated", duplicated);
        if generator.expected.copies > 1 {
            row("incomplete", counted(generator.incomplete));
        }
        row("reordered", reordered(ledger, generator));
        if let Some(after) = generator.expected.late_after {
            let late = grouped(generator.late);
            row(
                "late",
                format!("{late} after more than {}", words::nanos(after)),
            );
        }
        row(
            "damaged",
            with_places(damaged(generator), &damaged_places(generator)),
        );
        if generator.unsent.most > 0 {
            row("never sent", counted(generator.unsent));
        }
        if generator.bounded_windows > 0 {
            let windows = grouped(generator.bounded_windows);
            let text = format!("in {windows} windows of 65,536 events, for lack of memory");
            row("counts inexact", text);
        }
    }
    if let Some(text) = arrived_again(ledger) {
        rows.push(("on several machines".to_owned(), text));
    }
    if let Some(text) = under_way(ledger) {
        rows.push(("still on their way".to_owned(), text));
    }
    for (head, count) in [
        ("stamps cut or changed", ledger.broken),
        ("foreign stamps", ledger.foreign),
    ] {
        if count > 0 {
            rows.push((head.to_owned(), grouped(count)));
        }
    }
    rows
}

/// Describes the prefixes of events.
pub(crate) fn prefixes(counts: PrefixCounts) -> String {
    let read = grouped(counts.read);
    match counts.implausible {
        0 => format!("{read} read"),
        other => format!("{read} read, {} implausible", grouped(other)),
    }
}

fn stamped(figures: &LedgerFigures) -> String {
    let of = match figures.expected.every.get() {
        1 => String::new(),
        every => format!(", one in {}", grouped(u64::from(every))),
    };
    let what = match figures.expected.form {
        StampForm::Header => "requests",
        StampForm::Text | StampForm::Prefix(_) => "events",
    };
    let (sent, arrivals) = (grouped(figures.sent), grouped(figures.arrivals));
    format!("{sent} {what} over the whole run{of}; {arrivals} arrivals")
}

fn reordered(ledger: &LedgerRecord, figures: &LedgerFigures) -> String {
    let mut text = match figures.reordered {
        0 => "0".to_owned(),
        count if figures.displacement_max == 1 => format!("{}, by one place", grouped(count)),
        count => format!(
            "{}, by {} places at most",
            grouped(count),
            grouped(figures.displacement_max)
        ),
    };
    if let Some(divided) = ledger.divided {
        let machines = divided.machines;
        text.push_str(&format!(
            "; counted on each of {machines} machines with sinks"
        ));
    }
    text
}

/// Describes events that arrived on several machines.
fn arrived_again(ledger: &LedgerRecord) -> Option<String> {
    let again = ledger.divided?.arrived_again;
    (again.most > 0).then(|| {
        format!(
            "{} times an event arrived on a second machine or more; latency and late count each arrival",
            counted(again)
        )
    })
}

fn damaged(figures: &LedgerFigures) -> String {
    let mut text = format!(
        "{} arrivals, {} intact",
        grouped(figures.damaged),
        grouped(figures.intact)
    );
    for (count, what) in [
        (figures.unverifiable, "unverifiable"),
        (figures.undeclared, "without a content hash"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", grouped(count)));
        }
    }
    text
}

fn lost_places(figures: &LedgerFigures) -> Vec<String> {
    let several = figures.streams > 1;
    let shown = figures.losses.iter().take(SHOWN);
    let mut places: Vec<String> = shown.map(|range| place(range, several)).collect();
    let shown = places.len() as u64;
    if figures.loss_ranges > shown {
        places.push(format!("{} more", grouped(figures.loss_ranges - shown)));
    }
    places
}

fn place(range: &LedgerRange, several: bool) -> String {
    let numbers = if range.first == range.last {
        range.first.to_string()
    } else {
        format!("{}–{}", range.first, range.last)
    };
    let length = range.last - range.first + 1;
    let part = match range.lost.exactly() {
        Some(lost) if lost == length => String::new(),
        _ => format!(" ({} of these)", counted(range.lost)),
    };
    if several {
        format!("{numbers}{part} of stream {}", range.stream)
    } else {
        format!("{numbers}{part}")
    }
}

fn damaged_places(figures: &LedgerFigures) -> Vec<String> {
    let shown = figures.damages.iter().take(SHOWN);
    let mut places: Vec<String> = shown
        .map(|event| match figures.streams {
            1 => event.sequence.to_string(),
            _ => format!("{} of stream {}", event.sequence, event.stream),
        })
        .collect();
    let shown = places.len() as u64;
    if figures.damaged > shown {
        places.push(format!("{} more", grouped(figures.damaged - shown)));
    }
    places
}

fn with_places(text: String, places: &[String]) -> String {
    if places.is_empty() {
        text
    } else {
        format!("{text}; events {}", places.join(", "))
    }
}

/// Describes the events that had not arrived at the end of the drain.
fn under_way(ledger: &LedgerRecord) -> Option<String> {
    let missing = ledger.under_way.filter(|missing| *missing > 0)?;
    let lost: u64 = ledger
        .generators
        .iter()
        .map(|generator| generator.lost.least)
        .sum();
    let came = missing.saturating_sub(lost);
    let ended = if ledger.quiet {
        "sinks no longer received anything"
    } else {
        "sinks still received events, so missing events may not be lost"
    };
    (came > 0 || !ledger.quiet).then(|| {
        format!(
            "{} when the drain ended ({ended}); {} of them arrived while the target stopped",
            grouped(missing),
            grouped(came)
        )
    })
}

fn counted(bounds: CountBounds) -> String {
    match bounds.exactly() {
        Some(count) => grouped(count),
        None => format!("{} to {}", grouped(bounds.least), grouped(bounds.most)),
    }
}
