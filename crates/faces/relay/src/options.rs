//! The options of a relay.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

use stillwell_units::{ByteRate, ByteSize, Nanos, ParseError, parse_count};

use crate::disk::SYNC_EVERY_MAX;
use crate::endpoint::Endpoint;
use crate::fault::FaultOptions;
use crate::work::WorkAmount;

/// The options of a relay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RelayOptions {
    /// The input.
    pub input: Endpoint,
    /// The output.
    pub output: Endpoint,
    /// The format of events.
    pub format: Format,
    /// Parses each event: lines as UTF-8, JSON as one value. A failure counts as an error,
    /// and the event is passed on.
    pub parse: bool,
    /// Rewrites of each event. JSON events are parsed for that, even without `parse`, and
    /// come out with their fields in alphabetical order.
    pub rewrite: Vec<Rewrite>,
    /// Events that the buffer holds at most, those duplicated on purpose not counted;
    /// 0 counts as 1.
    pub buffer_events: usize,
    /// The buffer on disk before the one in memory, if there is one.
    pub disk: Option<DiskOptions>,
    /// The address of `/metrics`, if there is one.
    pub metrics: Option<SocketAddr>,
    /// The CPU time used for each event.
    pub work_per_event: WorkAmount,
    /// The memory taken for each event.
    pub hoard_per_event: ByteSize,
    /// Keeps hoarded memory to the end; else it is kept for the last 100,000 events.
    pub leak: bool,
    /// When it stops processing for a while.
    pub stall: Option<Stall>,
    /// The most that it takes in, over all connections together, ends of lines
    /// included; datagrams and what is posted whole wait for their turn as well.
    pub limit: Option<ByteRate>,
    /// Mistakes made on purpose.
    pub faults: FaultOptions,
}

impl RelayOptions {
    /// Passes lines on from `input` to `output` as they are, with a buffer of
    /// 4096 events.
    #[must_use]
    pub const fn new(input: Endpoint, output: Endpoint) -> Self {
        Self {
            input,
            output,
            format: Format::Lines,
            parse: false,
            rewrite: Vec::new(),
            buffer_events: 4096,
            disk: None,
            metrics: None,
            work_per_event: WorkAmount::Rounds(0),
            hoard_per_event: ByteSize::new(0),
            leak: false,
            stall: None,
            limit: None,
            faults: FaultOptions {
                drop: None,
                flip: None,
                swap: None,
                double: None,
                refuse: None,
            },
        }
    }
}

/// A buffer on disk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DiskOptions {
    /// Its folder, which is made where it is not there. No two relays may share one.
    pub folder: PathBuf,
    /// The most that it takes; at least 16 MiB.
    pub bytes_max: ByteSize,
    /// When it is synced.
    pub sync: SyncWhen,
}

/// When written events are synced. A client that posts events gets its answer after that.
/// Typed as `never`, `100` or `10ms`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SyncWhen {
    /// Never: events survive the relay, not the host.
    Never,
    /// Once so many events wait, and a tenth of a second after the first of them.
    Events(NonZeroU64),
    /// This time after the first event that waits.
    Every(Nanos),
}

impl FromStr for SyncWhen {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text == "never" {
            return Ok(Self::Never);
        }
        if let Some(events) = parse_count(text).and_then(NonZeroU64::new) {
            return Ok(Self::Events(events));
        }
        match text.parse::<Nanos>() {
            Ok(length) if (Nanos::new(1)..=SYNC_EVERY_MAX).contains(&length) => {
                Ok(Self::Every(length))
            }
            _ => Err(ParseError::Shape {
                input: text.to_owned(),
                kind: "time to sync",
                accepted: "`never`, a number of events such as `100`, or a time up to a minute such as `10ms`",
            }),
        }
    }
}

/// The format of events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Format {
    /// A line that holds a JSON value.
    Json,
    /// A line of text.
    #[default]
    Lines,
    /// A whole request over HTTP, or the message of a gRPC call: it goes on as one `POST` of
    /// the same body, with the stamp of its header if there was one. It is neither parsed nor
    /// rewritten.
    Requests,
}

impl FromStr for Format {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "json" => Ok(Self::Json),
            "lines" => Ok(Self::Lines),
            "requests" => Ok(Self::Requests),
            _ => Err(ParseError::Shape {
                input: text.to_owned(),
                kind: "format",
                accepted: "`lines`, `json` or `requests`",
            }),
        }
    }
}

/// A field that every event gets: a JSON object as a string, in place of what it
/// had under that name; a line as ` field=value` at its end. Typed as
/// `field=value`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rewrite {
    /// The field's name.
    pub field: String,
    /// Its value.
    pub value: String,
}

impl FromStr for Rewrite {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once('=') {
            Some((field, value)) if !field.is_empty() && !text.contains('\n') => Ok(Self {
                field: field.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(ParseError::Shape {
                input: text.to_owned(),
                kind: "rewrite",
                accepted: "a field and its value, such as `env=prod`",
            }),
        }
    }
}

/// A pause that comes back. Typed as `50ms@10s`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stall {
    length: Nanos,
    every: Nanos,
}

impl Stall {
    /// Stops processing for `length` at the end of `every` period.
    ///
    /// # Errors
    /// [`ParseError::Range`] where that would leave no time in between.
    pub fn try_new(length: Nanos, every: Nanos) -> Result<Self, ParseError> {
        if length < every {
            return Ok(Self { length, every });
        }
        Err(ParseError::Range {
            input: format!("{length}@{every}"),
            kind: "stall",
            bounds: "it must be shorter than the period after the `@`",
        })
    }

    /// The length of a stall.
    #[must_use]
    pub const fn length(self) -> Nanos {
        self.length
    }

    /// The time from one beginning to the next.
    #[must_use]
    pub const fn every(self) -> Nanos {
        self.every
    }
}

impl FromStr for Stall {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (length, every) = text.split_once('@').ok_or_else(|| ParseError::Shape {
            input: text.to_owned(),
            kind: "stall",
            accepted: "a length and a period, such as `50ms@10s`",
        })?;
        Self::try_new(length.parse()?, every.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_sync_read_as_written() {
        let events = NonZeroU64::new(100).map(SyncWhen::Events);
        assert_eq!("100".parse().ok(), events);
        assert_eq!("0.1k".parse().ok(), events);
        assert_eq!("never".parse(), Ok(SyncWhen::Never));
        assert_eq!("10ms".parse(), Ok(SyncWhen::Every(Nanos::from_millis(10))));
        for text in ["", "0", "-1", "always", "0ms", "2h", "1.5"] {
            assert!(text.parse::<SyncWhen>().is_err(), "{text}");
        }
    }

    #[test]
    fn stalls_read_as_written() {
        let stall: Stall = "50ms@10s".parse().unwrap();
        assert_eq!(stall.length(), Nanos::from_millis(50));
        assert_eq!(stall.every(), Nanos::from_secs(10));
        for text in ["50ms", "10s@50ms", "1s@1s", "50@10s", "@"] {
            assert!(text.parse::<Stall>().is_err(), "{text}");
        }
    }

    #[test]
    fn rewrites_and_formats_read_as_written() {
        let rewrite: Rewrite = "a=b=c".parse().unwrap();
        assert_eq!(
            (rewrite.field.as_str(), rewrite.value.as_str()),
            ("a", "b=c")
        );
        assert!("=b".parse::<Rewrite>().is_err());
        assert_eq!("json".parse(), Ok(Format::Json));
        assert_eq!("requests".parse(), Ok(Format::Requests));
        assert!("xml".parse::<Format>().is_err());
    }
}
