//! Numbers in headers.

/// Digits alone: no sign, no spaces, no list.
pub(crate) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends `value` without allocation once `out` has room.
pub(crate) fn write_decimal(mut value: u64, out: &mut Vec<u8>) {
    // 2⁶⁴ has twenty digits.
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b"0123456789"[usize::try_from(value % 10).unwrap_or(0)];
        value /= 10;
        start = index;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
