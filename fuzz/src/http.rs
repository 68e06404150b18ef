//! Requests and responses: the same events, however the bytes are cut.

use stillwell_http::{H1RequestEvent, H1ResponseEvent, RequestParser, ResponseParser};

/// What a parser said, with the parts of each body put together.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    said: Vec<String>,
    body: Vec<u8>,
}

impl Heard {
    fn head(&mut self, head: &impl std::fmt::Debug) {
        self.say(format!("{head:?}"));
    }

    fn end(&mut self) {
        let body = std::mem::take(&mut self.body);
        self.say(format!("end after {body:?}"));
    }

    fn say(&mut self, what: String) {
        self.said.push(what);
    }
}

/// One step of a parser: what was consumed, and whether there was an event.
type Step<P> = fn(&mut P, &[u8], &mut Heard) -> Result<(usize, bool), String>;

/// Requests give the same events whole and in parts.
pub fn http_request(bytes: &[u8]) {
    let step: Step<RequestParser> = |parser, input, heard| {
        let (consumed, event) = parser.advance(input).map_err(|error| error.to_string())?;
        match &event {
            Some(H1RequestEvent::Head(head)) => heard.head(head),
            Some(H1RequestEvent::Body(part)) => heard.body.extend_from_slice(part),
            Some(H1RequestEvent::End) => heard.end(),
            None => {}
        }
        Ok((consumed, event.is_some()))
    };
    same_however_cut(bytes, RequestParser::new, step, |parser, heard| {
        let ended = format!("{:?}", parser.finish());
        heard.say(ended);
    });
}

/// Responses give the same events whole and in parts.
pub fn http_response(bytes: &[u8]) {
    let step: Step<ResponseParser> = |parser, input, heard| {
        let (consumed, event) = parser.advance(input).map_err(|error| error.to_string())?;
        match &event {
            Some(H1ResponseEvent::Head(head)) => heard.head(head),
            Some(H1ResponseEvent::Body(part)) => heard.body.extend_from_slice(part),
            Some(H1ResponseEvent::End) => heard.end(),
            None => {}
        }
        Ok((consumed, event.is_some()))
    };
    same_however_cut(bytes, ResponseParser::new, step, |parser, heard| {
        let ended = format!("{:?}", parser.finish());
        heard.say(ended);
    });
}

/// The first byte says how the others are cut.
fn same_however_cut<P>(
    bytes: &[u8],
    new: fn() -> P,
    step: Step<P>,
    finish: impl Fn(&mut P, &mut Heard),
) {
    let Some((cut, message)) = bytes.split_first() else {
        return;
    };
    let whole = hear(&[message], new(), step, &finish);
    let parts: Vec<&[u8]> = message.chunks(usize::from(*cut) + 1).collect();
    assert_eq!(hear(&parts, new(), step, &finish), whole);
}

fn hear<P>(
    parts: &[&[u8]],
    mut parser: P,
    step: Step<P>,
    finish: impl Fn(&mut P, &mut Heard),
) -> Heard {
    let mut heard = Heard::default();
    for part in parts {
        let mut read = 0;
        loop {
            match step(&mut parser, &part[read..], &mut heard) {
                Ok((consumed, is_event)) => {
                    assert!(consumed <= part.len() - read);
                    read += consumed;
                    if !is_event {
                        assert_eq!(
                            read,
                            part.len(),
                            "a parser takes all before it asks for more"
                        );
                        break;
                    }
                }
                Err(error) => {
                    heard.say(error);
                    return heard;
                }
            }
        }
    }
    finish(&mut parser, &mut heard);
    heard
}
