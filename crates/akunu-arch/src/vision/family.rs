//! A family of vision towers: its names, and how its towers are read.

use super::file::TowerFile;
use super::tower::Vision;
use crate::error::ArchError;

/// Towers of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name in GGUF's `clip.projector_type`.
    pub name: &'static str,
    /// The names in `model_type` of `config.json`.
    pub model_types: &'static [&'static str],
    pub(super) read: fn(&TowerFile) -> Result<Vision, ArchError>,
}
