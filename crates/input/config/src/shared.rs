//! Readers and limits that other formats share with the native one.

pub use crate::load::{FileTarget, apply_to_run};
pub use crate::spec::{
    ENGINE_SOCKET, NativeDialect, PayloadDialect, TREE_DEPTH_MAX, check_cache_size, default_goals,
    is_image_part, parse_series, read_binary_payload, read_pattern, read_range, read_template,
    read_trace_agent,
};
