//! What became of stamped events.

use stillwell_plan::StampForm;
use stillwell_units::human::count as grouped;
use stillwell_verdict::{CountBounds, LedgerFigures, LedgerRange, LedgerRecord, PrefixCounts};

use crate::words;

/// Ranges and events of which the numbers are shown.
const SHOWN: usize = 5;

/// Heads and what stands behind them.
pub(crate) fn rows(ledger: &LedgerRecord) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let many = ledger.generators.len() > 1;
    for own in &ledger.generators {
        let of = if many {
            format!(" of {}", own.id)
        } else {
            String::new()
        };
        let mut row = |head: &str, told: String| rows.push((format!("{head}{of}"), told));
        row("stamped", stamped(own));
        row("lost", with_places(counted(own.lost), &lost_places(own)));
        let duplicated = match own.expected.copies {
            1 => counted(own.duplicated),
            copies => format!("{}, beyond {copies} copies each", counted(own.duplicated)),
        };
        row("duplicated", duplicated);
        if own.expected.copies > 1 {
            row("incomplete", counted(own.incomplete));
        }
        row("reordered", reordered(own));
        if let Some(after) = own.expected.late_after {
            let late = grouped(own.late);
            row(
                "late",
                format!("{late} after more than {}", words::nanos(after)),
            );
        }
        row("damaged", with_places(damaged(own), &damaged_places(own)));
        if own.unsent.most > 0 {
            row("never sent", counted(own.unsent));
        }
        if own.bounded_windows > 0 {
            let windows = grouped(own.bounded_windows);
            let told = format!("{windows} windows of 65,536 events, for want of memory");
            row("only bounded", told);
        }
    }
    if let Some(told) = under_way(ledger) {
        rows.push(("still on their way".to_owned(), told));
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

/// What stood before events.
pub(crate) fn prefixes(counts: PrefixCounts) -> String {
    let read = grouped(counts.read);
    match counts.implausible {
        0 => format!("{read} read"),
        other => format!("{read} read, {} that cannot be times", grouped(other)),
    }
}

fn stamped(own: &LedgerFigures) -> String {
    let of = match own.expected.every {
        1 => String::new(),
        every => format!(", one in {}", grouped(u64::from(every))),
    };
    let what = match own.expected.form {
        StampForm::Header => "requests",
        StampForm::Text | StampForm::Prefix(_) => "events",
    };
    let (sent, arrivals) = (grouped(own.sent), grouped(own.arrivals));
    format!("{sent} {what} over the whole run{of}; {arrivals} arrivals")
}

fn reordered(own: &LedgerFigures) -> String {
    match own.reordered {
        0 => "0".to_owned(),
        count if own.displacement_max == 1 => format!("{}, by one place", grouped(count)),
        count => format!(
            "{}, by {} places at most",
            grouped(count),
            grouped(own.displacement_max)
        ),
    }
}

fn damaged(own: &LedgerFigures) -> String {
    let mut told = format!(
        "{} arrivals, {} intact",
        grouped(own.damaged),
        grouped(own.intact)
    );
    for (count, what) in [
        (own.unverifiable, "unverifiable"),
        (own.undeclared, "without text to tell by"),
    ] {
        if count > 0 {
            told.push_str(&format!(", {} {what}", grouped(count)));
        }
    }
    told
}

fn lost_places(own: &LedgerFigures) -> Vec<String> {
    let several = own.streams > 1;
    let shown = own.losses.iter().take(SHOWN);
    let mut places: Vec<String> = shown.map(|range| place(range, several)).collect();
    let shown = u64::try_from(places.len()).unwrap_or(u64::MAX);
    if own.loss_ranges > shown {
        places.push(format!("{} more", grouped(own.loss_ranges - shown)));
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

fn damaged_places(own: &LedgerFigures) -> Vec<String> {
    let shown = own.damages.iter().take(SHOWN);
    let mut places: Vec<String> = shown
        .map(|event| match own.streams {
            1 => event.sequence.to_string(),
            _ => format!("{} of stream {}", event.sequence, event.stream),
        })
        .collect();
    let shown = u64::try_from(places.len()).unwrap_or(u64::MAX);
    if own.damaged > shown {
        places.push(format!("{} more", grouped(own.damaged - shown)));
    }
    places
}

fn with_places(told: String, places: &[String]) -> String {
    if places.is_empty() {
        told
    } else {
        format!("{told}; events {}", places.join(", "))
    }
}

/// What is said of events that had not arrived when the drain ended.
fn under_way(ledger: &LedgerRecord) -> Option<String> {
    let missing = ledger.under_way.filter(|missing| *missing > 0)?;
    let lost: u64 = ledger.generators.iter().map(|own| own.lost.least).sum();
    let came = missing.saturating_sub(lost);
    let ended = if ledger.quiet {
        "sinks had been quiet"
    } else {
        "sinks were still receiving: what is missing may not be lost"
    };
    (came > 0 || !ledger.quiet).then(|| {
        format!(
            "{} when the drain ended ({ended}); {} of them came while the target stopped",
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
