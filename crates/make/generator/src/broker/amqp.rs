//! Messages for an exchange of AMQP 0-9-1.

use std::sync::Arc;

use stillwell_broker::Malformed;
use stillwell_broker::amqp::{
    Publisher, ServerFrame, read, write_channel_open, write_close, write_close_ok, write_confirm,
    write_greeting, write_start_ok, write_tune_ok,
};
use stillwell_metric::Outcome;
use stillwell_plan::generator::{AmqpPlan, ProducerPlan};
use stillwell_wire::tls::TlsError;

use super::encoded::{Cut, Pieces};
use super::link::{Link, Security};
use super::{Broker, BrokerMessage, Loss, Session};

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Amqp {
    plan: Arc<AmqpPlan>,
    security: Option<Security>,
}

impl Amqp {
    pub(crate) fn new(plan: &AmqpPlan) -> Result<Self, TlsError> {
        Ok(Self {
            security: Security::of(&plan.producer)?,
            plan: Arc::new(plan.clone()),
        })
    }
}

/// The frame of a server while a connection is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AmqpOpening {
    Start { supports_plain: bool },
    Tune { frame_max: u32 },
    Opened,
    ChannelOpened,
    Confirming,
    Refused(u16),
    Other,
}

fn opening(input: &[u8]) -> Result<Option<(AmqpOpening, usize)>, Malformed> {
    let Some((frame, used)) = read(input)? else {
        return Ok(None);
    };
    let frame = match frame {
        ServerFrame::Start { mechanisms } => {
            let mut words = mechanisms.split(|byte| *byte == b' ');
            let supports_plain = words.any(|word| word == b"PLAIN");
            AmqpOpening::Start { supports_plain }
        }
        ServerFrame::Tune { frame_max } => AmqpOpening::Tune { frame_max },
        ServerFrame::Opened => AmqpOpening::Opened,
        ServerFrame::ChannelOpened => AmqpOpening::ChannelOpened,
        ServerFrame::Confirming => AmqpOpening::Confirming,
        ServerFrame::ConnectionClosed { code, .. } | ServerFrame::ChannelClosed { code, .. } => {
            AmqpOpening::Refused(code)
        }
        _ => AmqpOpening::Other,
    };
    Ok(Some((frame, used)))
}

/// Outcome of a server's code. Failures of the client are: no permission, a missing
/// place, and a message that is too large.
const fn outcome_of(code: u16) -> Outcome {
    match code {
        // 530: no such virtual host, or not for this user.
        311..=313 | 402..=406 | 530 => Outcome::Status4xx,
        _ => Outcome::Status5xx,
    }
}

/// The next frame that is of interest.
async fn next(link: &mut Link) -> Result<AmqpOpening, Outcome> {
    loop {
        match link.receive(opening).await? {
            AmqpOpening::Other => {}
            AmqpOpening::Refused(code) => return Err(outcome_of(code)),
            frame => return Ok(frame),
        }
    }
}

async fn expect(link: &mut Link, expected: AmqpOpening) -> Result<(), Outcome> {
    match next(link).await? {
        frame if frame == expected => Ok(()),
        _ => Err(Outcome::Malformed),
    }
}

impl Broker for Amqp {
    type Session = AmqpSession;

    fn producer(&self) -> &ProducerPlan {
        &self.plan.producer
    }

    async fn open(&self, _place: usize) -> Result<(Link, AmqpSession), Outcome> {
        let plan = &self.plan;
        let mut link = Link::open(&plan.producer.address, self.security.as_ref()).await?;
        let mut out = Vec::new();
        write_greeting(&mut out);
        link.send(&mut out).await?;
        match next(&mut link).await? {
            AmqpOpening::Start {
                supports_plain: true,
            } => {}
            AmqpOpening::Start {
                supports_plain: false,
            } => return Err(Outcome::Status4xx),
            _ => return Err(Outcome::Malformed),
        }
        write_start_ok(&plan.login.user, &plan.login.password, &mut out);
        link.send(&mut out).await?;
        let AmqpOpening::Tune { frame_max } = next(&mut link).await? else {
            return Err(Outcome::Malformed);
        };
        let frame_max = write_tune_ok(frame_max, &plan.virtual_host, &mut out);
        link.send(&mut out).await?;
        expect(&mut link, AmqpOpening::Opened).await?;
        write_channel_open(&mut out);
        link.send(&mut out).await?;
        expect(&mut link, AmqpOpening::ChannelOpened).await?;
        if plan.confirms {
            write_confirm(&mut out);
            link.send(&mut out).await?;
            expect(&mut link, AmqpOpening::Confirming).await?;
        }
        let how = (plan.mandatory, plan.persistent);
        let session = AmqpSession {
            confirms: plan.confirms,
            publisher: Publisher::new(&plan.exchange, &plan.routing_key, how, frame_max),
            number: 0,
            is_returned: false,
            is_goodbye_sent: false,
        };
        Ok((link, session))
    }
}

/// One connection's words.
#[derive(Debug)]
pub(crate) struct AmqpSession {
    confirms: bool,
    publisher: Publisher,
    /// Of the last message.
    number: u64,
    /// The next properties are a returned message's.
    is_returned: bool,
    is_goodbye_sent: bool,
}

impl Session for AmqpSession {
    fn is_answered(&self) -> bool {
        self.confirms
    }

    fn write(
        &mut self,
        bytes: &[u8],
        cuts: &[Cut],
        out: &mut Vec<u8>,
        pieces: &mut Pieces,
    ) -> Result<u64, Outcome> {
        for cut in cuts {
            self.number += 1;
            self.publisher
                .write(&bytes[cut.start..cut.end], self.number, out);
            pieces.push(out.len(), std::slice::from_ref(cut));
        }
        Ok(cuts.len() as u64)
    }

    fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<BrokerMessage>, usize)>, Loss> {
        let Some((frame, used)) = read(input)? else {
            return Ok(None);
        };
        let messages = |number, and_before, refusal| BrokerMessage::Messages {
            number,
            and_before,
            refusal,
        };
        let message = match frame {
            ServerFrame::Ack { number, and_before } => Some(messages(number, and_before, None)),
            // The broker could not do what it should.
            ServerFrame::Nack { number, and_before } => {
                Some(messages(number, and_before, Some(Outcome::Status5xx)))
            }
            ServerFrame::Returned { .. } => {
                self.is_returned = true;
                None
            }
            ServerFrame::Properties { number } if self.is_returned => {
                self.is_returned = false;
                match (number, self.confirms) {
                    (Some(number), true) => Some(BrokerMessage::Returned(number)),
                    // Nothing else is ever said of it.
                    _ => Some(BrokerMessage::Refused(Outcome::Status4xx)),
                }
            }
            ServerFrame::ChannelClosed { code, .. } => {
                return Err(Loss::failure(outcome_of(code)));
            }
            ServerFrame::ConnectionClosed { code, .. } => {
                write_close_ok(out);
                return Err(Loss::failure(outcome_of(code)));
            }
            ServerFrame::Goodbye if self.is_goodbye_sent => Some(BrokerMessage::Goodbye),
            _ => None,
        };
        Ok(Some((message, used)))
    }

    fn write_goodbye(&mut self, out: &mut Vec<u8>) -> bool {
        self.is_goodbye_sent = true;
        write_close(out);
        true
    }
}

#[cfg(test)]
mod tests {
    use stillwell_units::ShortText;

    use super::*;

    /// After a goodbye nothing is lost, so a server must not be able to say it first.
    #[test]
    fn a_goodbye_that_was_not_requested_is_none() {
        let text = ShortText::default();
        let mut session = AmqpSession {
            confirms: true,
            publisher: Publisher::new(&text, &text, (false, false), 4096),
            number: 0,
            is_returned: false,
            is_goodbye_sent: false,
        };
        let (mut close_ok, mut out) = (Vec::new(), Vec::new());
        write_close_ok(&mut close_ok);
        let used = close_ok.len();
        let read = session.read(&close_ok, &mut out);
        assert_eq!(read, Ok(Some((None, used))));
        assert!(session.write_goodbye(&mut out));
        let read = session.read(&close_ok, &mut out);
        assert_eq!(read, Ok(Some((Some(BrokerMessage::Goodbye), used))));
    }
}
