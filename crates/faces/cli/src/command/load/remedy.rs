//! Advice about errors, with the flags of the command that was used.

use stillwell_metric::{Remedy, TlsWish};
use stillwell_report::load::HealthWarning;
use stillwell_verdict::{LoadRules, LoadWarning};

/// The command whose options an advice names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OptionNames {
    /// `stillwell load`.
    Load,
    /// `nighthawk_client`.
    Nighthawk,
}

impl OptionNames {
    /// `text`, and what to do about it, if anything.
    pub(crate) fn with_advice(self, text: &str, remedy: Option<Remedy>) -> String {
        match remedy.and_then(|remedy| self.advice(remedy)) {
            Some(advice) => format!("{text}; {advice}"),
            None => text.to_owned(),
        }
    }

    /// The warnings of a load as its report has them.
    pub(crate) fn health_warnings(
        self,
        rules: LoadRules,
        warnings: &[LoadWarning],
    ) -> Vec<HealthWarning> {
        let health_warnings = warnings.iter().map(|warning| HealthWarning {
            code: warning.code().to_owned(),
            text: self.with_advice(&warning.to_string(), warning.remedy()),
            invalidates: rules.is_unreliable_by(warning),
        });
        health_warnings.collect()
    }

    fn advice(self, remedy: Remedy) -> Option<String> {
        match self {
            Self::Load => load_flags(remedy),
            Self::Nighthawk => nighthawk(remedy),
        }
    }
}

fn load_flags(Remedy { wish, of_proxy }: Remedy) -> Option<String> {
    let (authority, unchecked) = match of_proxy {
        true => ("--tunnel-ca", "--tunnel-insecure"),
        false => ("--ca", "--insecure"),
    };
    Some(match (wish, of_proxy) {
        (TlsWish::Trust, _) => format!(
            "give the authority's file with {authority}, or skip verification with {unchecked}"
        ),
        (TlsWish::Unchecked, _) => format!("or skip verification with {unchecked}"),
        (TlsWish::Name, false) => "set the name with --sni".to_owned(),
        (TlsWish::Identity, false) => {
            "give a client certificate with --certificate and --key".to_owned()
        }
        // The server name of a proxy is the host of its URL.
        (TlsWish::Name | TlsWish::Identity, true) => return None,
    })
}

fn nighthawk(Remedy { wish, of_proxy }: Remedy) -> Option<String> {
    let context = match of_proxy {
        true => "--tunnel-tls-context",
        false => "--transport-socket",
    };
    Some(match wish {
        TlsWish::Trust => format!(
            "give the authority's file in common_tls_context.validation_context.trusted_ca of \
             {context}"
        ),
        TlsWish::Name => format!("set the name with sni of {context}"),
        TlsWish::Identity => {
            format!("give a client certificate in common_tls_context.tls_certificates of {context}")
        }
        // Certificates are verified only if configured.
        TlsWish::Unchecked => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::{LoadArguments, NighthawkClientArguments};

    /// Advice of one command named flags of another, and advice about a proxy those for
    /// targets.
    #[test]
    fn advice_names_flags_that_its_command_has_and_no_others() {
        #[derive(clap::Parser)]
        struct Load {
            #[command(flatten)]
            _arguments: LoadArguments,
        }
        for (words, command) in [
            (OptionNames::Load, Load::command()),
            (OptionNames::Nighthawk, NighthawkClientArguments::command()),
        ] {
            let mut named = 0;
            for wish in [
                TlsWish::Trust,
                TlsWish::Unchecked,
                TlsWish::Name,
                TlsWish::Identity,
            ] {
                for of_proxy in [false, true] {
                    let advice = words.with_advice("text", Some(Remedy { wish, of_proxy }));
                    let flags = advice
                        .split([' ', ','])
                        .filter_map(|flag| flag.strip_prefix("--"));
                    for flag in flags {
                        named += 1;
                        let mut all = command.get_arguments();
                        assert!(
                            all.any(|argument| argument.get_long() == Some(flag)),
                            "{advice}"
                        );
                        assert_eq!(flag.starts_with("tunnel-"), of_proxy, "{advice}");
                    }
                }
            }
            assert!(named >= 6, "{words:?}: {named}");
        }
        assert_eq!(OptionNames::Load.with_advice("text", None), "text");
    }
}
