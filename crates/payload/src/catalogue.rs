//! Every format that can be built, one line each.

use stillwell_units::Seed;

use crate::SlotUse;
use crate::format::{Frame, Writer, apache_common, ascii, datadog_log, json, syslog5424};

/// A format whose events come from a seed.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name under which plans ask for it.
    pub(crate) name: &'static str,
    /// What stands around and between events.
    pub(crate) frame: Frame,
    /// Bytes into which an event of this format always fits, without slot and
    /// frame: the least that `writer` takes as its maximum.
    pub(crate) event_floor: usize,
    /// Makes the writer of events of at most so many bytes.
    pub(crate) writer: fn(Seed, usize, SlotUse) -> Box<dyn Writer>,
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    Entry { name: "ascii",         frame: Frame::Lines,     event_floor: ascii::FLOOR,         writer: ascii::writer },
    Entry { name: "json",          frame: Frame::Lines,     event_floor: json::FLOOR,          writer: json::writer },
    Entry { name: "syslog5424",    frame: Frame::Lines,     event_floor: syslog5424::FLOOR,    writer: syslog5424::writer },
    Entry { name: "apache_common", frame: Frame::Lines,     event_floor: apache_common::FLOOR, writer: apache_common::writer },
    Entry { name: "datadog_log",   frame: Frame::JsonArray, event_floor: datadog_log::FLOOR,   writer: datadog_log::writer },
];

/// The format called `name`; none for the lines of a file, which come from no
/// seed.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}
