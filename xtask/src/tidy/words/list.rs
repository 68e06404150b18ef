//! The banned words, and what to write instead. Each is a whole word or a series of
//! whole words; upper and lower case are the same.

/// A banned word and its replacement.
pub(super) type Ban = (&'static str, &'static str);

/// Words that are not in identifiers, not as a part between underscores or capitals either.
pub(super) const NAME_PARTS: &[Ban] = &[
    ("afar", "remote"),
    ("aloft", "in flight"),
    ("anybody", "name the kind"),
    ("asked", "requested"),
    ("asks", "requests"),
    ("beaten", "sample batch"),
    ("contender", "target"),
    ("contenders", "targets"),
    ("converse", "run session"),
    ("door", "context, connection slot"),
    ("doubled", "duplicated"),
    ("doubt", "warning"),
    ("doubts", "warnings"),
    ("gravest", "worst"),
    ("hear", "receive"),
    ("heard", "received"),
    ("hears", "receives"),
    ("hinder", "slowdown"),
    ("hindrance", "slowdown"),
    ("lab", "suite, experiment"),
    ("labs", "suites, experiments"),
    ("lane", "connection slot"),
    ("lanes", "connection slots"),
    ("nobody", "name the kind"),
    ("parting", "connection end"),
    ("patience", "timeout"),
    ("settle", "finish, resolve"),
    ("settled", "finished, resolved"),
    ("settles", "finishes, resolves"),
    ("sighting", "match"),
    ("somebody", "name the kind"),
    ("stands", "is, position"),
    ("subject", "target"),
    ("subjects", "targets"),
    ("talk", "session, exchange"),
    ("tell", "report, print, send"),
    ("teller", "reporter, exporter"),
    ("telling", "reporting, export"),
    ("tells", "reports, exports"),
    ("told", "reported, message"),
    ("unasked", "unrequested"),
    ("untold", "export failed"),
    ("vouch", "guarantee"),
    ("vouches", "guarantees"),
    ("whoever", "name the kind"),
];

/// Words that are not the whole name of a variable, parameter, field, function or module.
pub(super) const BINDINGS: &[Ban] = &[
    ("found", "result, or the name of the value"),
    ("it", "the name of the value"),
    ("one", "the name of the value"),
    ("other", "the name of the value"),
    ("others", "the name of the values"),
    ("own", "the name of the value"),
];

/// Words that are not in comments, texts of the program and documents.
pub(super) const PHRASES: &[Ban] = &[
    ("anew", "again"),
    ("anybody", "name the reader or the program"),
    ("are had", "exist, are available"),
    ("ask", "request, read, poll"),
    ("asked", "requested, given"),
    ("asks", "requests, reads"),
    ("aught", "anything"),
    ("be believed", "be trusted, be reliable"),
    ("be had", "be available"),
    ("became of", "happened to, the result of"),
    ("become of", "happen to, the result of"),
    ("becomes of", "happens to, the result of"),
    ("came of", "resulted from"),
    ("dear", "expensive"),
    ("doubt", "warning, uncertainty"),
    ("doubts", "warnings"),
    ("for want of", "without, for lack of"),
    ("gravest", "worst"),
    ("hear", "receive"),
    ("heard", "received"),
    ("hears", "receives"),
    ("in vain", "without an effect, without a result"),
    ("is done with", "has finished"),
    ("is had", "is available"),
    ("knows of", "has"),
    ("lab", "suite, experiment"),
    ("labs", "suites, experiments"),
    ("lest", "to prevent"),
    ("let in", "accepted, authenticated"),
    ("nobody", "no program, no reader"),
    ("nought", "zero, nothing"),
    ("ought", "must, should"),
    ("passed over", "skipped, ignored"),
    ("patience", "timeout"),
    ("rather than to", "instead of"),
    ("rests", "pauses, waits"),
    ("save for", "except"),
    ("save one", "except one"),
    ("seldom", "rarely"),
    ("shaken hands", "completed the handshake"),
    ("shakes hands", "completes a handshake"),
    ("so long", "for so long as: while"),
    ("so that", "so, to, which"),
    ("somebody", "name the program or the person"),
    ("stand", "are"),
    ("stands", "is"),
    ("stood", "was"),
    ("subject", "target"),
    ("subjects", "targets"),
    ("tell", "report, show, print"),
    ("tells", "reports, shows, prints"),
    ("thereof", "of it"),
    ("told", "reported, given, sent"),
    ("unasked", "without a request"),
    ("untold", "not exported, not reported"),
    ("upon", "on"),
    ("vouch", "guarantee"),
    ("vouches", "guarantees"),
    ("whatever", "any"),
    ("whichever", "the … that"),
    ("whoever", "a caller that, a program that"),
    ("whomever", "any"),
];

/// Words that are besides not in texts of the program: messages, keys, codes.
pub(super) const TEXT_PHRASES: &[Ban] = &[
    ("doubled", "duplicated"),
    ("had to be", "must be"),
    ("has to be", "must be"),
    ("have to be", "must be"),
];

/// Words that a doc comment does not begin with.
pub(super) const DOC_BEGINNINGS: &[&str] = &[
    "how", "what", "where", "whether", "which", "who", "whom", "whose", "why",
];

/// Replacement for a beginning of `DOC_BEGINNINGS`.
pub(super) const DOC_BEGINNING_INSTEAD: &str = "begin with a verb or a noun phrase";

/// Paths that may use a word, each with the word and the reason.
pub(super) const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/make/broker/",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "crates/make/generator/src/broker",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "crates/make/generator/tests/generator/broker.rs",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "crates/words/plan/src/generator/broker.rs",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "crates/input/config/src/spec/generator/broker.rs",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "fuzz/src/broker.rs",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "docs/brokers.md",
        "subject",
        "NATS calls its topics subjects",
    ),
    (
        "crates/compat/lading/",
        "subject",
        "files of lading use the word",
    ),
    (
        "crates/make/payload/",
        "lane",
        "a vector register has lanes",
    ),
    ("crates/make/stamp/", "lanes", "a vector register has lanes"),
];

/// The files that have the banned words as data.
pub(super) const LISTS: &[&str] = &["xtask/src/tidy/words/list.rs"];
