//! Messages of pprof, with the fields that are used here.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueTypeMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<SampleMessage>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<LocationMessage>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<FunctionMessage>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ValueTypeMessage {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SampleMessage {
    /// The leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LocationMessage {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Inlined functions first, the function that contains them last.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<LineMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LineMessage {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FunctionMessage {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
}
