//! A ledger as bytes: one process writes them, another one reads them.
//!
//! [`MARK`] and a version, then numbers of seven bits in each byte, the lowest first, and at the end
//! the CRC-32C of all of it. What is read is checked before it is used, so no bytes can make a ledger
//! that panics or takes more than its memory.

use crc32c::crc32c;
use stillwell_units::as_usize;

use super::error::{LedgerReadError, VERSION};

/// The first bytes.
const MARK: &[u8; 8] = b"stwledgr";

/// Largest sum of all counts of a ledger: 256 for each sequence number of 16 streams, and so much
/// below 2⁶⁴ that those of thousands of ledgers can be added.
const COUNTS_MAX: u64 = 1 << 48;

/// Writes a ledger.
#[derive(Debug)]
pub(super) struct LedgerWriter(Vec<u8>);

impl LedgerWriter {
    pub(super) fn begin() -> Self {
        let mut writer = Self(MARK.to_vec());
        writer.byte(VERSION);
        writer
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.byte(low & 0x7f);
            }
            self.byte(low | 0x80);
        }
    }

    /// Writes numbers in rising order, as their number and the gaps between them.
    pub(super) fn rising(&mut self, numbers: &[u16]) {
        self.number(numbers.len() as u64);
        let mut next = 0;
        for number in numbers.iter().copied().map(u64::from) {
            self.number(number - next);
            next = number + 1;
        }
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        let sum = crc32c(&self.0);
        self.bytes(&sum.to_le_bytes());
        self.0
    }
}

/// Reads a ledger.
#[derive(Debug)]
pub(super) struct LedgerReader<'a> {
    rest: &'a [u8],
    /// Sum of all counts so far.
    counted: u64,
}

impl<'a> LedgerReader<'a> {
    /// Checks mark, version and checksum.
    pub(super) fn begin(bytes: &'a [u8]) -> Result<Self, LedgerReadError> {
        let after = bytes.strip_prefix(MARK).ok_or(LedgerReadError::NoLedger)?;
        let cut = || LedgerReadError::damaged("its end is missing");
        let version = *after.first().ok_or_else(cut)?;
        if version != VERSION {
            return Err(LedgerReadError::Version { version });
        }
        let (content, sum) = bytes.split_last_chunk().ok_or_else(cut)?;
        if crc32c(content) != u32::from_le_bytes(*sum) {
            return Err(LedgerReadError::damaged("its checksum is wrong"));
        }
        Ok(Self {
            rest: content.get(MARK.len() + 1..).ok_or_else(cut)?,
            counted: 0,
        })
    }

    pub(super) fn end(self) -> Result<(), LedgerReadError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(LedgerReadError::damaged("bytes follow its end")),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, LedgerReadError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], LedgerReadError> {
        let cut = LedgerReadError::damaged("it ends within a value");
        let (array, rest) = self.rest.split_first_chunk().ok_or(cut)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Reads a number up to `most`.
    pub(super) fn number(&mut self, most: u64) -> Result<u64, LedgerReadError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            number |= part << shift;
            if part << shift >> shift != part || number > most {
                break;
            }
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(LedgerReadError::damaged("a number is too large"))
    }

    /// Reads a number that may be added to others.
    pub(super) fn count(&mut self) -> Result<u64, LedgerReadError> {
        let count = self.number(COUNTS_MAX - self.counted)?;
        self.counted += count;
        Ok(count)
    }

    /// Reads a number up to `most`.
    pub(super) fn small(&mut self, most: u32) -> Result<u32, LedgerReadError> {
        let number = self.number(u64::from(most))?;
        u32::try_from(number).map_err(|_| LedgerReadError::damaged("a number is too large"))
    }

    /// Reads a place in a window.
    pub(super) fn offset(&mut self) -> Result<u16, LedgerReadError> {
        let number = self.number(u64::from(u16::MAX))?;
        u16::try_from(number).map_err(|_| LedgerReadError::damaged("a number is too large"))
    }

    /// Reads up to `most` numbers in rising order.
    pub(super) fn rising(&mut self, most: u32) -> Result<Vec<u16>, LedgerReadError> {
        let length = self.small(most)?;
        let mut numbers = Vec::with_capacity(as_usize(length));
        let mut next = 0_u64;
        for _ in 0..length {
            let number = next + self.number(u64::from(u16::MAX))?;
            next = number + 1;
            let number = u16::try_from(number);
            numbers.push(number.map_err(|_| LedgerReadError::damaged("an offset is too large"))?);
        }
        Ok(numbers)
    }
}
