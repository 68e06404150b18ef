//! Nighthawk's enumerations, by name and number.

/// A value of an enumeration.
pub(super) trait Enumeration: Sized {
    /// Returns the value with this name.
    fn by_name(name: &str) -> Option<Self>;
    /// Returns the value with this number.
    fn by_number(number: u64) -> Option<Self>;
}

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal $number:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u64 {
                match self { $(Self::$variant => $number),* }
            }

            /// Returns the value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// Returns the value with this number.
            #[must_use]
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.number() == number)
            }
        }

        impl Enumeration for $name {
            fn by_name(name: &str) -> Option<Self> {
                Self::from_name(name)
            }

            fn by_number(number: u64) -> Option<Self> {
                Self::from_number(number)
            }
        }
    };
}

enumeration! {
    /// Over which protocol requests go.
    Protocol {
        /// HTTP/1.1.
        Http1 = "HTTP1" 0,
        /// HTTP/2.
        Http2 = "HTTP2" 1,
        /// HTTP/3.
        Http3 = "HTTP3" 2,
    }
}

enumeration! {
    /// Addresses that a name may resolve to.
    AddressFamily {
        /// Any.
        Auto = "AUTO" 0,
        /// Only IPv4.
        V4 = "V4" 1,
        /// Only IPv6.
        V6 = "V6" 2,
    }
}

enumeration! {
    /// Level of the log.
    Verbosity {
        /// The tool's default.
        Default = "DEFAULT" 0,
        /// Actions.
        Info = "INFO" 1,
        /// Everything.
        Trace = "TRACE" 2,
        /// For those who look for a fault.
        Debug = "DEBUG" 3,
        /// Possible problems.
        Warn = "WARN" 4,
        /// Failures.
        Error = "ERROR" 5,
        /// Failures that end the tool.
        Critical = "CRITICAL" 6,
    }
}

enumeration! {
    /// Format of a result.
    OutputFormat {
        /// The tool's default.
        Default = "DEFAULT" 0,
        /// The JSON form of the message.
        Json = "JSON" 1,
        /// For readers.
        Human = "HUMAN" 2,
        /// YAML of the same shape as the JSON.
        Yaml = "YAML" 3,
        /// One line a number.
        Dotted = "DOTTED" 4,
        /// In the shape of fortio's results.
        Fortio = "FORTIO" 5,
        /// The same with the types that fortio itself reads.
        ExperimentalFortioPedantic = "EXPERIMENTAL_FORTIO_PEDANTIC" 6,
        /// As for readers, with commas.
        Csv = "CSV" 7,
        /// Prometheus' text.
        Prometheus = "PROMETHEUS" 8,
    }
}

enumeration! {
    /// Method of waiting for the next request.
    IdleStrategy {
        /// The tool's default.
        Default = "DEFAULT" 0,
        /// Spins.
        Spin = "SPIN" 1,
        /// Waits for timers and sockets.
        Poll = "POLL" 2,
        /// Sleeps.
        Sleep = "SLEEP" 3,
    }
}

enumeration! {
    /// Choice of the idle connection for the next request.
    ConnectionReuse {
        /// The tool's default.
        Default = "DEFAULT" 0,
        /// The most recently used one.
        Mru = "MRU" 1,
        /// The least recently used one.
        Lru = "LRU" 2,
    }
}

enumeration! {
    /// The method of a request.
    RequestMethod {
        /// None was given.
        Unspecified = "METHOD_UNSPECIFIED" 0,
        /// GET.
        Get = "GET" 1,
        /// HEAD.
        Head = "HEAD" 2,
        /// POST.
        Post = "POST" 3,
        /// PUT.
        Put = "PUT" 4,
        /// DELETE.
        Delete = "DELETE" 5,
        /// CONNECT.
        Connect = "CONNECT" 6,
        /// OPTIONS.
        Options = "OPTIONS" 7,
        /// TRACE.
        Trace = "TRACE" 8,
        /// PATCH.
        Patch = "PATCH" 9,
    }
}
