//! Arguments of gRPC calls.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stillwell_config::MethodName;
use stillwell_config::requests::{MessageRate, Streaming, above_zero};
use stillwell_units::Nanos;

use crate::arguments::count::whole;

/// gRPC options.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "gRPC, over HTTP/2")]
pub(crate) struct LoadGrpcArguments {
    /// Method to call, such as helloworld.Greeter/SayHello. Message types come from
    /// --grpc-descriptors or from server reflection. --body is a binary message,
    /// --header is metadata
    #[arg(long, value_name = "SERVICE/METHOD", conflicts_with_all = ["method", "requests_file", "har", "request_source"])]
    pub(crate) grpc_method: Option<MethodName>,
    /// Message as JSON, or @FILE. With several messages, calls use them in turn; with
    /// client streaming, all are sent in each call [default: an empty message]
    #[arg(
        long,
        value_name = "JSON",
        requires = "grpc_method",
        conflicts_with = "body"
    )]
    pub(crate) grpc_json: Option<String>,
    /// Message in protobuf text format, or @FILE
    #[arg(long, value_name = "TEXT", requires = "grpc_method", conflicts_with_all = ["body", "grpc_json"])]
    pub(crate) grpc_text: Option<String>,
    /// Descriptor set with all imports, as written by protoc
    #[arg(long, value_name = "FILE", requires = "grpc_method")]
    pub(crate) grpc_descriptors: Option<PathBuf>,
    /// Streaming mode, to call without descriptors and reflection; --body is then sent
    /// unchanged
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        requires = "grpc_method",
        conflicts_with_all = ["grpc_json", "grpc_text", "grpc_descriptors"]
    )]
    pub(crate) grpc_streaming: Option<StreamingName>,
    /// Deadline of a call, which is also sent to the server
    #[arg(long, value_name = "TIME", requires = "grpc_method", value_parser = above_zero)]
    pub(crate) grpc_deadline: Option<Nanos>,
    /// Messages in each call with client streaming [default: all messages once]
    #[arg(long, value_name = "N", requires = "grpc_method", value_parser = whole::<u64>)]
    pub(crate) grpc_messages: Option<u64>,
    /// Rate of the messages in each call, such as 10/s [default: as fast as the server
    /// accepts]
    #[arg(long, value_name = "N/s", requires = "grpc_method")]
    pub(crate) grpc_message_rate: Option<MessageRate>,
}

/// Streaming modes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StreamingName {
    /// One request message and one response message.
    None,
    /// The client sends a stream.
    Client,
    /// The server sends a stream.
    Server,
    /// Both send streams.
    Both,
}

impl_from!(StreamingName => Streaming { None, Client, Server, Both });
