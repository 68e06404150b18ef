//! Codes of diagnostics, and their meanings.
//!
//! `W1..` are about shape, `W2..` about meaning, `W4..` are remarks on files of
//! other tools. Codes are kept for good: a code is never given a new meaning.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: &str = $code;)+

        /// Every code with its explanation, in the order of codes.
        pub const ALL: &[(&str, &str)] = &[$(($code, concat!($($doc, "\n"),+))),+];
    };
}

codes! {
    /// The file is not valid YAML.
    SYNTAX = "W100";
    /// A key that is not accepted in this place. Keys are never ignored silently, because a
    /// misspelled key would measure something else.
    UNKNOWN_KEY = "W101";
    /// A required key is missing.
    MISSING_KEY = "W102";
    /// A map, list or value where another type is expected.
    WRONG_SHAPE = "W103";
    /// A key that occurs twice in one map.
    DUPLICATE_KEY = "W104";
    /// Exactly one of several keys must be given.
    ONE_OF_KEYS = "W105";
    /// A key of another tool that is known but not supported.
    NOT_BUILT = "W106";
    /// A file or folder cannot be read.
    UNREADABLE = "W107";
    /// A word that is not one of the accepted words.
    UNKNOWN_WORD = "W110";
    /// A value that is not valid for its key.
    BAD_VALUE = "W111";
    /// A value has no unit, and none is assumed: write `10s`, `64 KiB` or `2500/s`.
    UNIT_MISSING = "W112";
    /// A value outside its bounds.
    OUT_OF_RANGE = "W113";
    /// A key that is accepted but was never read: a defect of Stillwell.
    UNREAD_KEY = "W199";
    /// Two items of one kind have the same name.
    SAME_NAME = "W201";
    /// Two sinks listen on the same address.
    SAME_ADDRESS = "W202";
    /// Nothing would be measured.
    NOTHING_MEASURED = "W203";
    /// A block larger than its transport carries.
    BLOCK_TOO_LARGE = "W204";
    /// A goal that cannot be measured with this workload.
    GOAL_WITHOUT_LOAD = "W205";
    /// A check without a bound, or whose bounds exclude each other.
    BAD_BOUNDS = "W206";
    /// The two rates of a ramp have different units.
    MIXED_UNITS = "W207";
    /// A path that must be absolute is not.
    RELATIVE_PATH = "W208";
    /// A generator sends directly to a sink of Stillwell, so the load bypasses the target.
    PAST_TARGET = "W209";
    /// There is no program to measure.
    NO_TARGET = "W210";
    /// There are fewer than two variants, or they do not differ, or they differ in more than one way.
    VARIANTS = "W211";
    /// A variant built from a revision lacks its build command or output.
    BUILD_INCOMPLETE = "W212";
    /// No experiment was found, or none that matches the request.
    NOTHING_FOUND = "W213";
    /// The rate or operating point contradicts the workload.
    OPERATING_POINT = "W214";
    /// A matrix that makes no experiments: a parameter without values, an invalid name, or
    /// everything excluded.
    MATRIX = "W215";
    /// A parameter that the file uses but its matrix does not have, or a parameter that the
    /// file does not use, so the same experiment would run several times.
    MATRIX_PARAMETER = "W216";
    /// Keys or flags that contradict each other about the number of pairs, the use of the
    /// machine by the variants, or the start of the measurement.
    COURSE = "W217";
    /// A step that is not possible: its target, sink, disk or link does not exist, does not
    /// support it, or is in the wrong state at that time.
    TIMELINE = "W218";
    /// A check on a series that no run of this experiment records: it fails each time.
    CHECK_UNMEASURABLE = "W219";
    /// A size in bits: readers disagree whether `Mb` means bits or bytes.
    BITS = "W401";
    /// A key that is accepted and has no effect here.
    NO_EFFECT = "W402";
    /// An address that would listen on every interface was moved to loopback.
    LOOPBACK = "W403";
    /// A key or value whose meaning differs between versions or tools.
    MEANING = "W404";
    /// A spelling of an earlier version of a tool. `stillwell lint --fix` writes the current
    /// one, if there is one with the same meaning.
    OLD_SPELLING = "W405";
}

/// Explains `code` in sentences.
#[must_use]
pub fn explain(code: &str) -> Option<&'static str> {
    ALL.iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(code))
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        for (index, (code, text)) in ALL.iter().enumerate() {
            assert!(!text.trim().is_empty());
            assert!(ALL[index + 1..].iter().all(|(later, _)| later != code));
        }
        assert!(explain("w101").unwrap().contains("silently"));
        assert_eq!(explain("W999"), None);
    }
}
