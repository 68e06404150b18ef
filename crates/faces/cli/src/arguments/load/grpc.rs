//! Calls by gRPC.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stillwell_config::MethodName;
use stillwell_config::requests::{MessageRate, Streaming, above_zero};
use stillwell_units::Nanos;

/// What is called.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "gRPC, over HTTP/2")]
pub(crate) struct LoadGrpcArguments {
    /// Call this method, such as helloworld.Greeter/SayHello. What its messages look
    /// like the server tells by reflection, unless --grpc-descriptors does. --body is
    /// a message in binary, --header is metadata
    #[arg(long, value_name = "SERVICE/METHOD", conflicts_with_all = ["method", "requests_file", "har", "request_source"])]
    pub(crate) grpc_method: Option<MethodName>,
    /// The message as JSON, or @FILE with that; of several, one after the other, each
    /// makes a call in turn, or all are sent in each call where the client streams
    /// [default: an empty message]
    #[arg(
        long,
        value_name = "JSON",
        requires = "grpc_method",
        conflicts_with = "body"
    )]
    pub(crate) grpc_json: Option<String>,
    /// The message in the text format of protocol buffers, or @FILE with that
    #[arg(long, value_name = "TEXT", requires = "grpc_method", conflicts_with_all = ["body", "grpc_json"])]
    pub(crate) grpc_text: Option<String>,
    /// What methods and messages look like: a descriptor set with all imports, as
    /// protoc writes it
    #[arg(long, value_name = "FILE", requires = "grpc_method")]
    pub(crate) grpc_descriptors: Option<PathBuf>,
    /// Who sends a stream of messages, where nothing else is to say it: the message
    /// is then taken as it is
    #[arg(long, value_enum, requires = "grpc_method", conflicts_with_all = ["grpc_json", "grpc_text", "grpc_descriptors"])]
    pub(crate) grpc_streaming: Option<StreamingName>,
    /// How long a call may take: the server is told, and the call is given up then
    #[arg(long, value_name = "TIME", requires = "grpc_method", value_parser = above_zero)]
    pub(crate) grpc_deadline: Option<Nanos>,
    /// Messages in each call, where the client streams [default: as many as there are]
    #[arg(long, value_name = "N", requires = "grpc_method", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) grpc_messages: Option<u64>,
    /// How fast the messages of one call follow each other, such as 10/s [default: as
    /// the server takes them]
    #[arg(long, value_name = "N/s", requires = "grpc_method")]
    pub(crate) grpc_message_rate: Option<MessageRate>,
}

/// Who sends a stream of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StreamingName {
    /// Nobody: one message each.
    None,
    /// The client.
    Client,
    /// The server.
    Server,
    /// Both.
    Both,
}

impl From<StreamingName> for Streaming {
    fn from(name: StreamingName) -> Self {
        match name {
            StreamingName::None => Self::None,
            StreamingName::Client => Self::Client,
            StreamingName::Server => Self::Server,
            StreamingName::Both => Self::Both,
        }
    }
}
