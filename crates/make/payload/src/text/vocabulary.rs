//! Names and words, some drawn again for each set.

use stillwell_units::Seed;

use super::{Fragment, PieceWriter};
use crate::random::Random;

/// Names of things, as one set uses them.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    hosts: Box<[Fragment; 256]>,
    users: Box<[Fragment; 256]>,
}

impl Vocabulary {
    /// Draws the names.
    pub(crate) fn new(seed: Seed) -> Self {
        let mut random = Random::new(seed);
        let mut hosts = Box::new([Fragment::new(""); 256]);
        for host in hosts.iter_mut() {
            let role = random.choose(&ROLES);
            let site = random.choose(&SITES);
            let zone = random.choose(&ZONES);
            *host = Fragment::new(&format!("{role}-{:02}.{site}.{zone}", random.below(100)));
        }
        let mut users = Box::new([Fragment::new(""); 256]);
        for user in users.iter_mut() {
            let mut name = String::new();
            for _ in 0..2 + random.bits(1) {
                let syllable: &str = random.choose::<&str, 32>(&SYLLABLES);
                name.push_str(syllable);
            }
            if random.one_in_power_of_two(2) {
                name.push_str(&random.below(1000).to_string());
            }
            *user = Fragment::new(&name);
        }
        Self { hosts, users }
    }

    /// The names of machines without their domain.
    pub(crate) fn short_hosts(&self) -> Box<[Fragment; 256]> {
        Box::new(self.hosts.map(|host| {
            let text = host.text();
            Fragment::new(text.split_once('.').map_or(text, |(name, _)| name))
        }))
    }

    #[inline(always)]
    pub(crate) fn host(&self, random: &mut Random) -> &Fragment {
        random.choose(&self.hosts)
    }

    #[inline(always)]
    pub(crate) fn user(&self, random: &mut Random) -> &Fragment {
        random.choose(&self.users)
    }
}

/// The name of a program or service.
#[inline(always)]
pub(crate) fn application(random: &mut Random) -> &'static Fragment {
    random.choose(&APPLICATIONS)
}

/// A common word.
#[inline(always)]
pub(crate) fn word(random: &mut Random) -> &'static Fragment {
    random.choose(&WORDS)
}

/// Two to four segments, the last sometimes a number or an identity.
#[inline(always)]
pub(crate) fn path(out: &mut PieceWriter<'_>, random: &mut Random) {
    for _ in 0..2 + random.bits(1) {
        out.fixed(b"/");
        out.fragment(word(random));
    }
    match random.bits(2) {
        0 => {
            out.fixed(b"/");
            out.random_number(random);
        }
        1 => {
            out.fixed(b"/");
            out.random_hexadecimal(random);
        }
        _ => {}
    }
}

/// An IPv4 address.
#[inline(always)]
pub(crate) fn address(out: &mut PieceWriter<'_>, random: &mut Random) {
    out.number(1 + random.below(223));
    out.fixed(b".");
    out.byte_and_stop(random.byte());
    out.byte_and_stop(random.byte());
    out.number(u16::from(random.byte()));
}

#[rustfmt::skip]
const ROLES: [&str; 32] = [
    "api", "archive", "auth", "batch", "billing", "broker", "cache", "cart",
    "catalog", "crawler", "edge", "export", "feed", "gateway", "geo", "index",
    "ingest", "ledger", "mail", "media", "notify", "orders", "payments", "proxy",
    "queue", "relay", "report", "search", "session", "stock", "vault", "worker",
];

#[rustfmt::skip]
const SITES: [&str; 16] = [
    "ams1", "arn2", "bom1", "dub3", "fra2", "gru1", "hel1", "iad4",
    "jnb1", "lhr2", "nrt3", "ord1", "pdx2", "sin1", "syd2", "zrh1",
];

const ZONES: [&str; 4] = ["example.com", "example.net", "example.org", "test"];

#[rustfmt::skip]
const SYLLABLES: [&str; 32] = [
    "an", "ba", "bel", "da", "dor", "el", "fa", "gus", "ha", "in", "jo", "ka", "ke", "la", "li", "lo",
    "ma", "mi", "na", "ne", "or", "pa", "ra", "ri", "ro", "sa", "sel", "ta", "ti", "vi", "wen", "zo",
];

#[rustfmt::skip]
static APPLICATIONS: [Fragment; 64] = Fragment::all([
    "admission", "alertd", "assetd", "auditor", "backupd", "balancer", "billing-api", "blobstore",
    "cartd", "checkout", "collector", "composer", "configd", "consumer", "courier", "crond",
    "dispatch", "dnscache", "exporter", "fetcher", "firewall", "frontend", "fulfilment", "gatekeeper",
    "hookd", "identity", "importer", "indexer", "inventory", "janitor", "journal", "keyring",
    "leases", "ledgerd", "loader", "mailer", "matcher", "metering", "mirror", "monitor",
    "notifier", "optimizer", "packer", "planner", "pricing", "profile", "quota", "ranker",
    "reaper", "recommender", "replicator", "resizer", "router", "scheduler", "search-api", "shipper",
    "signer", "snapshotd", "storefront", "throttler", "tokend", "uploader", "watcher", "webhooks",
]);

#[rustfmt::skip]
static WORDS: [Fragment; 256] = Fragment::all([
    "account", "acorn", "active", "address", "agent", "album", "alias", "amber", "anchor", "answer",
    "apple", "april", "arch", "argument", "arrow", "asset", "atlas", "autumn", "avenue", "badge",
    "ballot", "bamboo", "banner", "barrel", "basket", "batch", "beacon", "bench", "birch",
    "blanket", "blossom", "border", "bottle", "branch", "breeze", "bridge", "bucket", "budget",
    "button", "cabin", "cable", "camera", "candle", "canvas", "carbon", "cargo", "castle", "cedar",
    "cellar", "chain", "chapter", "charge", "cherry", "circle", "client", "cloud", "clover",
    "cluster", "cobalt", "coffee", "column", "comet", "copper", "coral", "corner", "cotton",
    "coupon", "cradle", "crane", "credit", "cursor", "cycle", "daily", "dawn", "debit", "delta",
    "desert", "device", "dialog", "digest", "domain", "draft", "drift", "dune", "eagle", "early",
    "echo", "effort", "elder", "element", "ember", "engine", "entry", "epoch", "event", "fabric",
    "falcon", "family", "feather", "fern", "fiber", "field", "filter", "flame", "folder", "forest",
    "forward", "frame", "frost", "garden", "gate", "ginger", "glacier", "glass", "granite",
    "gravel", "group", "guest", "handle", "harbor", "harvest", "hazel", "header", "hill", "hollow",
    "honey", "horizon", "image", "index", "inlet", "invoice", "iron", "island", "item", "ivory",
    "jacket", "jasmine", "journey", "juniper", "kernel", "kettle", "key", "ladder", "lagoon",
    "lantern", "larch", "laurel", "leader", "leaf", "ledger", "lemon", "lesson", "letter", "level",
    "lilac", "limit", "linen", "locker", "lotus", "lumen", "magnet", "maple", "marble", "margin",
    "market", "meadow", "member", "memo", "merge", "meteor", "mirror", "mode", "moment", "monsoon",
    "mosaic", "moss", "needle", "nectar", "node", "north", "notice", "number", "oasis", "object",
    "ocean", "offer", "olive", "onyx", "orbit", "orchard", "order", "origin", "osprey", "packet",
    "page", "panel", "parcel", "partner", "pebble", "pencil", "pepper", "picture", "pine", "plain",
    "planet", "pocket", "policy", "portal", "prairie", "product", "profile", "pulse", "quarry",
    "quartz", "query", "quiet", "radar", "rain", "range", "raven", "record", "reef", "refund",
    "region", "report", "resource", "ribbon", "ridge", "river", "rocket", "saddle", "sample",
    "sandbox", "season", "sector", "session", "shadow", "shelf", "signal", "silver", "sketch",
    "slope", "spruce", "station", "stream", "summit", "tablet", "thicket", "thread", "timber",
    "topic", "tunnel", "valley", "vessel", "willow", "winter",
]);
