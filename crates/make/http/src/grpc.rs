//! gRPC messages in the bodies of HTTP/2: a byte that is 1 for a compressed message, its
//! length, and the message. Compression and protobuf are not read here. The outcome of a call
//! is in the trailers (or, where there is no body, in the head): see [`status`].

use crate::decimal::parse_decimal;
use crate::h2::Fields;

/// Size of the head before each message, in bytes.
pub const MESSAGE_HEAD_BYTES: usize = 5;

/// Returns the head of a message of `message_bytes`.
#[must_use]
pub const fn message_head(message_bytes: u32, is_compressed: bool) -> [u8; MESSAGE_HEAD_BYTES] {
    let [a, b, c, d] = message_bytes.to_be_bytes();
    [is_compressed as u8, a, b, c, d]
}

/// Appends `message` behind its head.
///
/// # Errors
/// [`GrpcMessageError::TooLarge`] for 2³² bytes and more.
pub fn write_message(
    message: &[u8],
    is_compressed: bool,
    out: &mut Vec<u8>,
) -> Result<(), GrpcMessageError> {
    let bytes = u32::try_from(message.len()).map_err(|_| GrpcMessageError::TooLarge {
        bytes: u32::MAX,
        bytes_max: u32::MAX,
    })?;
    out.extend_from_slice(&message_head(bytes, is_compressed));
    out.extend_from_slice(message);
    Ok(())
}

/// The outcome of a call, 0 being success, where `fields` say it.
#[must_use]
pub fn status(fields: Fields<'_>) -> Option<u32> {
    let value = parse_decimal(fields.value("grpc-status")?)?;
    u32::try_from(value).ok()
}

/// The status of HTTP that says about the same as `number` does of a call, as
/// gateways to HTTP translate it; 500 for what they do not know.
#[must_use]
pub const fn http_status(number: u32) -> u16 {
    match number {
        0 => 200,
        // The client's doing: cancelled, invalid argument, failed precondition, out of
        // range; and what it may not or cannot have.
        1 => 499,
        3 | 9 | 11 => 400,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        16 => 401,
        8 => 429,
        12 => 501,
        14 => 503,
        4 => 504,
        _ => 500,
    }
}

/// Returns the value of `grpc-timeout` for a deadline in `nanoseconds`: at most eight digits
/// and a unit, never shorter than given.
#[must_use]
pub fn timeout_value(nanoseconds: u64) -> String {
    const UNITS: [(u64, char); 6] = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
        (3_600_000_000_000, 'H'),
    ];
    let fits = |(length, _): &&(u64, char)| nanoseconds.div_ceil(*length) < 100_000_000;
    // 2⁶⁴ ns are five million hours.
    let (length, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[5]);
    format!("{}{unit}", nanoseconds.div_ceil(*length))
}

/// A whole message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcMessage<'a> {
    /// True if it is compressed, as `grpc-encoding` says.
    pub is_compressed: bool,
    /// As it was sent.
    pub bytes: &'a [u8],
}

/// A body that holds no messages. A reader that has failed stays failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GrpcMessageError {
    /// The first byte is neither 0 nor 1.
    #[error("a message begins with {flag}, neither 0 nor 1")]
    Flag {
        /// The first byte.
        flag: u8,
    },
    /// Longer than was allowed.
    #[error("a message of {bytes} bytes exceeds the {bytes_max} allowed")]
    TooLarge {
        /// The message.
        bytes: u32,
        /// The limit.
        bytes_max: u32,
    },
    /// The body ended within a message.
    #[error("the body ended within a message")]
    Truncated,
}

/// Reads the messages of one body, cut anywhere. Holds at most one message; those
/// that arrive whole are not copied.
#[derive(Debug)]
pub struct GrpcMessageReader {
    /// The received part of a message and its head, or the message handed out last.
    partial: Vec<u8>,
    is_handed_out: bool,
    message_bytes_max: u32,
    failure: Option<GrpcMessageError>,
}

impl GrpcMessageReader {
    /// Takes messages of up to `message_bytes_max`.
    #[must_use]
    pub const fn new(message_bytes_max: u32) -> Self {
        Self {
            partial: Vec::new(),
            is_handed_out: false,
            message_bytes_max,
            failure: None,
        }
    }

    /// Returns the number of bytes taken from `input`, and the message that they completed.
    /// Without a message all of `input` was taken.
    ///
    /// # Errors
    /// [`GrpcMessageError`] where it is no message, and ever after.
    pub fn advance<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<GrpcMessage<'a>>), GrpcMessageError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        if std::mem::take(&mut self.is_handed_out) {
            self.partial.clear();
        }
        let taken = match self.take(input) {
            Ok(taken) => taken,
            Err(error) => {
                self.failure = Some(error);
                return Err(error);
            }
        };
        let Some(taken) = taken else {
            return Ok((input.len(), None));
        };
        let whole = if self.partial.is_empty() {
            &input[..taken]
        } else {
            self.is_handed_out = true;
            &self.partial
        };
        let message = GrpcMessage {
            is_compressed: whole[0] == 1,
            bytes: &whole[MESSAGE_HEAD_BYTES..],
        };
        Ok((taken, Some(message)))
    }

    /// The bytes of memory that a message which is not whole yet occupies.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// The body has ended; another may begin.
    ///
    /// # Errors
    /// [`GrpcMessageError::Truncated`] within a message.
    pub fn finish(&mut self) -> Result<(), GrpcMessageError> {
        let is_idle = self.partial.is_empty() || self.is_handed_out;
        self.partial.clear();
        self.is_handed_out = false;
        match self.failure.take() {
            Some(error) => Err(error),
            None if is_idle => Ok(()),
            None => Err(GrpcMessageError::Truncated),
        }
    }

    /// Returns the number of bytes of `input` that complete a message; keeps an incomplete
    /// one.
    fn take(&mut self, input: &[u8]) -> Result<Option<usize>, GrpcMessageError> {
        if self.partial.is_empty() {
            if let Some(length) = self.whole_bytes(input)?
                && length <= input.len()
            {
                return Ok(Some(length));
            }
            self.partial.extend_from_slice(input);
            return Ok(None);
        }
        let mut taken = 0;
        if self.partial.len() < MESSAGE_HEAD_BYTES {
            taken = input.len().min(MESSAGE_HEAD_BYTES - self.partial.len());
            self.partial.extend_from_slice(&input[..taken]);
        }
        let Some(length) = self.whole_bytes(&self.partial)? else {
            return Ok(None);
        };
        let more = (input.len() - taken).min(length - self.partial.len());
        self.partial.extend_from_slice(&input[taken..taken + more]);
        Ok((self.partial.len() == length).then_some(taken + more))
    }

    /// The length of the message that `bytes` begin, with its head.
    fn whole_bytes(&self, bytes: &[u8]) -> Result<Option<usize>, GrpcMessageError> {
        let Some((flag, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        if *flag > 1 {
            return Err(GrpcMessageError::Flag { flag: *flag });
        }
        let Some(length) = rest.first_chunk() else {
            return Ok(None);
        };
        let (bytes, bytes_max) = (u32::from_be_bytes(*length), self.message_bytes_max);
        if bytes > bytes_max {
            return Err(GrpcMessageError::TooLarge { bytes, bytes_max });
        }
        Ok(Some(MESSAGE_HEAD_BYTES + bytes as usize))
    }
}

/// Counts the messages of one body, cut anywhere, and keeps none of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageCounter {
    head: [u8; MESSAGE_HEAD_BYTES],
    head_bytes: usize,
    /// Bytes missing of the message whose head is complete.
    left: u32,
    messages: u64,
    compressed: u64,
    bytes: u64,
}

impl MessageCounter {
    /// Takes the next part of the body.
    ///
    /// # Errors
    /// [`GrpcMessageError::Flag`] where no message begins.
    pub fn take(&mut self, mut input: &[u8]) -> Result<(), GrpcMessageError> {
        while !input.is_empty() {
            if self.head_bytes < MESSAGE_HEAD_BYTES {
                let count = input.len().min(MESSAGE_HEAD_BYTES - self.head_bytes);
                let (now, rest) = input.split_at(count);
                self.head[self.head_bytes..self.head_bytes + count].copy_from_slice(now);
                self.head_bytes += count;
                input = rest;
                if self.head[0] > 1 {
                    return Err(GrpcMessageError::Flag { flag: self.head[0] });
                }
                if self.head_bytes < MESSAGE_HEAD_BYTES {
                    return Ok(());
                }
                let [_, a, b, c, d] = self.head;
                self.left = u32::from_be_bytes([a, b, c, d]);
            }
            let now = u32::try_from(input.len()).map_or(self.left, |all| all.min(self.left));
            self.left -= now;
            self.bytes += u64::from(now);
            input = &input[now as usize..];
            if self.left == 0 {
                self.messages += 1;
                self.compressed += u64::from(self.head[0]);
                self.head_bytes = 0;
            }
        }
        Ok(())
    }

    /// Number of complete messages.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Number of compressed messages.
    #[must_use]
    pub const fn compressed(&self) -> u64 {
        self.compressed
    }

    /// Number of bytes of all messages, without their heads.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true within a message.
    #[must_use]
    pub const fn is_within(&self) -> bool {
        self.head_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES_MAX: u32 = 300;

    /// Messages and whether they are compressed.
    #[derive(Debug, PartialEq)]
    struct Read {
        messages: Vec<(bool, Vec<u8>)>,
        ended: Result<(), GrpcMessageError>,
    }

    fn read(body: &[u8], cuts: &[usize]) -> Read {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        cuts.push(body.len());
        cuts.sort_unstable();
        let (mut reader, mut seen, mut start) = (GrpcMessageReader::new(BYTES_MAX), Vec::new(), 0);
        for end in cuts {
            loop {
                match reader.advance(&body[start..end]) {
                    Ok((taken, Some(message))) => {
                        start += taken;
                        seen.push((message.is_compressed, message.bytes.to_vec()));
                    }
                    Ok((taken, None)) => {
                        assert_eq!(taken, end - start, "input was left without a message");
                        start = end;
                        break;
                    }
                    Err(error) => {
                        assert_eq!(reader.advance(b"x"), Err(error), "a failure was forgotten");
                        return Read {
                            messages: seen,
                            ended: Err(error),
                        };
                    }
                }
            }
        }
        Read {
            messages: seen,
            ended: reader.finish(),
        }
    }

    proptest! {
        #[test]
        fn for_all_messages_and_cuts_what_is_written_is_read(
            messages in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
            missing in 0_usize..4,
        ) {
            let mut body = Vec::new();
            for (is_compressed, message) in &messages {
                write_message(message, *is_compressed, &mut body).unwrap();
            }
            let whole = read(&body, &cuts);
            prop_assert_eq!(&whole.messages, &messages);
            prop_assert_eq!(whole.ended, Ok(()));
            let cut = body.len().saturating_sub(missing);
            let part = read(&body[..cut], &cuts);
            prop_assert_eq!(part.ended.is_ok(), cut == body.len());
            prop_assert!(messages.starts_with(&part.messages));
        }

        #[test]
        fn for_all_bytes_and_cuts_the_messages_are_the_same(
            body in prop::collection::vec(prop_oneof![0_u8..3, any::<u8>()], 0..200),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            prop_assert_eq!(read(&body, &cuts), read(&body, &[]));
        }

        #[test]
        fn for_all_bytes_and_cuts_what_is_counted_is_what_is_read(
            body in prop::collection::vec(prop_oneof![0_u8..3, any::<u8>()], 0..200),
            pieces in 1_usize..20,
        ) {
            let mut counter = MessageCounter::default();
            let counted = body.chunks(pieces).try_for_each(|piece| counter.take(piece));
            let mut reader = GrpcMessageReader::new(u32::MAX);
            let (mut rest, mut messages, mut compressed) = (body.as_slice(), 0, 0);
            let read = loop {
                match reader.advance(rest) {
                    Err(error) => break Err(error),
                    Ok((_, None)) => break Ok(()),
                    Ok((taken, Some(message))) => {
                        messages += 1;
                        compressed += u64::from(message.is_compressed);
                        rest = &rest[taken..];
                    }
                }
            };
            prop_assert_eq!(counted, read);
            prop_assert_eq!((counter.messages(), counter.compressed()), (messages, compressed));
            if read.is_ok() {
                prop_assert_eq!(counter.is_within(), reader.finish().is_err());
            }
        }

        #[test]
        fn for_all_deadlines_the_encoded_timeout_is_not_shorter_and_fits(nanoseconds: u64) {
            let text = timeout_value(nanoseconds);
            let (digits, unit) = text.split_at(text.len() - 1);
            let length: u128 = match unit {
                "n" => 1,
                "u" => 1_000,
                "m" => 1_000_000,
                "S" => 1_000_000_000,
                "M" => 60_000_000_000,
                _ => 3_600_000_000_000,
            };
            let encoded = digits.parse::<u128>().unwrap() * length;
            prop_assert!(digits.len() <= 8 && encoded >= u128::from(nanoseconds), "{text}");
            prop_assert!(encoded - u128::from(nanoseconds) < length, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(
            read(&[2], &[]).ended,
            Err(GrpcMessageError::Flag { flag: 2 })
        );
        let (bytes, bytes_max) = (BYTES_MAX + 1, BYTES_MAX);
        let head = message_head(bytes, true);
        assert_eq!(
            read(&head, &[2]).ended,
            Err(GrpcMessageError::TooLarge { bytes, bytes_max })
        );
        assert_eq!(read(&[0, 0], &[]).ended, Err(GrpcMessageError::Truncated));
    }
}
