//! The links of a run whose target is in a separate network.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// The address of generators and observers on the link to the target.
pub const INPUT_OURS: [u8; 4] = [10, 64, 1, 1];
/// The address of the target on that link: generators send to it.
pub const INPUT_TARGET: [u8; 4] = [10, 64, 1, 2];
/// The address of the target on the link to sinks.
pub const OUTPUT_TARGET: [u8; 4] = [10, 64, 2, 1];
/// The address of sinks on that link: they listen there.
pub const OUTPUT_SINKS: [u8; 4] = [10, 64, 2, 2];

/// Both links, as they are when the run begins.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct NetworkPlan {
    /// Between generators and the target.
    pub input: LinkPlan,
    /// Between the target and sinks.
    pub output: LinkPlan,
}

/// State of one link, the same in both directions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LinkPlan {
    /// Of each million packets so many are lost at random.
    pub loss_per_million: u32,
    /// Bits in each second that pass in each direction; 0 for as many as can be.
    pub bits_per_second: u64,
    /// True if nothing passes.
    pub is_cut: bool,
    /// Delay of each packet.
    pub delay: Nanos,
    /// The features that are used in the run.
    pub ever: LinkUses,
}

/// The features that a link needs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LinkUses {
    /// Packets are lost.
    pub loss: bool,
    /// A rate is kept.
    pub rate: bool,
    /// Packets are delayed: such a link is made another way.
    pub delay: bool,
}

/// A change of a link.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LinkChange {
    /// See [`LinkPlan::loss_per_million`].
    pub loss_per_million: Option<u32>,
    /// See [`LinkPlan::bits_per_second`].
    pub bits_per_second: Option<u64>,
    /// See [`LinkPlan::is_cut`].
    pub is_cut: Option<bool>,
    /// See [`LinkPlan::delay`].
    pub delay: Option<Nanos>,
}

impl LinkPlan {
    /// The same after `change`.
    #[must_use]
    pub fn changed(self, change: &LinkChange) -> Self {
        Self {
            loss_per_million: change.loss_per_million.unwrap_or(self.loss_per_million),
            bits_per_second: change.bits_per_second.unwrap_or(self.bits_per_second),
            is_cut: change.is_cut.unwrap_or(self.is_cut),
            delay: change.delay.unwrap_or(self.delay),
            ever: self.ever.or(&LinkUses {
                loss: change.loss_per_million.is_some_and(|loss| loss > 0),
                rate: change.bits_per_second.is_some_and(|bits| bits > 0),
                delay: change.delay.is_some_and(|delay| delay > Nanos::ZERO),
            }),
        }
    }

    /// The same, made for `change` as well.
    #[must_use]
    pub fn fit_for(self, change: &LinkChange) -> Self {
        let ever = self.changed(change).ever;
        Self { ever, ..self }
    }
}

impl LinkUses {
    /// The features of both.
    #[must_use]
    pub const fn or(self, other: &Self) -> Self {
        Self {
            loss: self.loss || other.loss,
            rate: self.rate || other.rate,
            delay: self.delay || other.delay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_for_what_ever_happens_to_it_and_starts_as_it_was() {
        let loss = LinkChange {
            loss_per_million: Some(10_000),
            ..LinkChange::default()
        };
        let calm = LinkChange {
            loss_per_million: Some(0),
            bits_per_second: Some(0),
            delay: Some(Nanos::ZERO),
            ..LinkChange::default()
        };
        let link = LinkPlan::default().fit_for(&calm);
        assert_eq!(link, LinkPlan::default());
        let link = link.fit_for(&loss);
        assert_eq!((link.loss_per_million, link.ever.loss), (0, true));
        let link = link.changed(&loss).changed(&calm);
        assert_eq!((link.loss_per_million, link.ever.loss), (0, true));
        assert!(!link.ever.rate && !link.ever.delay);
    }
}
