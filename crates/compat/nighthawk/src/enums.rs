//! Nighthawk's enumerations, by name and number.

/// One of an enumeration, wherever it stands.
pub(super) trait Enumeration: Sized {
    /// The one with this name.
    fn by_name(name: &str) -> Option<Self>;
    /// The one with this number.
    fn by_number(number: u64) -> Option<Self>;
}

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$own:meta])* $variant:ident = $text:literal $number:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$own])* $variant),*
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

            /// The one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|own| own.name() == name)
            }

            /// The one with this number.
            #[must_use]
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|own| own.number() == number)
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
    /// Which addresses a name may resolve to.
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
    /// How much is logged.
    Verbosity {
        /// Whatever the tool does unasked.
        Default = "DEFAULT" 0,
        /// What happens.
        Info = "INFO" 1,
        /// Everything.
        Trace = "TRACE" 2,
        /// For those who look for a fault.
        Debug = "DEBUG" 3,
        /// What may be wrong.
        Warn = "WARN" 4,
        /// What is wrong.
        Error = "ERROR" 5,
        /// What ends the tool.
        Critical = "CRITICAL" 6,
    }
}

enumeration! {
    /// In which form a result is told.
    OutputFormat {
        /// Whatever the tool does unasked.
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
    /// What a worker does while nothing is due.
    IdleStrategy {
        /// Whatever the tool does unasked.
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
    /// Which idle connection takes the next request.
    ConnectionReuse {
        /// Whatever the tool does unasked.
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
        /// None was said.
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
