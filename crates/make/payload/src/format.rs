//! One file for each format: a writer of single events.

pub(crate) mod apache_common;
pub(crate) mod ascii;
pub(crate) mod cef;
pub(crate) mod cut;
pub(crate) mod datadog_log;
pub(crate) mod dogstatsd;
pub(crate) mod elasticsearch;
pub(crate) mod fluent;
pub(crate) mod gelf;
pub(crate) mod influx;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod loki;
pub(crate) mod netflow;
pub(crate) mod otlp;
pub(crate) mod remote_write;
pub(crate) mod replay;
pub(crate) mod splunk_hec;
pub(crate) mod syslog3164;
pub(crate) mod syslog5424;
pub(crate) mod template;
pub(crate) mod trace_agent;
