//! All that a server of HTTP/1.1 can get wrong.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::PeerSession;

/// A fault of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    ResetAtAccept,
    CloseAtAccept,
    ResetUnanswered,
    CloseUnanswered,
    ResetMidAnswer,
    HalfBody,
    StallMidAnswer,
    Silent,
    CloseAfterThree,
    Garbage,
    HeadOf64KiB,
    EndlessHead,
    BadChunk,
    EndlessBody,
    ContinueFirst,
    ContinueOnly,
    EndlessContinue,
    TwoLengths,
    TwoAnswers,
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

pub(super) async fn serve_session(fault: Fault, mut session: PeerSession) -> io::Result<()> {
    match fault {
        Fault::ResetAtAccept => return session.reset(),
        Fault::CloseAtAccept => return Ok(()),
        _ => {}
    }
    let mut answered = 0;
    while take_request(&mut session).await? {
        match fault {
            Fault::ResetUnanswered => return session.reset(),
            Fault::ResetMidAnswer => {
                session.stream.write_all(&ANSWER[..30]).await?;
                return session.reset();
            }
            Fault::Silent => return session.fall_silent().await,
            Fault::StallMidAnswer | Fault::ContinueOnly => {
                session.stream.write_all(faulty_response(fault)).await?;
                return session.fall_silent().await;
            }
            Fault::EndlessHead | Fault::EndlessBody | Fault::EndlessContinue => {
                return write_endlessly(fault, &mut session).await;
            }
            Fault::HeadOf64KiB => {
                let line = [b"x-huge: ".as_slice(), &vec![b'a'; 64 << 10]].concat();
                session.stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
                session.stream.write_all(&line).await?;
                session
                    .stream
                    .write_all(b"\r\ncontent-length: 0\r\n\r\n")
                    .await?;
            }
            Fault::CloseUnanswered | Fault::HalfBody | Fault::Garbage | Fault::BadChunk => {
                return session.stream.write_all(faulty_response(fault)).await;
            }
            _ => session.stream.write_all(faulty_response(fault)).await?,
        }
        answered += 1;
        if fault == Fault::CloseAfterThree && answered == 3 {
            return Ok(());
        }
    }
    Ok(())
}

const fn faulty_response(fault: Fault) -> &'static [u8] {
    match fault {
        Fault::HalfBody | Fault::StallMidAnswer => {
            b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"
        }
        Fault::CloseUnanswered => b"",
        Fault::Garbage => b"\x00\xff\x16\x03\x01 220 smtp.example ESMTP\r\n\r\n",
        Fault::BadChunk => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n-1\r\n",
        Fault::ContinueFirst => {
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
        }
        Fault::ContinueOnly | Fault::EndlessContinue => b"HTTP/1.1 100 Continue\r\n\r\n",
        Fault::TwoLengths => {
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello"
        }
        Fault::TwoAnswers => {
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 500 No\r\ncontent-length: 1\r\n\r\nb"
        }
        _ => ANSWER,
    }
}

async fn write_endlessly(fault: Fault, session: &mut PeerSession) -> io::Result<()> {
    let (begin, again): (&[u8], &[u8]) = match fault {
        Fault::EndlessHead => (b"HTTP/1.1 200 OK\r\n", b"x-more: and more and more\r\n"),
        Fault::EndlessBody => (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"5\r\nhello\r\n",
        ),
        _ => (b"", faulty_response(fault)),
    };
    session.stream.write_all(begin).await?;
    session.write_endlessly(again).await
}

/// Reads one request, which has no body; false at the end.
async fn take_request(session: &mut PeerSession) -> io::Result<bool> {
    session.flush().await?;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        let length = session.stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(false);
        }
        head.extend_from_slice(&buffer[..length]);
    }
    session.saw_request();
    Ok(true)
}
