use std::io::Write as _;

use stillwell_http::h2::frame::{
    FRAME_BYTES_DEFAULT, SettingsFrame, write_go_away, write_headers, write_settings,
    write_window_update,
};
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::{ScenarioStepPlan, TextPart, TextTemplate};
use stillwell_wire::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::fixture::{context_of, one_step};
use super::*;
use crate::fixture::block_on;

/// The head of a whole response, whose status is this one in the static table.
fn write_response(stream: u32, status: u8, out: &mut Vec<u8>) {
    write_headers(stream, &[0x80 | status], true, FRAME_BYTES_DEFAULT, out);
}

/// Accepts a connection, opens the windows wide and answers the first request with 200 and with
/// encoded `fields`.
async fn answer_first(listener: &TcpListener, fields: &[u8]) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.read_exact(&mut [0; 1024]).await.unwrap();
    let mut opening = Vec::new();
    let settings = SettingsFrame {
        initial_window_bytes: Some(1 << 30),
        ..SettingsFrame::default()
    };
    write_settings(&settings, &mut opening);
    write_window_update(0, 1 << 30, &mut opening);
    let head = [&[0x88_u8][..], fields].concat();
    write_headers(1, &head, true, FRAME_BYTES_DEFAULT, &mut opening);
    stream.write_all(&opening).await.unwrap();
    stream
}

/// Answers the first request and closes the connection in the middle of the second, after
/// `last`: by a reset, as not all was read. Answers on another connection, if `is_twice`.
async fn serve(listener: &TcpListener, last: &[u8], is_twice: bool) -> Option<TcpStream> {
    let mut stream = answer_first(listener, b"").await;
    stream.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    stream.peek(&mut [0]).await.unwrap();
    // The client sees both at once.
    let mut stream = stream.into_std().unwrap();
    stream.write_all(last).unwrap();
    drop(stream);
    match is_twice {
        true => Some(answer_first(listener, b"").await),
        false => None,
    }
}

/// Posts twice to a server that says `last` before it resets the connection. Returns the
/// statuses, and true if the connection would be used again.
async fn post(last: &[u8], is_twice: bool) -> ([Result<u16, StepFailure>; 2], bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let context = context_of(one_step(address, "POST", LoadProtocol::Http2));
    let mut user = User::new(&context.plan);
    let requests = async {
        let step = &context.choose_flow()[0];
        let first = user.request(&context, step).await;
        let second = user.request(&context, step).await;
        [first, second].map(|status| status.map_err(|error| error.reason))
    };
    let (statuses, _open) = tokio::join!(requests, serve(&listener, last, is_twice));
    (statuses, user.connection.is_some())
}

/// The refusal ended the exchange if the runtime had not yet seen that there was something to
/// read.
#[test]
fn a_refused_write_waits_for_what_arrived_before_it() {
    block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"unread").await.unwrap();
        let mut connection = Connection::from(Stream::from(stream));
        // From here on the runtime does not look for events before the exchange is polled.
        let (mut server, _) = listener.accept().unwrap();
        server.peek(&mut [0]).unwrap();
        server.write_all(b"answer").unwrap();
        // By a reset, as not all was read.
        drop(server);
        let mut client = Client::new(Limits::default());
        let (mut input, mut is_refused) = ([0; 64], false);
        let read = poll_fn(|task| {
            poll_exchange(
                &mut connection,
                &mut client,
                &mut input,
                &mut is_refused,
                task,
            )
        });
        assert_eq!(read.await.unwrap(), Some(6));
        assert_eq!(&input[..6], b"answer");
    });
}

/// A response was lost with the connection, and a request that the server had not begun was
/// not sent again.
#[test]
fn what_arrived_before_a_write_was_refused_counts_over_http2() {
    block_on(async {
        let (mut response, mut away) = (Vec::new(), Vec::new());
        write_response(3, 12, &mut response);
        write_go_away(1, H2ErrorCode::NO_ERROR, &mut away);
        let answered = ([Ok(200), Ok(400)], false);
        assert_eq!(post(&response, false).await, answered);
        let sent_again = ([Ok(200), Ok(200)], true);
        assert_eq!(post(&away, true).await, sent_again);
    });
}

#[test]
fn a_cookie_is_sent_below_its_path_over_http2() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut plan = one_step(address, "POST", LoadProtocol::Http2);
        let steps = &mut plan.flows[0].steps;
        let step = steps.remove(0);
        for path in ["/shop/cart?a=/b/c", "/shop/items?a", "/auth"] {
            steps.push(ScenarioStepPlan {
                path: TextTemplate(vec![TextPart::Text(path.to_owned())]),
                ..step.clone()
            });
        }
        let context = context_of(plan);
        let [cart, items, auth] = context.choose_flow() else {
            panic!("three steps")
        };
        let mut user = User::new(&context.plan);
        // A literal whose name is number 55 of the static table, `set-cookie`.
        let cookie = b"\x0f\x28\x03a=1";
        let (status, _open) = tokio::join!(
            user.request(&context, cart),
            answer_first(&listener, cookie)
        );
        assert_eq!(status.map_err(|error| error.reason), Ok(200));
        for (step, path, headers) in [
            (items, "/shop/items?a", &[("cookie", "a=1")][..]),
            (auth, "/auth", &[]),
        ] {
            user.encode_request(&context, step).unwrap();
            let head = user.http2.head.as_ref().unwrap();
            let expected = H2RequestBlock::new("POST", Scheme::Http, "a", path, headers).unwrap();
            assert_eq!(format!("{head:?}"), format!("{expected:?}"));
        }
    });
}
