//! Datadog's stateful logs: batches over a gRPC stream, each with its status in
//! return.

use stillwell_http::protobuf::{MessageWriter, Value, fields};

use super::decode::{Coding, decode};
use super::request::DECODED_BYTES_MAX;
use super::service::{Answer, INVALID_ARGUMENT, Reply, Request, Service, UNIMPLEMENTED};

const METHOD: &str = "/datadog.intake.stateful.StatefulLogsService/LogsStream";

/// The first bytes of compressed data.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The field of a datum that is a log; the others change what logs refer to.
const LOG: u64 = 5;

/// Takes everything.
#[derive(Debug)]
pub(super) struct StatefulLogs;

impl Service for StatefulLogs {
    fn answer(&self, _request: &Request<'_>) -> Answer {
        Answer::status(415)
    }

    fn message(&self, method: &str, message: &[u8]) -> Result<Reply, u32> {
        if method != METHOD {
            return Err(UNIMPLEMENTED);
        }
        let (batch, events) = read(message).ok_or(INVALID_ARGUMENT)?;
        let mut status = MessageWriter::default();
        status.number(1, batch);
        status.number(2, 1);
        Ok(Reply {
            message: status.into_bytes().into(),
            events,
        })
    }
}

/// The number of a batch, and how many logs it holds.
fn read(message: &[u8]) -> Option<(u64, u64)> {
    let (mut batch, mut data) = (0, Vec::new());
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Varint(number)) => batch = number,
            (2, Value::Bytes(bytes)) => data.push(bytes),
            _ => {}
        }
        Some(())
    })?;
    let mut logs = 0;
    // Earlier versions have one datum in each such field, later ones a sequence.
    for bytes in data {
        let is_packed = bytes.starts_with(&ZSTD_MAGIC);
        let unpacked = is_packed
            .then(|| decode(bytes, &[Coding::Zstd], DECODED_BYTES_MAX))
            .flatten();
        let bytes = unpacked.as_deref().unwrap_or(bytes);
        logs += match logs_of_sequence(bytes) {
            Some(logs) => logs,
            None => u64::from(is_log(bytes)?),
        };
    }
    Some((batch, logs))
}

fn logs_of_sequence(bytes: &[u8]) -> Option<u64> {
    let mut logs = 0;
    fields(bytes, |number, value| {
        if number != 1 {
            return None;
        }
        logs += u64::from(is_log(value.bytes()?)?);
        Some(())
    })?;
    Some(logs)
}

/// Returns true if a datum is a log; `None` where it is no datum.
fn is_log(datum: &[u8]) -> Option<bool> {
    let mut kind = None;
    fields(datum, |number, value| {
        value.bytes()?;
        (kind.replace(number).is_none() && number <= LOG).then_some(())
    })?;
    Some(kind? == LOG)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::message;
    use super::*;

    fn batch(data: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0x08, 0xac, 0x02];
        let data: Vec<(u32, &[u8])> = data.iter().map(|bytes| (2, *bytes)).collect();
        bytes.extend(message(&data));
        bytes
    }

    #[test]
    fn logs_are_counted_in_every_shape_and_each_batch_has_its_status() {
        let log = message(&[(5, b"\x08\x01")]);
        let pattern = message(&[(1, b"\x08\x07\x12\x01x")]);
        let sequence = message(&[(1, &pattern), (1, &log), (1, &log)]);
        let packed = zstd::encode_all(sequence.as_slice(), 1).unwrap();
        let shapes: [(&[&[u8]], u64); 4] = [
            (&[&sequence], 2),
            (&[&packed], 2),
            (&[&pattern, &log, &log, &log], 3),
            (&[], 0),
        ];
        for (data, logs) in shapes {
            let reply = StatefulLogs.message(METHOD, &batch(data)).unwrap();
            assert_eq!(reply.events, logs, "{data:?}");
            assert_eq!(*reply.message, [0x08, 0xac, 0x02, 0x10, 1]);
        }
        assert_eq!(StatefulLogs.message("/else", b""), Err(UNIMPLEMENTED));
        assert_eq!(StatefulLogs.message(METHOD, b"\xff"), Err(INVALID_ARGUMENT));
    }
}
