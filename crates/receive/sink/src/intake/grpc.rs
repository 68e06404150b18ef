//! One gRPC call on its way in: messages to replies.

use std::borrow::Cow;

use stillwell_http::grpc::{GrpcMessage, GrpcMessageReader};
use stillwell_metric::SinkShard;

use super::decode::{Coding, decode, is_snappy, unpack_snappy};
use super::memory::Reservation;
use super::request::DECODED_BYTES_MAX;
use super::service::{INVALID_ARGUMENT, RESOURCE_EXHAUSTED, Reply, UNIMPLEMENTED};
use super::site::Site;

/// The longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// A call whose messages are read.
#[derive(Debug)]
pub(super) struct CallIncoming {
    method: String,
    reader: GrpcMessageReader,
    /// `None` where messages are in a coding that is not known.
    coding: Option<MessageCoding>,
    /// The metadata entry for stamps, until its first message has come; empty where there is
    /// none.
    stamp: Vec<u8>,
    memory: Reservation,
    /// Status at the end of the call: 0 while all goes well.
    pub(super) status: u32,
}

/// Encoding of the compressed messages of a call.
#[derive(Debug)]
enum MessageCoding {
    Snappy,
    /// In the order in which they were done.
    Listed(Vec<Coding>),
}

impl MessageCoding {
    /// The coding that `header` names; `None` where it is not known.
    fn of(header: &str) -> Option<Self> {
        if is_snappy(header) {
            return Some(Self::Snappy);
        }
        Coding::all(header).map(Self::Listed)
    }

    /// `message` without the coding; `None` where it is not so encoded, or too long without.
    fn decode(&self, message: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Snappy => unpack_snappy(message, DECODED_BYTES_MAX),
            Self::Listed(codings) => decode(message, codings, DECODED_BYTES_MAX),
        }
    }
}

impl CallIncoming {
    /// A call of `method`, whose compressed messages are in the coding `encoding`, with
    /// this in its metadata for stamps.
    pub(super) fn new(method: &str, encoding: Option<&[u8]>, stamp: &[u8], site: &Site) -> Self {
        let encoding = str::from_utf8(encoding.unwrap_or_default());
        site.shard.calls.add(1);
        Self {
            method: method.to_owned(),
            reader: GrpcMessageReader::new(MESSAGE_BYTES_MAX),
            coding: encoding.ok().and_then(MessageCoding::of),
            stamp: stamp.to_vec(),
            memory: site.intake.memory.reservation(),
            status: 0,
        }
    }

    /// The next part of the call's body: counts its messages, and hands their
    /// replies to `reply`.
    pub(super) fn push(&mut self, part: &[u8], site: &Site, mut reply: impl FnMut(Reply)) {
        let shard = &site.shard;
        shard.bytes.add(part.len() as u64);
        let mut read = 0;
        while self.status == 0 {
            match self.reader.advance(&part[read..]) {
                Ok((_, None)) => {
                    if !self.memory.resize(self.reader.held_bytes()) {
                        self.reader = GrpcMessageReader::new(MESSAGE_BYTES_MAX);
                        self.fail(RESOURCE_EXHAUSTED, shard);
                    }
                    return;
                }
                Ok((taken, Some(message))) => {
                    read += taken;
                    shard.messages.add(1);
                    let coding = self.coding.as_ref();
                    let stamp = std::mem::take(&mut self.stamp);
                    match answer_message(&self.method, message, coding, (site, &stamp)) {
                        Ok(reply_of_message) => {
                            shard.events.add(reply_of_message.events);
                            reply(reply_of_message);
                        }
                        Err(status) => self.fail(status, shard),
                    }
                }
                Err(_) => self.fail(INVALID_ARGUMENT, shard),
            }
        }
    }

    /// The call's body has ended.
    pub(super) fn finish(&mut self, shard: &SinkShard) {
        if self.status == 0 && self.reader.finish().is_err() {
            self.fail(INVALID_ARGUMENT, shard);
        }
    }

    fn fail(&mut self, status: u32, shard: &SinkShard) {
        self.status = status;
        shard.malformed.add(1);
    }
}

fn answer_message(
    method: &str,
    message: GrpcMessage<'_>,
    coding: Option<&MessageCoding>,
    (site, stamp): (&Site, &[u8]),
) -> Result<Reply, u32> {
    let decoded: Cow<'_, [u8]> = if message.is_compressed {
        let coding = coding.ok_or(UNIMPLEMENTED)?;
        Cow::Owned(coding.decode(message.bytes).ok_or(INVALID_ARGUMENT)?)
    } else {
        Cow::Borrowed(message.bytes)
    };
    site.shard.decoded_bytes.add(decoded.len() as u64);
    let reply = site.service().message(method, &decoded)?;
    site.arrived(stamp, &decoded);
    Ok(reply)
}
