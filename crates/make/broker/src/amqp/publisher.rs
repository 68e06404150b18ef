//! Messages to one exchange.

use stillwell_units::{ShortText, as_usize};

use super::{BASIC, BODY, CHANNEL, HEADER, begin_frame, end_frame, method, put_short};

/// The bit of the `message-id` in a message's flags.
pub(super) const MESSAGE_ID_BIT: u16 = 7;
const DELIVERY_MODE_BIT: u16 = 12;
const PERSISTENT: u8 = 2;

/// A frame's head and end.
const AROUND_BYTES: usize = 8;

/// Appends messages to one exchange, with one routing key.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// The method's frame, which is the same for all.
    method: Vec<u8>,
    is_persistent: bool,
    is_numbered: bool,
    /// Largest payload of a frame.
    part_bytes: usize,
}

impl Publisher {
    /// Returns a publisher to `exchange` with `routing_key`, in frames of at most `frame_max` bytes. With
    /// `mandatory`, the broker returns messages that reach no queue, and messages carry numbers that identify
    /// them. `persistent` messages survive a restart of the broker.
    #[must_use]
    pub fn new(
        exchange: &ShortText,
        routing_key: &ShortText,
        (mandatory, persistent): (bool, bool),
        frame_max: u32,
    ) -> Self {
        let mut frame = Vec::new();
        method(CHANNEL, BASIC, 40, &mut frame, |out| {
            out.extend_from_slice(&[0, 0]);
            put_short(exchange, out);
            put_short(routing_key, out);
            out.push(u8::from(mandatory));
        });
        let frame_max = as_usize(frame_max);
        Self {
            method: frame,
            is_persistent: persistent,
            is_numbered: mandatory,
            part_bytes: frame_max.saturating_sub(AROUND_BYTES).max(1),
        }
    }

    /// Appends a message. It carries `number` if the publisher numbers its messages.
    pub fn write(&self, message: &[u8], number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.method);
        let begin = begin_frame(HEADER, CHANNEL, out);
        out.extend_from_slice(&BASIC.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(message.len() as u64).to_be_bytes());
        let flags = u16::from(self.is_persistent) << DELIVERY_MODE_BIT
            | u16::from(self.is_numbered) << MESSAGE_ID_BIT;
        out.extend_from_slice(&flags.to_be_bytes());
        if self.is_persistent {
            out.push(PERSISTENT);
        }
        if self.is_numbered {
            let length_at = out.len();
            out.push(0);
            crate::bytes::write_decimal(number, out);
            out[length_at] = u8::try_from(out.len() - length_at - 1).unwrap_or_default();
        }
        end_frame(begin, out);
        // An empty message has no body frame.
        for part in message.chunks(self.part_bytes) {
            let begin = begin_frame(BODY, CHANNEL, out);
            out.extend_from_slice(part);
            end_frame(begin, out);
        }
    }
}
