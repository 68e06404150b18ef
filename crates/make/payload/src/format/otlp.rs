//! The common part of OpenTelemetry's formats: resources, their scopes, and the log records or
//! metrics in them. An event is one resource with its content; a block of them is one export
//! request, whose resources simply follow one another.

use stillwell_units::Nanos;

use crate::contract::{Event, Joint, Recipe, Writer};
use crate::mix::{Order, index};
use crate::protobuf::{HEAD_MAX, Reverse};

pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod traces;
mod tree;

use tree::{Item, Tree};

/// Writes what lies within scopes.
trait Leaf: std::fmt::Debug + Send {
    /// Goes on to the next event.
    fn advance(&mut self);

    /// Bytes that surely are enough for `item`.
    fn bound(&self, item: &Item) -> usize;

    /// Writes `item` with its head. The first of an event gives how many bytes
    /// were written before its slot and including it, where slots are in use.
    fn write(
        &mut self,
        out: &mut Reverse<'_>,
        tree: &Tree,
        number: usize,
        first: bool,
    ) -> Option<usize>;

    /// As [`Writer::time`].
    fn time(&self) -> Option<Nanos> {
        None
    }
}

/// Walks through all resources, over and over. A resource that is larger than
/// an event comes in several.
#[derive(Debug)]
struct Walk<L> {
    tree: Tree,
    order: Order,
    leaf: L,
    room: Box<[u8]>,
    /// The place in a resource to continue: its number, a scope's and an item's.
    rest: Option<(usize, usize, usize)>,
}

impl<L: Leaf> Walk<L> {
    fn new(tree: Tree, leaf: L, recipe: &Recipe<'_>) -> Self {
        let order = recipe.seed.derive("order", 0);
        Self {
            order: Order::new(tree.resources.len() as u64, &order),
            tree,
            leaf,
            room: vec![0; recipe.event_max].into_boxed_slice(),
            rest: None,
        }
    }
}

impl<L: Leaf> Writer for Walk<L> {
    fn next(&mut self) -> Option<Event<'_>> {
        let tree = &self.tree;
        let (number, first_scope, mut item) = self.rest.take().unwrap_or_else(|| {
            let number = index(self.order.next());
            let scope = tree.resources[number].first;
            (number, scope, tree.scopes[scope].first)
        });
        let resource = &tree.resources[number];
        let mut out = Reverse::new(&mut self.room);
        let (mut units, mut slot) = (0, None);
        self.leaf.advance();
        for scope_number in first_scope..resource.last {
            let scope = &tree.scopes[scope_number];
            let scope_start = out.len();
            item = item.max(scope.first);
            let heads = scope.head.len + resource.head.len + 2 * HEAD_MAX;
            while item < scope.last && self.leaf.bound(&tree.items[item]) + heads <= out.left() {
                let place = self.leaf.write(&mut out, tree, item, units == 0);
                slot = slot.or(place);
                units += 1;
                item += 1;
            }
            if out.len() > scope_start {
                out.raw(tree.text(scope.head));
                out.wrap(2, scope_start);
            }
            if item < scope.last {
                debug_assert!(units > 0, "the floor has room for every item");
                self.rest = Some((number, scope_number, item));
                break;
            }
        }
        out.raw(tree.text(resource.head));
        out.wrap(1, 0);
        let bytes = out.finish();
        Some(Event {
            bytes,
            slot: slot.map(|from_end| bytes.len() - from_end),
            units,
            joint: Joint::Frame,
        })
    }

    fn time(&self) -> Option<Nanos> {
        self.leaf.time()
    }
}
