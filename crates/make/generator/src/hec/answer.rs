//! Answers of Splunk's HTTP event collector.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The number of the acknowledgement of a request, where the answer has one.
pub(super) fn ack_id(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Taken {
        #[serde(rename = "ackId")]
        ack_id: u64,
    }
    let taken: Taken = serde_json::from_slice(body).ok()?;
    Some(taken.ack_id)
}

/// The query for the requests `ids`.
pub(super) fn write_question(ids: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(br#"{"acks":["#);
    for (index, id) in ids.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(id.to_string().as_bytes());
    }
    out.extend_from_slice(b"]}");
}

/// The requests that an answer says are kept, in order; `None` where it is no
/// answer.
pub(super) fn acknowledged(body: &[u8]) -> Option<Vec<u64>> {
    #[derive(Deserialize)]
    struct AcknowledgementsAnswer {
        acks: BTreeMap<u64, bool>,
    }
    let answer: AcknowledgementsAnswer = serde_json::from_slice(body).ok()?;
    let kept = answer.acks.into_iter().filter(|(_, is_kept)| *is_kept);
    Some(kept.map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_of_splunk_are_read() {
        let taken = br#"{"text":"Success","code":0,"ackId":17}"#;
        assert_eq!(ack_id(taken), Some(17));
        assert_eq!(ack_id(br#"{"text":"Success","code":0}"#), None);
        assert_eq!(ack_id(b"<html>"), None);
        let answer = br#"{"acks": {"3": true, "10": true, "4": false}}"#;
        assert_eq!(acknowledged(answer), Some(vec![3, 10]));
        assert_eq!(acknowledged(br#"{"text":"busy"}"#), None);
    }

    #[test]
    fn a_question_is_json() {
        let mut out = b"old".to_vec();
        write_question([1, 20].into_iter(), &mut out);
        assert_eq!(out, br#"{"acks":[1,20]}"#);
        write_question(std::iter::empty(), &mut out);
        assert_eq!(out, br#"{"acks":[]}"#);
    }

    proptest! {
        #[test]
        fn for_all_bytes_reading_an_answer_ends(body in prop::collection::vec(any::<u8>(), 0..80)) {
            ack_id(&body);
            acknowledged(&body);
        }
    }
}
