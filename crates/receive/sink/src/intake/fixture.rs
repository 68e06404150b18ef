//! Messages and sites for tests.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::protobuf::MessageWriter;
use stillwell_metric::{Labels, SinkShard};

use super::site::{Intake, Site};
use crate::ledger::Stamps;

/// A message of these fields.
pub(super) fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = MessageWriter::default();
    for (field, bytes) in fields {
        message.bytes(*field, bytes);
    }
    message.into_bytes()
}

/// The site of one connection to `intake`.
pub(super) fn site(intake: Intake) -> Site {
    Site {
        intake: Arc::new(intake),
        shard: Arc::new(SinkShard::new(Labels::none())),
        stamps: Rc::new(RefCell::new(Stamps::new(None, None))),
        steering: None,
        is_cut: Rc::default(),
    }
}
