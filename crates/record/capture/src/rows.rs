//! Rows and the Parquet file of a capture, for formats that are built of the same
//! columns.

pub use crate::journal::Row;
pub use crate::parquet::{Columns, SeriesFile, to_io};
pub use crate::write::{JOURNAL, SERIES};
