//! A list that is so short that it needs no room of its own.

/// Maximum number that fits beside the length and the tag of the window type, in 16 bytes.
const MOST: usize = 6;

/// A few numbers in rising order.
#[derive(Clone, Debug)]
pub(super) struct Few {
    length: u8,
    numbers: [u16; MOST],
}

impl Few {
    /// These numbers, which rise; `None` where they are too many.
    pub(super) fn new(rising: &[u16]) -> Option<Self> {
        let mut numbers = [0; MOST];
        numbers.get_mut(..rising.len())?.copy_from_slice(rising);
        let length = u8::try_from(rising.len()).ok()?;
        Some(Self { length, numbers })
    }

    pub(super) fn numbers(&self) -> &[u16] {
        self.numbers
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// Takes a number out; false where it is not there.
    pub(super) fn remove(&mut self, number: u16) -> bool {
        let Some(at) = self.numbers().iter().position(|kept| *kept == number) else {
            return false;
        };
        self.numbers.copy_within(at + 1.., at);
        self.length -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_out_one_by_one_and_stay_in_order() {
        assert!(Few::new(&[0; MOST + 1]).is_none());
        let mut few = Few::new(&[0, 1, 7, 9, 65534, 65535]).unwrap();
        for (number, was_there) in [(8, false), (7, true), (7, false), (65535, true), (0, true)] {
            assert_eq!(few.remove(number), was_there, "{number}");
        }
        assert_eq!(few.numbers(), [1, 9, 65534]);
        for number in [1, 9, 65534] {
            assert!(few.remove(number));
        }
        assert!(few.numbers().is_empty() && !few.remove(0));
    }
}
