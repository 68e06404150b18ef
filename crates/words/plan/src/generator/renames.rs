//! The share of renames among the operations on a file tree.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Number of renames of a folder in a number of operations. The other operations make or open a file
/// or folder.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "RenameShareParts")]
pub struct RenameShare {
    operations: NonZeroU32,
    renames: u32,
}

#[derive(Deserialize)]
struct RenameShareParts {
    operations: NonZeroU32,
    renames: u32,
}

/// There are more renames than operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{operations} operations cannot contain {renames} renames")]
pub struct RenameShareError {
    operations: NonZeroU32,
    renames: u32,
}

impl RenameShare {
    /// Returns `renames` in `operations`.
    ///
    /// # Errors
    /// There are more renames than operations.
    pub fn try_new(renames: u32, operations: NonZeroU32) -> Result<Self, RenameShareError> {
        if renames > operations.get() {
            return Err(RenameShareError {
                operations,
                renames,
            });
        }
        Ok(Self {
            operations,
            renames,
        })
    }

    /// Operations, with the renames.
    #[must_use]
    pub const fn operations(self) -> NonZeroU32 {
        self.operations
    }

    /// Renames in these operations.
    #[must_use]
    pub const fn renames(self) -> u32 {
        self.renames
    }
}

impl TryFrom<RenameShareParts> for RenameShare {
    type Error = RenameShareError;

    fn try_from(parts: RenameShareParts) -> Result<Self, RenameShareError> {
        Self::try_new(parts.renames, parts.operations)
    }
}

#[cfg(test)]
mod tests {
    use crate::generator::{FileTreePlan, ProcessTreePlan};
    use crate::sink::SinkPlan;

    #[test]
    fn a_plan_with_wrong_numbers_cannot_be_read() {
        let tree = |nodes: u32, operations: u32| {
            let text = format!(
                r#"{{"root":"/t","depth_max":1,"folders_max":1,"files_max":1,"nodes_max":{nodes},
                "name_length":1,"operations":{operations},"renames":2}}"#
            );
            serde_json::from_str::<FileTreePlan>(&text)
        };
        let plan = tree(1, 2).unwrap();
        let again = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<FileTreePlan>(&again).unwrap(), plan);
        assert!(tree(0, 2).is_err());
        assert!(tree(1, 1).is_err());
        assert!(tree(1, 0).is_err());
        let processes =
            r#"{"depth_max":0,"children_max":1,"processes_max":1,"sleep":0,"executables":[]}"#;
        assert!(serde_json::from_str::<ProcessTreePlan>(processes).is_err());
        let sink = |workers: u16, bytes: u32| {
            let text = format!(
                r#"{{"id":"a","workers":{workers},"protocol":{{"tcp_rr":{{"address":"127.0.0.1:0",
                "request_bytes":{bytes},"response_bytes":1}}}}}}"#
            );
            serde_json::from_str::<SinkPlan>(&text)
        };
        sink(1, 1).unwrap();
        assert!(sink(0, 1).is_err());
        assert!(sink(1, 0).is_err());
    }
}
