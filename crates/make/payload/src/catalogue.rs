//! Every format that can be built, one line each.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::TraceEncoding;

use crate::contract::{Frame, Recipe, Writer};
use crate::format::{
    apache_common, ascii, cef, datadog_log, dogstatsd, elasticsearch, fluent, gelf, influx, json,
    loki, netflow, otlp, remote_write, splunk_hec, syslog3164, syslog5424, template, trace_agent,
};

/// A format whose events come from a seed.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Name in plans.
    pub(crate) name: &'static str,
    /// The bytes around and between events.
    pub(crate) frame: Frame,
    /// Bytes into which an event of this format always fits, without slot and
    /// frame: the least that `writer` takes as its maximum.
    pub(crate) event_floor: fn(&PayloadFormat) -> usize,
    /// Makes the writer.
    pub(crate) writer: fn(&Recipe<'_>) -> Box<dyn Writer>,
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    Entry { name: "ascii",         frame: Frame::Lines,     event_floor: |_| ascii::FLOOR,         writer: ascii::writer },
    Entry { name: "json",          frame: Frame::Lines,     event_floor: |_| json::FLOOR,          writer: json::writer },
    Entry { name: "syslog5424",    frame: Frame::Lines,     event_floor: |_| syslog5424::FLOOR,    writer: syslog5424::writer },
    Entry { name: "apache_common", frame: Frame::Lines,     event_floor: |_| apache_common::FLOOR, writer: apache_common::writer },
    Entry { name: "datadog_log",   frame: Frame::JsonArray, event_floor: |_| datadog_log::FLOOR,   writer: datadog_log::writer },
    Entry { name: "syslog3164",    frame: Frame::Lines,     event_floor: |_| syslog3164::FLOOR,    writer: syslog3164::writer },
    Entry { name: "splunk_hec",    frame: Frame::Lines,     event_floor: |_| splunk_hec::FLOOR,    writer: splunk_hec::writer },
    Entry { name: "loki",          frame: Frame::Loki,      event_floor: |_| loki::FLOOR,          writer: loki::writer },
    Entry { name: "elasticsearch", frame: Frame::Lines,     event_floor: elasticsearch::floor,     writer: elasticsearch::writer },
    Entry { name: "influx",        frame: Frame::Lines,     event_floor: |_| influx::FLOOR,        writer: influx::writer },
    Entry { name: "gelf",          frame: Frame::Lines,     event_floor: |_| gelf::FLOOR,          writer: gelf::writer },
    Entry { name: "cef",           frame: Frame::Lines,     event_floor: |_| cef::FLOOR,           writer: cef::writer },
    Entry { name: "templated_json",frame: Frame::Lines,     event_floor: template::floor,          writer: template::writer },
    Entry { name: "template",      frame: Frame::Lines,     event_floor: template::floor,          writer: template::writer },
    Entry { name: "dogstatsd",     frame: Frame::Lines,     event_floor: dogstatsd::floor,         writer: dogstatsd::writer },
    Entry { name: "fluent",        frame: Frame::Bare,      event_floor: |_| fluent::FLOOR,        writer: fluent::writer },
    Entry { name: "netflow",       frame: Frame::Bare,      event_floor: netflow::floor,           writer: netflow::writer },
    Entry { name: "remote_write",  frame: Frame::Bare,      event_floor: remote_write::floor,      writer: remote_write::writer },
    Entry { name: "trace_agent",   frame: Frame::MsgpackArray, event_floor: trace_agent::floor,    writer: trace_agent::writer },
    Entry { name: "opentelemetry_logs",    frame: Frame::Bare, event_floor: otlp::logs::floor,    writer: otlp::logs::writer },
    Entry { name: "opentelemetry_metrics", frame: Frame::Bare, event_floor: otlp::metrics::floor, writer: otlp::metrics::writer },
    Entry { name: "opentelemetry_traces",  frame: Frame::Bare, event_floor: otlp::traces::floor,  writer: otlp::traces::writer },
];

/// Formats whose events have no text that a stamp could travel in.
const WITHOUT_SLOTS: &[&str] = &[
    "dogstatsd",
    "netflow",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "remote_write",
    "trace_agent",
];

impl Entry {
    /// Returns the bytes around and between events of `format`.
    pub(crate) const fn frame(&self, format: &PayloadFormat) -> Frame {
        match format {
            PayloadFormat::Dogstatsd(plan) if plan.length_prefix_framed => Frame::LengthPrefixed,
            PayloadFormat::TraceAgent(plan) if matches!(plan.encoding, TraceEncoding::Json) => {
                Frame::JsonArray
            }
            _ => self.frame,
        }
    }

    /// Returns true if events may have a slot for a stamp.
    pub(crate) fn takes_slots(&self) -> bool {
        !WITHOUT_SLOTS.contains(&self.name)
    }
}

/// The format called `name`; none for the lines of a file, which come from no
/// seed.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}
