//! Whole plans as JSON, by functions that are compiled once.
//!
//! What serde derives is generic: each crate that opens a capture or a result would compile its own
//! readers and writers of all plans, and these were half of the code of those crates.

/// Implements `Serialize` and `Deserialize` by way of a JSON value, for a type that derives them
/// with `#[serde(remote = "Self")]`.
macro_rules! by_json_value {
    ($plan:ty) => {
        const _: () = {
            use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
            use serde_json::Value;

            fn to_value(plan: &$plan) -> serde_json::Result<Value> {
                <$plan>::serialize(plan, serde_json::value::Serializer)
            }

            fn from_value(value: Value) -> serde_json::Result<$plan> {
                <$plan>::deserialize(value)
            }

            impl Serialize for $plan {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let value = to_value(self).map_err(ser::Error::custom)?;
                    value.serialize(serializer)
                }
            }

            impl<'de> Deserialize<'de> for $plan {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let value = Value::deserialize(deserializer)?;
                    from_value(value).map_err(de::Error::custom)
                }
            }
        };
    };
}

pub(crate) use by_json_value;
