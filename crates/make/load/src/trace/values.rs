//! The headers that say which trace a request belongs to.

use stillwell_plan::load::TraceHeaders;

use super::context::TraceContext;

/// The longest value of all: of `traceparent`.
const VALUE_MAX: usize = 55;

/// The values of one request's headers. Each is as long as that of any other
/// request, so it can be written over another's.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceValues {
    headers: TraceHeaders,
    bytes: [u8; VALUE_MAX],
}

impl TraceValues {
    /// The values of `headers` for `context`. Allocates nothing.
    pub(super) fn new(headers: TraceHeaders, context: &TraceContext) -> Self {
        let mut bytes = [0; VALUE_MAX];
        match headers {
            TraceHeaders::W3c => {
                bytes.copy_from_slice(b"00-00000000000000000000000000000000-0000000000000000-00");
                write_hex(&context.trace, &mut bytes[3..35]);
                write_hex(&context.span, &mut bytes[36..52]);
                bytes[54] = digit(context.is_sampled.into());
            }
            TraceHeaders::B3 => {
                write_hex(&context.trace, &mut bytes[..32]);
                bytes[32] = b'-';
                write_hex(&context.span, &mut bytes[33..49]);
                bytes[49] = b'-';
                bytes[50] = digit(context.is_sampled.into());
            }
            TraceHeaders::B3Multi => {
                write_hex(&context.trace, &mut bytes[..32]);
                write_hex(&context.span, &mut bytes[32..48]);
                bytes[48] = digit(context.is_sampled.into());
            }
        }
        Self { headers, bytes }
    }

    /// Each header and its value, in the order of [`TraceHeaders::names`].
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let mut rest = self.bytes.as_slice();
        let headers = self.headers.names().iter().zip(lengths(self.headers));
        headers.filter_map(move |(name, length)| {
            let (value, remaining) = rest.split_at_checked(*length)?;
            rest = remaining;
            Some((*name, value))
        })
    }

    /// The same values as texts.
    pub(super) fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.iter()
            .map(|(name, value)| (name, text(value)))
            .collect()
    }
}

/// Length of the value of each header; they follow each other.
const fn lengths(headers: TraceHeaders) -> &'static [usize] {
    match headers {
        TraceHeaders::W3c => &[55],
        TraceHeaders::B3 => &[51],
        TraceHeaders::B3Multi => &[32, 16, 1],
    }
}

fn write_hex(bytes: &[u8], out: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        pair[0] = digit(byte >> 4);
        pair[1] = digit(byte & 0xf);
    }
}

const fn digit(value: u8) -> u8 {
    match value {
        0..10 => b'0' + value,
        _ => b'a' + value - 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(headers: TraceHeaders, is_sampled: bool) -> Vec<String> {
        let mut trace = [0; 16];
        for (index, byte) in (0..).zip(&mut trace) {
            *byte = 0x11 * index;
        }
        let context = TraceContext {
            trace,
            span: [0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10],
            is_sampled,
        };
        let texts = TraceValues::new(headers, &context).texts();
        texts.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn values_are_those_of_the_published_formats() {
        let trace = "00112233445566778899aabbccddeeff";
        let span = "fedcba9876543210";
        assert_eq!(
            values(TraceHeaders::W3c, true),
            [format!("00-{trace}-{span}-01")]
        );
        assert_eq!(
            values(TraceHeaders::W3c, false),
            [format!("00-{trace}-{span}-00")]
        );
        assert_eq!(
            values(TraceHeaders::B3, true),
            [format!("{trace}-{span}-1")]
        );
        assert_eq!(values(TraceHeaders::B3Multi, false), [trace, span, "0"]);
    }

    proptest! {
        #[test]
        fn for_all_contexts_values_are_of_one_length(
            trace in any::<[u8; 16]>(),
            span in any::<[u8; 8]>(),
            is_sampled in any::<bool>(),
        ) {
            let context = TraceContext { trace, span, is_sampled };
            for headers in [TraceHeaders::W3c, TraceHeaders::B3, TraceHeaders::B3Multi] {
                let lengths: Vec<usize> = values(headers, true).iter().map(String::len).collect();
                let values = TraceValues::new(headers, &context);
                let lengths_written: Vec<usize> = values.iter().map(|(_, value)| value.len()).collect();
                prop_assert_eq!(lengths_written, lengths);
                prop_assert_eq!(values.iter().count(), headers.names().len());
                let plain = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
                prop_assert!(values.iter().all(|(_, value)| value.iter().all(plain)));
            }
        }
    }
}
