//! Connections on which every request of fixed length gets an answer of fixed
//! length.

use std::rc::Rc;

use stillwell_wire::Stream;
use stillwell_wire::server::Activity;
use tokio::io::AsyncWriteExt as _;

use crate::worker::Worker;

/// Answers are written together up to this length.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Answers the requests of `stream` until its peer closes it or the worker ends.
/// What is in them does not matter.
pub(crate) async fn answer(
    worker: Rc<Worker>,
    (request_bytes, response_bytes): (usize, usize),
    mut stream: Stream,
    activity: Activity,
) {
    let shard = &worker.base.shard;
    let mut reads = worker.reads(activity);
    let zeros = vec![0; ANSWER_BYTES_MAX];
    let mut unanswered = 0;
    loop {
        match worker.receive(&mut stream, &mut reads, |_| {}).await {
            Some(Ok(0)) | None => break,
            Some(Ok(length)) => {
                shard.bytes.add(length as u64);
                unanswered += length;
            }
            Some(Err(_)) => {
                shard.errors.add(1);
                return;
            }
        }
        let requests = unanswered / request_bytes;
        unanswered %= request_bytes;
        shard.messages.add(requests as u64);
        shard.events.add(requests as u64);
        let mut left = requests * response_bytes;
        while left > 0 {
            let length = left.min(zeros.len());
            if stream.write_all(&zeros[..length]).await.is_err() {
                return;
            }
            left -= length;
        }
    }
    shard.errors.add(u64::from(unanswered > 0));
}
