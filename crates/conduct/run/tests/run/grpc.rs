//! Calls by gRPC on a server that breaks each rule, and on one that never answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use stillwell_http::grpc::write_message;
use stillwell_http::h2::{
    BodyLength, H2ErrorCode, H2ResponseBlock, Limits, Server, ServerEvent, Stream, TrailerBlock,
};
use stillwell_metric::{CallEnd, CallMessages, LoadTime, Outcome};
use stillwell_plan::load::{BodyPlan, GrpcMessages, GrpcPlan, LoadPlanParts, LoadProtocol};
use stillwell_run::LoadCapture;
use stillwell_units::Nanos;

use super::load::{assert_accounted, closed, ended, load};

/// The response of a server to each call.
#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    head: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    trailers: Option<Vec<(&'static str, &'static str)>>,
}

/// An answer of gRPC: a body, and how it ends.
fn answer(body: Vec<u8>, grpc_status: Option<&'static str>) -> Answer {
    Answer {
        status: 200,
        head: vec![("content-type", "application/grpc")],
        body,
        trailers: grpc_status.map(|status| vec![("grpc-status", status)]),
    }
}

fn framed(message: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(message, is_compressed, &mut bytes).unwrap();
    bytes
}

/// Behaviour of a server.
#[derive(Clone, Debug)]
enum Doing {
    Answer(Answer),
    Reset,
    Nothing,
}

/// One connection, to its end.
fn serve(mut socket: TcpStream, doing: &Doing) {
    let mut server = Server::new(Limits::default());
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut buffer) {
        let (mut read, mut ended) = (0, Vec::new());
        while let Ok((taken, Some(event))) = server.advance(&buffer[read..count]) {
            read += taken;
            if let ServerEvent::End { stream, .. } = event {
                ended.push(stream);
            }
        }
        for stream in ended {
            match doing {
                Doing::Answer(answer) => answered(&mut server, stream, answer),
                Doing::Reset => server.reset(stream, H2ErrorCode::CANCEL),
                Doing::Nothing => {}
            }
        }
        let output = server.output().to_vec();
        server.sent(output.len());
        if socket.write_all(&output).is_err() {
            return;
        }
    }
}

fn answered(server: &mut Server, stream: Stream, answer: &Answer) {
    let head = H2ResponseBlock::new(answer.status, &answer.head).unwrap();
    server.respond(stream, &head, BodyLength::Unknown).unwrap();
    let is_last = answer.trailers.is_none();
    let sent = server.send_body(stream, &answer.body, is_last).unwrap();
    assert_eq!(sent, answer.body.len());
    if let Some(trailers) = &answer.trailers {
        let block = TrailerBlock::new(trailers).unwrap();
        server.send_trailers(stream, &block).unwrap();
    }
}

/// One message a call, over one connection with two calls at once.
fn calls(address: SocketAddr, requests: u64) -> LoadPlanParts {
    let mut plan = closed(address, requests);
    plan.client.connecting.connections = 1;
    plan.client.connecting.protocol = LoadProtocol::Http2;
    plan.client.connecting.streams = 2;
    let request = &mut plan.endpoints[0].requests[0];
    request.method = "POST".to_owned();
    request.path = "/a.B/C".to_owned();
    request.body = BodyPlan::Grpc(GrpcPlan {
        messages: GrpcMessages::Given(vec![b"ask".to_vec()]),
        count: 1,
        every: None,
        deadline: None,
        server_streams: false,
    });
    plan
}

/// Makes a load on a server with this behaviour.
fn against(doing: Doing, change: impl FnOnce(&mut LoadPlanParts)) -> LoadCapture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = calls(listener.local_addr().unwrap(), 10);
    change(&mut plan);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The last connection is the one that says that it is over.
            while let Ok((socket, _)) = listener.accept() {
                let mut first = [0];
                match socket.peek(&mut first) {
                    Ok(1..) => serve(socket, &doing),
                    Ok(0) | Err(_) => return,
                }
            }
        });
        let address = plan.endpoints[0].address.clone();
        let capture = load(plan);
        drop(TcpStream::connect(address));
        capture
    })
}

/// Ends of calls, without missing ones.
fn ends(capture: &LoadCapture) -> Vec<(CallEnd, u64)> {
    let count = |end: CallEnd| capture.sum(|counts| counts.calls_ended(end));
    let all = CallEnd::ALL.into_iter().map(|end| (end, count(end)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// Answers, how each ends a call, and its outcome.
fn answers() -> Vec<(Answer, CallEnd, Outcome)> {
    let single = framed(b"answer", false);
    let html = Answer {
        head: vec![("content-type", "text/html")],
        ..answer(b"<html>".to_vec(), None)
    };
    let only_trailers = Answer {
        head: vec![
            ("content-type", "application/grpc"),
            ("grpc-status", "7"),
            ("grpc-message", "no"),
        ],
        ..answer(Vec::new(), None)
    };
    let gzip = Answer {
        head: vec![
            ("content-type", "application/grpc"),
            ("grpc-encoding", "gzip"),
        ],
        ..answer(framed(b"answer", true), Some("0"))
    };
    let (ok, malformed) = (Outcome::Ok, Outcome::Malformed);
    vec![
        (answer(single.clone(), Some("0")), CallEnd::Ok, ok),
        (gzip, CallEnd::Ok, ok),
        (
            answer(Vec::new(), Some("14")),
            CallEnd::Unavailable,
            Outcome::Status5xx,
        ),
        (only_trailers, CallEnd::PermissionDenied, Outcome::Status4xx),
        (
            answer(single.clone(), Some("77")),
            CallEnd::StatusOther,
            Outcome::Status5xx,
        ),
        (answer(single.clone(), None), CallEnd::NoStatus, malformed),
        (
            answer(b"no message".to_vec(), Some("0")),
            CallEnd::BadFrame,
            malformed,
        ),
        (
            answer(framed(b"answer", true), Some("0")),
            CallEnd::BadFrame,
            malformed,
        ),
        (
            answer(single[..7].to_vec(), Some("0")),
            CallEnd::CutShort,
            malformed,
        ),
        (
            answer(Vec::new(), Some("0")),
            CallEnd::WrongCount,
            malformed,
        ),
        (html.clone(), CallEnd::NotGrpc, malformed),
        (
            Answer {
                status: 502,
                ..html
            },
            CallEnd::NotGrpc,
            Outcome::Status5xx,
        ),
    ]
}

#[test]
fn an_answer_that_breaks_grpc_differs_from_every_other() {
    for (answer, end, outcome) in answers() {
        let text = format!("{answer:?}");
        let is_compressed = answer.body.first() == Some(&1) && end == CallEnd::Ok;
        let capture = against(Doing::Answer(answer), |_| {});
        assert_accounted(&capture);
        assert_eq!(ends(&capture), [(end, 10)], "{text}");
        assert_eq!(ended(&capture, outcome), 10, "{text}");
        let calls = &capture.manifest.workers[0].counts;
        assert_eq!(calls.messages(CallMessages::Sent), 10);
        let compressed = calls.messages(CallMessages::Compressed);
        assert_eq!(compressed > 0, is_compressed || text.contains("body: [1,"));
    }
}

#[test]
fn the_first_message_of_several_has_a_time_of_its_own() {
    let three = framed(b"answer", false).repeat(3);
    let capture = against(Doing::Answer(answer(three, Some("0"))), |plan| {
        let BodyPlan::Grpc(call) = &mut plan.endpoints[0].requests[0].body else {
            panic!("no call");
        };
        call.server_streams = true;
        call.count = 4;
    });
    assert_eq!(ends(&capture), [(CallEnd::Ok, 10)]);
    let worker = capture.workers().next().unwrap();
    let count = |which: CallMessages| worker.counts().messages(which);
    assert_eq!(count(CallMessages::Sent), 40);
    assert_eq!(count(CallMessages::Received), 30);
    assert_eq!(worker.times(LoadTime::FirstMessage).len(), 10);
}

#[test]
fn a_call_ends_at_its_deadline_although_others_may_take_longer() {
    for (doing, outcome) in [
        (Doing::Nothing, Outcome::TimedOut),
        // The reset has no reason, and the deadline is not over.
        (Doing::Reset, Outcome::PeerClosed),
    ] {
        let is_silent = matches!(doing, Doing::Nothing);
        let capture = against(doing, |plan| {
            plan.client.timeout = Nanos::from_secs(60);
            let BodyPlan::Grpc(call) = &mut plan.endpoints[0].requests[0].body else {
                panic!("no call");
            };
            // Long enough for a server that answers at once.
            let deadline = if is_silent { 50 } else { 30_000 };
            call.deadline = Some(Nanos::from_millis(deadline));
        });
        assert_accounted(&capture);
        assert_eq!(ended(&capture, outcome), 10, "{capture:?}");
        let expected = if is_silent {
            vec![(CallEnd::DeadlineExceeded, 10)]
        } else {
            Vec::new()
        };
        assert_eq!(ends(&capture), expected);
    }
}
