//! HTTP/3: the same events, however the bytes are cut, within limits.

use stillwell_http::h2::FieldList;
use stillwell_http::h3::{
    H3Connection, H3MessageReader, H3RequestEvent, H3ResponseEvent, UniStream, qpack,
};

const SECTION_BYTES_MAX: usize = 4 << 10;

/// Sections, each behind a byte with its length: what was decoded can be encoded and is
/// the same again, and lists keep to their limit.
pub fn qpack(bytes: &[u8]) {
    let mut list = FieldList::new();
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first() {
        let (section, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        if qpack::decode(section, SECTION_BYTES_MAX, &mut list).is_err() {
            continue;
        }
        assert!(list.fields().bytes_len() <= SECTION_BYTES_MAX);
        if list.is_overflowed() {
            continue;
        }
        let (mut encoded, mut same) = (Vec::new(), FieldList::new());
        qpack::encode(list.fields().iter(), &mut encoded);
        qpack::decode(&encoded, SECTION_BYTES_MAX, &mut same).expect("encoded text can be decoded");
        assert_eq!(same.fields(), list.fields());
    }
}

/// Messages of a server on the stream of a response and on a unidirectional stream.
pub fn h3_client(bytes: &[u8]) {
    let parsed = |cut: usize| {
        let mut http = H3Connection::client(SECTION_BYTES_MAX);
        let mut reader = H3MessageReader::response(false);
        let (mut events, mut body) = (Vec::new(), Vec::new());
        for part in bytes.chunks(cut) {
            let mut read = 0;
            loop {
                let (taken, event) = match http.read_response(&mut reader, &part[read..]) {
                    Ok(step) => step,
                    Err(error) => return (events, format!("{error:?}"), body),
                };
                read += taken;
                match event {
                    None => break,
                    Some(H3ResponseEvent::Body(part)) => body.extend_from_slice(part),
                    Some(event) => events.push(format!("{event:?}")),
                }
            }
            assert_eq!(read, part.len());
        }
        (events, format!("{:?}", reader.finish()), body)
    };
    let whole = parsed(bytes.len().max(1));
    let parts = parsed(usize::from(bytes.first().copied().unwrap_or(0)) % 7 + 1);
    // No part of a body whose frame is refused is received either way; all of a body before
    // it is.
    assert_eq!(parts, whole);
    one_direction(bytes, || H3Connection::client(SECTION_BYTES_MAX));
}

/// Messages of a client on the stream of a request and on a unidirectional stream.
pub fn h3_server(bytes: &[u8]) {
    let parsed = |cut: usize| {
        let mut http = H3Connection::server(SECTION_BYTES_MAX);
        let mut reader = H3MessageReader::request();
        let (mut events, mut body) = (Vec::new(), Vec::new());
        for part in bytes.chunks(cut) {
            let mut read = 0;
            loop {
                let (taken, event) = match http.read_request(&mut reader, &part[read..]) {
                    Ok(step) => step,
                    Err(error) => return (events, format!("{error:?}"), body),
                };
                read += taken;
                match event {
                    None => break,
                    Some(H3RequestEvent::Body(part)) => body.extend_from_slice(part),
                    Some(event) => events.push(format!("{event:?}")),
                }
            }
        }
        (events, format!("{:?}", reader.finish()), body)
    };
    let whole = parsed(bytes.len().max(1));
    let parts = parsed(usize::from(bytes.first().copied().unwrap_or(0)) % 7 + 1);
    assert_eq!(parts, whole);
    one_direction(bytes, || H3Connection::server(SECTION_BYTES_MAX));
}

fn one_direction(bytes: &[u8], new: impl Fn() -> H3Connection) {
    let parsed = |cut: usize| {
        let (mut http, mut stream) = (new(), UniStream::default());
        for part in bytes.chunks(cut) {
            match http.read_uni(&mut stream, part) {
                Ok(true) => {}
                Ok(false) => return ("not wanted".to_owned(), None),
                Err(error) => return (format!("{error:?}"), None),
            }
        }
        (format!("{:?}", http.end_uni(&stream)), http.going_away())
    };
    assert_eq!(parsed(1), parsed(bytes.len().max(1)));
}
