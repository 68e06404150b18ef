//! Log records as bulk requests of Elasticsearch: a line that says what to do,
//! then the record.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BulkAction, ElasticsearchPlan};

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, Messages, application};

/// No event whose message has one character is longer, without the index's
/// name, with both line feeds.
const FLOOR: usize = 448;

pub(crate) fn floor(format: &PayloadFormat) -> usize {
    FLOOR + plan_of(format).index.len()
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let ElasticsearchPlan { index, action } = plan_of(recipe.format);
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let head = match action {
        BulkAction::Create => format!(r#"{{"create":{{"_index":"{index}"}}}}"#),
        BulkAction::Index => format!(r#"{{"index":{{"_index":"{index}","_id":""#),
    };
    Box::new(Elasticsearch {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        event_buffer: EventBuffer::new(),
        head: head.into_bytes().into(),
        has_identity: action == BulkAction::Index,
        message_max: recipe.event_max - (floor(recipe.format) - 1),
        slots: recipe.slots,
    })
}

fn plan_of(format: &PayloadFormat) -> ElasticsearchPlan {
    match format {
        PayloadFormat::Elasticsearch(plan) => plan.clone(),
        _ => ElasticsearchPlan::default(),
    }
}

/// Fields are those of the Elastic Common Schema.
#[derive(Debug)]
struct Elasticsearch {
    random: Random,
    clock: Clock,
    messages: Messages,
    event_buffer: EventBuffer,
    head: Box<[u8]>,
    has_identity: bool,
    message_max: usize,
    slots: SlotUse,
}

impl Writer for Elasticsearch {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        out.bytes(&self.head);
        if self.has_identity {
            out.random_hexadecimal(&mut random);
            out.random_hexadecimal(&mut random);
            out.random_hexadecimal(&mut random);
            out.fixed(br#""}}"#);
        }
        out.fixed(b"\n{\"@timestamp\":\"");
        self.clock.rfc3339(&mut out);
        out.fixed(br#"","message":""#);
        let room = self.message_max;
        let slot = self.messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(br#"","log":{"level":""#);
        out.fragment(random.choose(&LEVELS));
        out.fixed(br#""},"host":{"name":""#);
        out.fragment(self.messages.vocabulary.host(&mut random));
        out.fixed(br#""},"service":{"name":""#);
        out.fragment(application(&mut random));
        out.fixed(br#""},"process":{"pid":"#);
        out.number(1 + random.below(999));
        out.number_2(random.below(100));
        out.fixed(br#"},"trace":{"id":""#);
        for _ in 0..4 {
            out.random_hexadecimal(&mut random);
        }
        out.fixed(br#""},"event":{"duration":"#);
        out.random_number(&mut random);
        out.fixed(b"}}\n");
        self.random = random;
        Some(out.event(slot))
    }
}

#[rustfmt::skip]
static LEVELS: [Fragment; 8] = Fragment::all([
    "info", "info", "info", "info", "debug", "debug", "warn", "error",
]);
