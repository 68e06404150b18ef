//! Numbers of a live view, short enough for it.

pub(in crate::progress) use stillwell_units::human::count;
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

/// So many a second: `19,998/s`, `2.5/s`.
pub(in crate::progress) fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 9.95 {
        format!("{per_second:.1}/s")
    } else {
        format!("{}/s", count(floor_to_u64(per_second + 0.5)))
    }
}

/// `182 µs`, or `182 us` without `unicode`.
pub(in crate::progress) fn time(time: Nanos, unicode: bool) -> String {
    let nanoseconds = float_from_u64(time.as_u64());
    let (scale, unit) = match nanoseconds {
        size if size < 999.5 => (1.0, "ns"),
        size if size < 999.5e3 => (1e3, if unicode { "µs" } else { "us" }),
        size if size < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(nanoseconds / scale))
}

/// `12.4 MiB/s`.
pub(in crate::progress) fn bytes(per_second: f64) -> String {
    let mut scaled = per_second;
    for unit in ["B/s", "KiB/s", "MiB/s"] {
        if scaled < 1023.5 {
            return format!("{} {unit}", three_digits(scaled));
        }
        scaled /= 1024.0;
    }
    format!("{} GiB/s", three_digits(scaled))
}

/// `42 %`, and `0.3 %` where that says more.
pub(in crate::progress) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.05 {
        "0 %".to_owned()
    } else if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Whole seconds: `12 s`, `2 min 5 s`, `1 h 2 min`.
pub(in crate::progress) fn clock(length: Nanos) -> String {
    let seconds = length.as_u64() / Nanos::SECOND.as_u64();
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        size if size < 9.995 && size.fract() > 0.0 => format!("{value:.2}"),
        size if size < 99.95 && size.fract() > 0.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([0, 999, 1_234_567].map(count), ["0", "999", "1,234,567"]);
        let rates = [0.0, 0.5, 9.96, 19_998.4].map(rate);
        assert_eq!(rates, ["0/s", "0.5/s", "10/s", "19,998/s"]);
        let times = [250, 1_500, 182_400, 999_700, 61_000_000_000];
        let times = times.map(|nanoseconds| time(Nanos::new(nanoseconds), true));
        assert_eq!(times, ["250 ns", "1.50 µs", "182 µs", "1.00 ms", "61 s"]);
        assert_eq!(time(Nanos::new(1_500), false), "1.50 us");
        let sizes = [12.0, 2048.0, 13.0e6, 3.0e10].map(bytes);
        assert_eq!(sizes, ["12 B/s", "2 KiB/s", "12.4 MiB/s", "27.9 GiB/s"]);
        let shares = [0.0, 0.003, 0.42, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "0.3 %", "42 %", "100 %"]);
        let times = [12_900, 125_000, 3_720_000].map(|millis| clock(Nanos::from_millis(millis)));
        assert_eq!(times, ["12 s", "2 min 5 s", "1 h 2 min"]);
    }
}
