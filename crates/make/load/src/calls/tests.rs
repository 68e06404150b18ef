use proptest::prelude::*;

use super::*;

fn call(messages: &[Vec<u8>], count: u64, every: Option<Nanos>) -> (Call, Vec<u8>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for message in messages {
        write_message(message, false, &mut bytes).unwrap();
        ends.push(bytes.len());
    }
    let call = Call {
        ends: ends.into(),
        count,
        every,
        deadline: None,
        server_streams: true,
    };
    (call, bytes)
}

proptest! {
    #[test]
    fn for_all_rooms_the_messages_of_a_call_go_out_in_turn_and_whole(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5),
        count in 1_u64..20,
        rooms in prop::collection::vec(1_usize..9, 1..8),
    ) {
        let (call, bytes) = call(&messages, count, None);
        let (mut outflow, mut out, mut has_ended) = (CallUpload::default(), Vec::new(), false);
        for room in rooms.into_iter().cycle() {
            let mut left = room;
            outflow.send(&call, &bytes, (Moment::new(0), Moment::new(0)), |bytes, is_last| {
                assert!(!has_ended);
                let taken = bytes.len().min(left);
                left -= taken;
                out.extend_from_slice(&bytes[..taken]);
                has_ended = is_last && taken == bytes.len();
                Some(taken)
            });
            if outflow.sent == count {
                break;
            }
        }
        let mut all = Vec::new();
        for message in messages.iter().cycle().take(usize::try_from(count).unwrap()) {
            write_message(message, false, &mut all).unwrap();
        }
        prop_assert!(has_ended && out == all);
    }

    #[test]
    fn for_all_times_no_message_of_a_paced_call_goes_out_before_it_is_due(
        looks in prop::collection::vec(0_u64..400, 1..20),
    ) {
        let (call, bytes) = call(&[vec![1]], 10, Some(Nanos::new(100)));
        let (mut outflow, mut now) = (CallUpload::default(), 1000);
        for later in looks {
            now += later;
            let times = (Moment::new(1000), Moment::new(now));
            outflow.send(&call, &bytes, times, |bytes, _| Some(bytes.len()));
            let due = ((now - 1000) / 100 + 1).min(10);
            prop_assert_eq!(outflow.sent, due);
            let next = (due < 10).then(|| Moment::new(1000 + 100 * due));
            prop_assert_eq!(outflow.due, next);
        }
    }
}

/// One message behind its head.
fn framed(message: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(message, is_compressed, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_way_in_which_an_answer_is_none_has_a_name() {
    let once = framed(b"a", false);
    let grpc = |body: &[u8], status| CallResponse {
        is_grpc: true,
        status,
        ..response(body)
    };
    let coded = |has_coding| CallResponse {
        has_coding,
        ..grpc(&framed(b"a", true), Some(0))
    };
    let well = Ok((CallEnd::Ok, 200));
    let none = |end| Err(CallTrouble(end));
    for (response, served, server_streams, expected) in [
        (grpc(&once, Some(0)), 200, false, well),
        (grpc(&[], Some(0)), 200, true, well),
        (
            grpc(&[], Some(14)),
            200,
            false,
            Ok((CallEnd::Unavailable, 503)),
        ),
        (
            grpc(&once[..3], Some(1)),
            200,
            false,
            Ok((CallEnd::Cancelled, 499)),
        ),
        (
            grpc(&[], Some(99)),
            200,
            false,
            Ok((CallEnd::StatusOther, 500)),
        ),
        (response(b"<html>"), 502, false, Ok((CallEnd::NotGrpc, 502))),
        (response(b"<html>"), 200, false, none(CallEnd::NotGrpc)),
        (grpc(&once, None), 200, false, none(CallEnd::NoStatus)),
        (
            grpc(b"\x07abcd", Some(0)),
            200,
            false,
            none(CallEnd::BadFrame),
        ),
        (
            grpc(&once[..3], Some(0)),
            200,
            true,
            none(CallEnd::CutShort),
        ),
        (grpc(&[], Some(0)), 200, false, none(CallEnd::WrongCount)),
        (
            grpc(&[once.clone(), once.clone()].concat(), Some(0)),
            200,
            false,
            none(CallEnd::WrongCount),
        ),
        (coded(true), 200, false, well),
        (coded(false), 200, false, none(CallEnd::BadFrame)),
    ] {
        let shown = format!("{response:?}");
        assert_eq!(
            response.conclude(served, server_streams),
            expected,
            "{shown}"
        );
    }
}

/// A response with this body.
fn response(body: &[u8]) -> CallResponse {
    let mut response = CallResponse {
        is_grpc: true,
        ..CallResponse::default()
    };
    response.body(body, Moment::new(1));
    CallResponse {
        is_grpc: false,
        ..response
    }
}
