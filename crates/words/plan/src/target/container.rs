//! A container that is measured.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::target::{MountPlan, Places};

/// A container of an engine that speaks Docker's API.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ContainerTarget {
    /// The engine's socket.
    pub socket: PathBuf,
    /// Its source.
    pub origin: ContainerOrigin,
}

/// Source of a container.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerOrigin {
    /// One that runs already, or soon will, by its name or id: watched, never stopped.
    Named(String),
    /// Created and started from an image; stopped and removed.
    Image(ImagePlan),
}

/// A container that is made from an image.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ImagePlan {
    /// The image, as the engine knows it: it is not pulled.
    pub image: String,
    /// The program in it; the image's own if none.
    pub program: Option<String>,
    /// Arguments; those of the image if there are none and no program.
    pub arguments: Vec<String>,
    /// Its environment, beside the image's.
    pub environment: BTreeMap<String, String>,
    /// Its mounts from this host.
    pub mounts: Vec<MountPlan>,
}

impl ContainerTarget {
    /// Fills in every place.
    pub(super) fn fill(&mut self, places: &Places) {
        let ContainerOrigin::Image(image) = &mut self.origin else {
            return;
        };
        for argument in image.program.iter_mut().chain(&mut image.arguments) {
            *argument = places.fill(argument);
        }
        for value in image.environment.values_mut() {
            *value = places.fill(value);
        }
        for mount in &mut image.mounts {
            mount.source = places.fill(&mount.source.to_string_lossy()).into();
        }
    }
}
