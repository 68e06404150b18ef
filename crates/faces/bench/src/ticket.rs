//! The token that goes through the pipeline with an event.

use stillwell_units::Moment;

/// A token that goes through the pipeline with an event and identifies it at the sink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket {
    /// The number of the event, from 0.
    pub sequence: u64,
    /// When the schedule said to send it, on the clock of this process.
    pub intended: Moment,
    /// When it was sent.
    pub sent: Moment,
}

impl Ticket {
    /// Size of a ticket as bytes.
    pub const BYTES: usize = 24;

    /// The ticket as bytes, for pipelines that carry nothing else: number, intended
    /// and sent time, the lowest byte of each first.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = [self.sequence, self.intended.as_u64(), self.sent.as_u64()];
        for (room, part) in bytes.chunks_exact_mut(8).zip(parts) {
            room.copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    /// The ticket that such bytes hold.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut parts = [0; 3];
        for (part, bytes_of_part) in parts.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes_of_part);
            *part = u64::from_le_bytes(word);
        }
        let [sequence, intended, sent] = parts;
        Self {
            sequence,
            intended: Moment::new(intended),
            sent: Moment::new(sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all tickets: their bytes give them back.
        #[test]
        fn bytes_give_the_ticket_back(sequence: u64, intended: u64, sent: u64) {
            let ticket = Ticket {
                sequence,
                intended: Moment::new(intended),
                sent: Moment::new(sent),
            };
            prop_assert_eq!(Ticket::from_bytes(&ticket.to_bytes()), ticket);
        }
    }
}
