//! Amazon's SQS, as a program that fetches messages sees it: each request gets as many
//! new messages as it requests, in JSON or in the older form with XML.

use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::service::{Answer, Request, Service};

/// More than so many are never handed out at once.
const MESSAGES_MAX: u64 = 10;

const JSON: &str = "application/x-amz-json-1.0";
const XML: &str = "text/xml";

/// The digest by which clients check bytes that they send or receive.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Md5::digest(bytes))
}

/// A queue that never ends.
#[derive(Debug, Default)]
pub(super) struct Sqs {
    next_message: AtomicU64,
}

/// A message that is handed out.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Message {
    id: String,
    body: String,
}

/// A request, in either form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct SqsRequest {
    action: String,
    messages: u64,
    /// Those of messages to be deleted, by their places in the request.
    ids: Vec<String>,
}

impl Service for Sqs {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if request.method != "POST" {
            return Answer::status(405);
        }
        match request.operation.strip_prefix("AmazonSQS.") {
            Some(action) => match SqsRequest::of_json(action, request.body) {
                Some(question) => self.answer_json(&question),
                None => refuse_json("SerializationException").malformed(),
            },
            None => match SqsRequest::of_form(request.body) {
                Some(question) => self.answer_xml(&question),
                None => Answer::with_body(400, XML, &b"<ErrorResponse/>"[..]).malformed(),
            },
        }
    }
}

impl SqsRequest {
    fn of_json(action: &str, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let entries = body["Entries"].as_array().into_iter().flatten();
        let ids = entries.filter_map(|entry| entry["Id"].as_str().map(str::to_owned));
        Some(Self {
            action: action.to_owned(),
            messages: body["MaxNumberOfMessages"].as_u64().unwrap_or(1),
            ids: ids.collect(),
        })
    }

    fn of_form(body: &[u8]) -> Option<Self> {
        let mut question = Self {
            messages: 1,
            ..Self::default()
        };
        for pair in str::from_utf8(body).ok()?.split('&') {
            let (key, value) = pair.split_once('=')?;
            match key {
                "Action" => value.clone_into(&mut question.action),
                "MaxNumberOfMessages" => question.messages = value.parse().ok()?,
                _ if key.starts_with("DeleteMessageBatchRequestEntry.") && key.ends_with(".Id") => {
                    question.ids.push(value.to_owned());
                }
                _ => {}
            }
        }
        (!question.action.is_empty()).then_some(question)
    }
}

impl Sqs {
    fn answer_json(&self, question: &SqsRequest) -> Answer {
        let body = match question.action.as_str() {
            "ReceiveMessage" => {
                let messages = self.hand_out(question.messages);
                let served = messages.len() as u64;
                let text_of = |message: &Message| {
                    json!({
                        "MessageId": message.id,
                        "ReceiptHandle": message.id,
                        "MD5OfBody": md5_hex(message.body.as_bytes()),
                        "Body": message.body,
                    })
                };
                let messages: Vec<Value> = messages.iter().map(text_of).collect();
                let body = json!({ "Messages": messages }).to_string();
                return Answer::with_body(200, JSON, body.into_bytes()).serving(served);
            }
            "DeleteMessage" => json!({}),
            "DeleteMessageBatch" => {
                let ids = question.ids.iter().map(|id| json!({ "Id": id }));
                json!({ "Successful": ids.collect::<Vec<_>>(), "Failed": [] })
            }
            "GetQueueAttributes" => json!({ "Attributes": {} }),
            _ => return refuse_json("UnsupportedOperation"),
        };
        Answer::with_body(200, JSON, body.to_string().into_bytes())
    }

    fn answer_xml(&self, question: &SqsRequest) -> Answer {
        let action = question.action.as_str();
        let (mut served, mut result) = (0, String::new());
        match action {
            "ReceiveMessage" => {
                for message in self.hand_out(question.messages) {
                    served += 1;
                    result.push_str(&format!(
                        "<Message><MessageId>{id}</MessageId><ReceiptHandle>{id}</ReceiptHandle>\
                         <MD5OfBody>{md5}</MD5OfBody><Body>{body}</Body></Message>",
                        id = message.id,
                        md5 = md5_hex(message.body.as_bytes()),
                        body = escaped(&message.body),
                    ));
                }
            }
            "DeleteMessageBatch" => {
                for id in &question.ids {
                    let id = escaped(id);
                    result.push_str(&format!(
                        "<DeleteMessageBatchResultEntry><Id>{id}</Id></DeleteMessageBatchResultEntry>"
                    ));
                }
            }
            "DeleteMessage" | "GetQueueAttributes" => {}
            _ => return Answer::with_body(501, XML, &b"<ErrorResponse/>"[..]),
        }
        let body = format!(
            "<{action}Response><{action}Result>{result}</{action}Result>\
             <ResponseMetadata><RequestId>stillwell</RequestId></ResponseMetadata></{action}Response>"
        );
        Answer::with_body(200, XML, body.into_bytes()).serving(served)
    }

    fn hand_out(&self, count: u64) -> Vec<Message> {
        let count = count.clamp(1, MESSAGES_MAX);
        let first = self.next_message.fetch_add(count, Ordering::Relaxed);
        (first..first + count).map(message).collect()
    }
}

fn refuse_json(kind: &str) -> Answer {
    let body = json!({ "__type": format!("com.amazonaws.sqs#{kind}") }).to_string();
    Answer::with_body(400, JSON, body.into_bytes())
}

/// The message of this number: an access log's line in JSON, different for each.
fn message(number: u64) -> Message {
    let random = mixed(number);
    let octet = |shift: u32| random >> shift & 0xff;
    let methods = ["GET", "POST", "PUT", "DELETE"];
    let statuses = [200, 201, 204, 301, 400, 404, 500, 503];
    let choice = |length: usize, shift: u32| usize::try_from(random >> shift).unwrap_or(0) % length;
    let body = json!({
        "host": format!("{}.{}.{}.{}", octet(0), octet(8), octet(16), octet(24)),
        "sequence": number,
        "method": methods[choice(methods.len(), 32)],
        "request": format!("/item/{}", random >> 40),
        "status": statuses[choice(statuses.len(), 35)],
        "bytes": random >> 44,
    });
    let (high, low) = (mixed(random), mixed(random ^ number));
    Message {
        id: format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        ),
        body: body.to_string(),
    }
}

/// A number that looks random; different ones for different numbers.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond(sqs: &Sqs, operation: &str, body: &str) -> Answer {
        sqs.answer(&Request {
            method: "POST",
            path: "/",
            content_type: "",
            operation,
            body: body.as_bytes(),
        })
    }

    fn text(answer: &Answer) -> String {
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    #[test]
    fn messages_are_handed_out_in_json_each_once() {
        let sqs = Sqs::default();
        let receive = "AmazonSQS.ReceiveMessage";
        let first = respond(&sqs, receive, r#"{"QueueUrl":"q","MaxNumberOfMessages":3}"#);
        let second = respond(
            &sqs,
            receive,
            r#"{"QueueUrl":"q","MaxNumberOfMessages":50}"#,
        );
        assert_eq!((first.served, second.served), (3, 10));
        let mut bodies = Vec::new();
        for answer in [&first, &second] {
            let read: Value = serde_json::from_slice(&answer.body).unwrap();
            for message in read["Messages"].as_array().unwrap() {
                let body = message["Body"].as_str().unwrap();
                assert_eq!(message["MD5OfBody"], md5_hex(body.as_bytes()));
                assert_eq!(message["MessageId"].as_str().unwrap().len(), 36);
                bodies.push(body.to_owned());
            }
        }
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!(bodies.len(), 13);
        let deleted = respond(
            &sqs,
            "AmazonSQS.DeleteMessageBatch",
            r#"{"Entries":[{"Id":"a"},{"Id":"b"}]}"#,
        );
        assert_eq!(
            text(&deleted),
            r#"{"Failed":[],"Successful":[{"Id":"a"},{"Id":"b"}]}"#
        );
        assert_eq!(respond(&sqs, "AmazonSQS.CreateQueue", "{}").status, 400);
        assert!(respond(&sqs, receive, "no json").is_malformed);
    }

    #[test]
    fn messages_are_handed_out_in_xml() {
        let sqs = Sqs::default();
        let form = "Action=ReceiveMessage&Version=2012-11-05&QueueUrl=q&MaxNumberOfMessages=2&WaitTimeSeconds=1";
        let answer = respond(&sqs, "", form);
        assert_eq!((answer.status, answer.served), (200, 2));
        assert_eq!(text(&answer).matches("<Message>").count(), 2);
        let form = "Action=DeleteMessageBatch&DeleteMessageBatchRequestEntry.1.Id=m1&DeleteMessageBatchRequestEntry.2.Id=m2";
        assert!(text(&respond(&sqs, "", form)).contains("<Id>m2</Id>"));
        assert_eq!(respond(&sqs, "", "Action=CreateQueue").status, 501);
        assert_eq!(respond(&sqs, "", "nothing").status, 400);
    }
}
