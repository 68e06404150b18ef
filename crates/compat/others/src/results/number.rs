//! A number with its unit, as people and tables write it.

use stillwell_metric::Unit;

use super::FigureUnit;

/// The number in `text` in base units (bytes, nanoseconds, shares of one), and
/// its unit: `7.88`, `-3e-2`, `7.88MiB`, `12.5 ms`, `3 %`, `5k/s`, `1.2 GB/s`.
///
/// # Errors
/// [`NumberError`] says what is accepted.
pub fn parse_number(text: &str) -> Result<(f64, FigureUnit), NumberError> {
    let error = || NumberError {
        field_text: text.trim().chars().take(60).collect(),
    };
    let trimmed = text.trim();
    let end = number_end(trimmed);
    let (digits, unit) = trimmed.split_at(end);
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    let number: f64 = digits.parse().map_err(|_| error())?;
    let (scale, unit) = scale(unit.trim()).ok_or_else(error)?;
    let value = number * scale;
    if value.is_finite() {
        Ok((value, unit))
    } else {
        Err(error())
    }
}

/// A text that is not a number with a known unit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{field_text}` is not a number: write one such as `7.88`, `7.88 MiB/s`, `12.5 ms` or `3 %`"
)]
pub struct NumberError {
    /// The text, shortened.
    pub field_text: String,
}

/// Returns the position where the number ends and its unit begins.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let sign = matches!(byte, b'+' | b'-');
        let exponent = matches!(byte, b'e' | b'E')
            && end > 0
            && match bytes.get(end + 1) {
                Some(b'+' | b'-') => bytes.get(end + 2).is_some_and(u8::is_ascii_digit),
                Some(next) => next.is_ascii_digit(),
                None => false,
            };
        let after_exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        let fits = byte.is_ascii_digit()
            || matches!(byte, b'.' | b'_')
            || exponent
            || (sign && (end == 0 || after_exponent));
        if !fits {
            break;
        }
        end += 1;
    }
    end
}

/// Returns the number of base units in `unit`, and its kind.
fn scale(unit: &str) -> Option<(f64, FigureUnit)> {
    let (unit, per_second) = match unit.strip_suffix("/s") {
        Some(unit) => (unit.trim_end(), true),
        None => (unit, false),
    };
    let (scale, kind) = match unit {
        "" if per_second => (1.0, Unit::Count),
        "" => (1.0, Unit::Unknown),
        "k" => (1e3, Unit::Count),
        "M" => (1e6, Unit::Count),
        "G" => (1e9, Unit::Count),
        "%" => (0.01, Unit::Ratio),
        "B" => (1.0, Unit::Bytes),
        "kB" | "KB" => (1e3, Unit::Bytes),
        "MB" => (1e6, Unit::Bytes),
        "GB" => (1e9, Unit::Bytes),
        "TB" => (1e12, Unit::Bytes),
        "KiB" => (1024.0, Unit::Bytes),
        "MiB" => (1_048_576.0, Unit::Bytes),
        "GiB" => (1_073_741_824.0, Unit::Bytes),
        "TiB" => (1_099_511_627_776.0, Unit::Bytes),
        "ns" => (1.0, Unit::Nanoseconds),
        // Both Unicode characters for µ are in use.
        "us" | "µs" | "μs" => (1e3, Unit::Nanoseconds),
        "ms" => (1e6, Unit::Nanoseconds),
        "s" => (1e9, Unit::Nanoseconds),
        "min" => (6e10, Unit::Nanoseconds),
        "h" => (3.6e12, Unit::Nanoseconds),
        _ => return None,
    };
    let unit = FigureUnit {
        unit: kind,
        per_second,
    };
    Some((scale, unit))
}
