//! Requests whose client is held back.

use proptest::prelude::*;

use super::*;

/// Passes the output of each side to the other, until both are silent; returns the number
/// of body bytes that the server took.
fn exchange(
    client: &mut Client,
    server: &mut Server,
    body: Option<(Stream, &mut Vec<u8>)>,
) -> usize {
    let (mut body, mut taken) = (body, 0);
    loop {
        if let Some((stream, rest)) = &mut body {
            let sent = client.send_body(*stream, rest, true).unwrap_or(0);
            rest.drain(..sent);
        }
        let output = client.output().to_vec();
        client.sent(output.len());
        let mut input = output.as_slice();
        while let (bytes, Some(event)) = server.advance(input).unwrap() {
            input = &input[bytes..];
            if let ServerEvent::Body { bytes, .. } = event {
                taken += bytes.len();
            }
        }
        let answered = server.output().to_vec();
        server.sent(answered.len());
        let mut input = answered.as_slice();
        while let (bytes, Some(_)) = client.advance(input).unwrap() {
            input = &input[bytes..];
        }
        if output.is_empty() && answered.is_empty() {
            return taken;
        }
    }
}

proptest! {
    /// A sender that is held sends no more than a window, and all of it after that.
    #[test]
    fn for_all_windows_a_held_peer_sends_no_more_than_one(
        window in 1_u32..3000,
        body in 0_usize..10_000,
        is_held_twice in any::<bool>(),
    ) {
        let limits = Limits { stream_window_bytes: window, ..Limits::default() };
        let (mut client, mut server) = (Client::new(Limits::default()), Server::new(limits));
        let headers = [("x-a", "b")];
        let head = H2RequestBlock::new("POST", Scheme::Http, "h", "/", &headers).unwrap();
        // The client then knows the window.
        exchange(&mut client, &mut server, None);
        let stream = client.request(&head, BodyLength::Bytes(body as u64)).unwrap();
        let mut rest = vec![7; body];
        let output = client.output().to_vec();
        client.sent(output.len());
        let mut held = None;
        let mut input = output.as_slice();
        while let (bytes, Some(event)) = server.advance(input).unwrap() {
            input = &input[bytes..];
            if let ServerEvent::Head { stream, .. } = event {
                held = Some(stream);
            }
        }
        let held = held.unwrap();
        server.hold(held);
        if is_held_twice {
            server.hold(held);
        }
        let taken = exchange(&mut client, &mut server, Some((stream, &mut rest)));
        let window = usize::try_from(window).unwrap();
        prop_assert_eq!(taken, body.min(window));
        server.release(held);
        let more = exchange(&mut client, &mut server, Some((stream, &mut rest)));
        prop_assert_eq!(taken + more, body);
    }
}
