//! Bytes and losses of the interfaces of a network namespace.

use crate::text;

/// Bytes received, bytes sent and packets dropped, over all interfaces. Loopback traffic counts as both
/// received and sent.
pub(crate) fn parse_devices(text: &[u8]) -> Option<[u64; 3]> {
    let mut totals = None;
    for line in text::lines(text) {
        // The two lines of headings have no colon.
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let mut fields = [0; 16];
        for (field, word) in fields.iter_mut().zip(text::words(&line[colon + 1..])) {
            *field = text::number(word).unwrap_or(0);
        }
        let [received, sent, dropped] = totals.unwrap_or([0_u64; 3]);
        totals = Some([
            received.saturating_add(fields[0]),
            sent.saturating_add(fields[8]),
            dropped.saturating_add(fields[3]).saturating_add(fields[11]),
        ]);
    }
    totals
}

/// Datagrams that could not be received, including those without buffer space, from `snmp`: a line of names and
/// a line of values.
pub(crate) fn udp_errors(text: &[u8]) -> Option<u64> {
    let mut lines = text::lines(text).filter_map(|line| line.strip_prefix(b"Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = text::words(names).position(|name| name == b"InErrors")?;
    text::number(text::words(values).nth(at)?)
}

/// The same from `snmp6`: a name and a value on each line.
pub(crate) fn udp6_errors(text: &[u8]) -> Option<u64> {
    text::value(text, b"Udp6InErrors")
}

/// TCP connections that are open, and that were opened from either end, from
/// `snmp`; the third is not used.
pub(crate) fn tcp_counts(text: &[u8]) -> Option<[u64; 3]> {
    let mut lines = text::lines(text).filter_map(|line| line.strip_prefix(b"Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |field: &[u8]| {
        let at = text::words(names).position(|name| name == field)?;
        text::number(text::words(values).nth(at)?)
    };
    let opened = value(b"ActiveOpens")?.saturating_add(value(b"PassiveOpens")?);
    Some([value(b"CurrEstab")?, opened, 0])
}

/// TCP connections in their time of waiting, from `sockstat`.
pub(crate) fn tcp_time_wait(text: &[u8]) -> Option<u64> {
    let mut lines = text::lines(text);
    let line = lines.find_map(|line| line.strip_prefix(b"TCP: "))?;
    let mut words = text::words(line);
    words.find(|word| *word == b"tw")?;
    text::number(words.next()?)
}
