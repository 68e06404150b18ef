//! Environment variables that change the result of a build command.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use crate::files::sha256;

/// Compilers, their flags and targets. `PATH` is left out, because it differs between shells that use the same programs,
/// and `MAKEFLAGS`, because each call of make sets another pipe there. Flags on make's command line are variables too.
const NAMES: [&str; 18] = [
    "AR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CC",
    "CFLAGS",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "GOARCH",
    "GOFLAGS",
    "GOOS",
    "JAVA_HOME",
    "LD",
    "LDFLAGS",
    "NODE_ENV",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// Beginnings of more such names.
const PREFIXES: [&str; 4] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CGO_"];

/// Returns a hash of those of `variables` that change the result of a build command; empty if there are none.
pub(super) fn environment_hash(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> String {
    let variables = variables.into_iter();
    let relevant: BTreeSet<_> = variables.filter(|(name, _)| is_relevant(name)).collect();
    let mut content = Vec::new();
    for (name, value) in &relevant {
        for part in [name, value] {
            content.extend_from_slice(part.as_encoded_bytes());
            content.push(0);
        }
    }
    if content.is_empty() {
        String::new()
    } else {
        sha256(&content)
    }
}

fn is_relevant(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(variables: &[(&str, &str)]) -> String {
        let variables = variables.iter();
        let owned = |text: &str| OsString::from(text);
        environment_hash(variables.map(|(name, value)| (owned(name), owned(value))))
    }

    #[test]
    fn each_variable_of_a_compiler_changes_the_hash_and_no_other_variable_does() {
        let first = hash_of(&[("CC", "gcc")]);
        for (variables, is_same) in [
            ([("CC", "gcc"), ("PATH", "/bin")].as_slice(), true),
            (&[("MAKEFLAGS", "-j8"), ("CC", "gcc")], true),
            (&[("CARGO", "/bin/cargo"), ("CC", "gcc")], true),
            (&[], false),
            (&[("CC", "clang")], false),
            (&[("CC", "")], false),
            (&[("CXX", "gcc")], false),
            (&[("CC", "gcc"), ("RUSTFLAGS", "")], false),
            (&[("CC", "gcc"), ("CARGO_BUILD_TARGET", "x")], false),
            (&[("CC", "gcc"), ("CARGO_PROFILE_DEV_LTO", "off")], false),
            (&[("CC", "gcc"), ("CGO_CFLAGS", "-O0")], false),
        ] {
            assert_eq!(hash_of(variables) == first, is_same, "{variables:?}");
        }
    }

    #[test]
    fn the_order_of_variables_does_not_count() {
        let variables = [("CC", "gcc"), ("CFLAGS", "-O2"), ("GOOS", "linux")];
        let [cc, flags, system] = variables;
        assert_eq!(hash_of(&variables), hash_of(&[system, cc, flags]));
    }

    #[test]
    fn without_a_variable_of_a_compiler_the_hash_is_empty() {
        assert_eq!(hash_of(&[]), "");
        assert_eq!(hash_of(&[("PATH", "/bin"), ("HOME", "/root")]), "");
    }
}
