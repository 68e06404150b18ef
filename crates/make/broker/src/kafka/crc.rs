//! CRC-32C, eight bytes a step.

/// Its polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Contribution of each byte to the sum, from each of eight places.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    let mut sum_of: u32 = 0;
    while byte < 256 {
        let mut sum = sum_of;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (POLYNOMIAL * (sum & 1));
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
        sum_of += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[place - 1][byte];
            tables[place][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
}

/// The sum of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    let (steps, rest) = bytes.as_chunks::<8>();
    for step in steps {
        let [a, b, c, d] =
            (sum ^ u32::from_le_bytes([step[0], step[1], step[2], step[3]])).to_le_bytes();
        sum = at(7, a) ^ at(6, b) ^ at(5, c) ^ at(4, d);
        sum ^= at(3, step[4]) ^ at(2, step[5]) ^ at(1, step[6]) ^ at(0, step[7]);
    }
    for byte in rest {
        let [lowest, ..] = sum.to_le_bytes();
        sum = (sum >> 8) ^ at(0, lowest ^ byte);
    }
    !sum
}

fn at(place: usize, byte: u8) -> u32 {
    TABLES[place][usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            (&[][..], 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
        ] {
            assert_eq!(crc32c(bytes), expected, "{bytes:?}");
        }
    }
}
