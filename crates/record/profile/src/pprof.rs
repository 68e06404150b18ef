//! The file format of pprof: gzip around a protobuf message.
//!
//! Facts: `proto/profile.proto` of <https://github.com/google/pprof>.

mod message;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use prost::Message as _;

use message::{FunctionMessage, LineMessage, LocationMessage, ProfileMessage, SampleMessage};

/// Maximum size of an unpacked profile.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of frames of one stack; frames near the root beyond it are left out.
const DEPTH_MAX: usize = 256;

/// First bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Call stacks with an amount for each sample type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Types of the amounts, in the order of [`StackSample::amounts`].
    pub types: Vec<SampleType>,
    /// Names of functions; [`StackSample::stack`] has their indices.
    pub functions: Vec<String>,
    /// The samples.
    pub samples: Vec<StackSample>,
    /// Wall clock at the start of a CPU profile, at the end of another one with a duration, as in Go, or at the moment
    /// of one without: nanoseconds since 1970.
    pub time_ns: i64,
    /// Covered time; 0 if the profile counts from the start of the program.
    pub duration_ns: i64,
}

/// Type of an amount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SampleType {
    /// Name, such as `cpu`.
    pub name: String,
    /// Unit, such as `nanoseconds`.
    pub unit: String,
}

/// A call stack with its amounts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StackSample {
    /// Indices of functions, the root first.
    pub stack: Vec<u32>,
    /// One amount for each sample type.
    pub amounts: Vec<i64>,
}

/// A profile that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The bytes are not a gzip stream that ends.
    #[error("unpack the profile")]
    Unpack(#[source] io::Error),
    /// The unpacked profile is too large.
    #[error("the unpacked profile has more than {} MiB", UNPACKED_BYTES_MAX >> 20)]
    TooLarge,
    /// The unpacked bytes are no message of pprof.
    #[error("decode the profile")]
    Decode(#[source] prost::DecodeError),
    /// A number points outside its table.
    #[error("the profile has a {table} {index}, which its table lacks")]
    Index {
        /// Name of the table.
        table: &'static str,
        /// The number.
        index: u64,
    },
}

impl Profile {
    /// Reads a pprof file, packed or not.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ProfileError> {
        if !bytes.starts_with(&GZIP) {
            return Self::of_message(&ProfileMessage::decode(bytes).map_err(ProfileError::Decode)?);
        }
        let unpacked = unpack(bytes, UNPACKED_BYTES_MAX)?;
        let message = ProfileMessage::decode(unpacked.as_slice()).map_err(ProfileError::Decode)?;
        Self::of_message(&message)
    }

    /// Returns the profile as a pprof file.
    ///
    /// # Errors
    /// The encoder's.
    pub fn write(&self) -> io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.message().encode_to_vec())?;
        encoder.finish()
    }

    fn of_message(message: &ProfileMessage) -> Result<Self, ProfileError> {
        let text = |index: i64| {
            let entry = usize::try_from(index).ok();
            let entry = entry.and_then(|index| message.string_table.get(index));
            entry.cloned().ok_or_else(|| ProfileError::Index {
                table: "string",
                index: index.cast_unsigned(),
            })
        };
        let mut functions = Vec::with_capacity(message.function.len());
        let mut numbers = HashMap::with_capacity(message.function.len());
        for (number, function) in (0_u32..).zip(&message.function) {
            functions.push(text(function.name)?);
            numbers.insert(function.id, number);
        }
        let stacks = LocationStacks::new(message, &numbers, &mut functions)?;
        let samples = message.sample.iter().map(|sample| {
            Ok(StackSample {
                stack: stacks.stack_of(&sample.location_id)?,
                amounts: sample.value.clone(),
            })
        });
        let samples = samples.collect::<Result<_, ProfileError>>()?;
        let types = message.sample_type.iter().map(|kind| {
            Ok(SampleType {
                name: text(kind.r#type)?,
                unit: text(kind.unit)?,
            })
        });
        Ok(Self {
            types: types.collect::<Result<_, ProfileError>>()?,
            samples,
            functions,
            time_ns: message.time_nanos,
            duration_ns: message.duration_nanos.max(0),
        })
    }

    fn message(&self) -> ProfileMessage {
        let mut strings = vec![String::new()];
        let mut string = |text: &str| {
            strings.push(text.to_owned());
            i64::from(stillwell_units::count(strings.len() - 1))
        };
        let types = self.types.iter().map(|kind| message::ValueTypeMessage {
            r#type: string(&kind.name),
            unit: string(&kind.unit),
        });
        let types = types.collect();
        let ids = 1_u64..;
        let function = ids.clone().zip(&self.functions);
        let function = function.map(|(id, name)| FunctionMessage {
            id,
            name: string(name),
        });
        let function: Vec<_> = function.collect();
        let location = ids.take(self.functions.len()).map(|id| LocationMessage {
            id,
            line: vec![LineMessage { function_id: id }],
            ..LocationMessage::default()
        });
        let samples = self.samples.iter().map(|sample| SampleMessage {
            location_id: sample
                .stack
                .iter()
                .rev()
                .map(|index| u64::from(*index) + 1)
                .collect(),
            value: sample.amounts.clone(),
        });
        ProfileMessage {
            sample_type: types,
            sample: samples.collect(),
            location: location.collect(),
            function,
            time_nanos: self.time_ns,
            duration_nanos: self.duration_ns,
            string_table: strings,
        }
    }
}

/// Returns the content of a gzip stream of at most `max` bytes.
fn unpack(bytes: &[u8], max: u64) -> Result<Vec<u8>, ProfileError> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(max + 1);
    reader
        .read_to_end(&mut unpacked)
        .map_err(ProfileError::Unpack)?;
    if unpacked.len() as u64 > max {
        return Err(ProfileError::TooLarge);
    }
    Ok(unpacked)
}

/// Functions of each location, the outermost first.
struct LocationStacks {
    by_id: HashMap<u64, Vec<u32>>,
}

impl LocationStacks {
    /// Indexes the locations of `message`. One without a function becomes a function of its address.
    fn new(
        message: &ProfileMessage,
        numbers: &HashMap<u64, u32>,
        functions: &mut Vec<String>,
    ) -> Result<Self, ProfileError> {
        let mut by_id = HashMap::with_capacity(message.location.len());
        for location in &message.location {
            let frames = location.line.iter().rev().map(|line| {
                let number = numbers.get(&line.function_id).copied();
                number.ok_or(ProfileError::Index {
                    table: "function",
                    index: line.function_id,
                })
            });
            let mut frames = frames.collect::<Result<Vec<_>, _>>()?;
            if frames.is_empty() {
                frames.push(stillwell_units::count(functions.len()));
                functions.push(format!("{:#x}", location.address));
            }
            by_id.insert(location.id, frames);
        }
        Ok(Self { by_id })
    }

    /// Returns the functions of a stack whose locations begin at the leaf.
    fn stack_of(&self, locations: &[u64]) -> Result<Vec<u32>, ProfileError> {
        let mut stack = Vec::new();
        for id in locations.iter().rev() {
            let frames = self.by_id.get(id).ok_or(ProfileError::Index {
                table: "location",
                index: *id,
            })?;
            stack.extend_from_slice(frames);
        }
        let surplus = stack.len().saturating_sub(DEPTH_MAX);
        stack.drain(..surplus);
        Ok(stack)
    }
}
