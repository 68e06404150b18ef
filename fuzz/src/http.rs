//! Requests and responses: the same events, however the bytes are cut.

use stillwell_http::{H1RequestEvent, H1ResponseEvent, RequestParser, ResponseParser};

/// Events of a parser, with the parts of each body put together.
#[derive(Debug, Default, PartialEq)]
struct HttpEvents {
    events: Vec<String>,
    body: Vec<u8>,
}

impl HttpEvents {
    fn head(&mut self, head: &impl std::fmt::Debug) {
        self.record(format!("{head:?}"));
    }

    fn end(&mut self) {
        let body = std::mem::take(&mut self.body);
        self.record(format!("end after {body:?}"));
    }

    fn record(&mut self, what: String) {
        self.events.push(what);
    }
}

/// One step of a parser: what was consumed, and whether there was an event.
type Step<P> = fn(&mut P, &[u8], &mut HttpEvents) -> Result<(usize, bool), String>;

/// Requests give the same events whole and in parts.
pub fn http_request(bytes: &[u8]) {
    let step: Step<RequestParser> = |parser, input, events| {
        let (consumed, event) = parser.advance(input).map_err(|error| error.to_string())?;
        match &event {
            Some(H1RequestEvent::Head(head)) => events.head(head),
            Some(H1RequestEvent::Body(part)) => events.body.extend_from_slice(part),
            Some(H1RequestEvent::End) => events.end(),
            None => {}
        }
        Ok((consumed, event.is_some()))
    };
    same_however_cut(bytes, RequestParser::new, step, |parser, events| {
        let ended = format!("{:?}", parser.finish());
        events.record(ended);
    });
}

/// Responses give the same events whole and in parts.
pub fn http_response(bytes: &[u8]) {
    let step: Step<ResponseParser> = |parser, input, events| {
        let (consumed, event) = parser.advance(input).map_err(|error| error.to_string())?;
        match &event {
            Some(H1ResponseEvent::Head(head)) => events.head(head),
            Some(H1ResponseEvent::Body(part)) => events.body.extend_from_slice(part),
            Some(H1ResponseEvent::End) => events.end(),
            None => {}
        }
        Ok((consumed, event.is_some()))
    };
    same_however_cut(bytes, ResponseParser::new, step, |parser, events| {
        let ended = format!("{:?}", parser.finish());
        events.record(ended);
    });
}

/// The first byte says how the others are cut.
fn same_however_cut<P>(
    bytes: &[u8],
    new: fn() -> P,
    step: Step<P>,
    finish: impl Fn(&mut P, &mut HttpEvents),
) {
    let Some((cut, message)) = bytes.split_first() else {
        return;
    };
    let whole = parse(&[message], new(), step, &finish);
    let parts: Vec<&[u8]> = message.chunks(usize::from(*cut) + 1).collect();
    assert_eq!(parse(&parts, new(), step, &finish), whole);
}

fn parse<P>(
    parts: &[&[u8]],
    mut parser: P,
    step: Step<P>,
    finish: impl Fn(&mut P, &mut HttpEvents),
) -> HttpEvents {
    let mut events = HttpEvents::default();
    for part in parts {
        let mut read = 0;
        loop {
            match step(&mut parser, &part[read..], &mut events) {
                Ok((consumed, is_event)) => {
                    assert!(consumed <= part.len() - read);
                    read += consumed;
                    if !is_event {
                        assert_eq!(
                            read,
                            part.len(),
                            "a parser takes all bytes before it needs more"
                        );
                        break;
                    }
                }
                Err(error) => {
                    events.record(error);
                    return events;
                }
            }
        }
    }
    finish(&mut parser, &mut events);
    events
}
