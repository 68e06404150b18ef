//! Log records as bulk requests of Elasticsearch: a line that says what to do,
//! then the record.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BulkAction, ElasticsearchPlan};

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Messages, Paper, application};

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
        paper: Paper::new(),
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
    paper: Paper,
    head: Box<[u8]>,
    has_identity: bool,
    message_max: usize,
    slots: SlotUse,
}

impl Writer for Elasticsearch {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        self.clock.advance(&mut random);
        pen.bytes(&self.head);
        if self.has_identity {
            pen.random_hexadecimal(&mut random);
            pen.random_hexadecimal(&mut random);
            pen.random_hexadecimal(&mut random);
            pen.fixed(br#""}}"#);
        }
        pen.fixed(b"\n{\"@timestamp\":\"");
        self.clock.rfc3339(&mut pen);
        pen.fixed(br#"","message":""#);
        let room = self.message_max;
        let slot = self.messages.write(&mut pen, &mut random, room, self.slots);
        pen.fixed(br#"","log":{"level":""#);
        pen.fragment(random.choose(&LEVELS));
        pen.fixed(br#""},"host":{"name":""#);
        pen.fragment(self.messages.vocabulary.host(&mut random));
        pen.fixed(br#""},"service":{"name":""#);
        pen.fragment(application(&mut random));
        pen.fixed(br#""},"process":{"pid":"#);
        pen.number(1 + random.below(999));
        pen.number_2(random.below(100));
        pen.fixed(br#"},"trace":{"id":""#);
        for _ in 0..4 {
            pen.random_hexadecimal(&mut random);
        }
        pen.fixed(br#""},"event":{"duration":"#);
        pen.random_number(&mut random);
        pen.fixed(b"}}\n");
        self.random = random;
        Some(pen.event(slot))
    }
}

#[rustfmt::skip]
static LEVELS: [Fragment; 8] = Fragment::all([
    "info", "info", "info", "info", "debug", "debug", "warn", "error",
]);
