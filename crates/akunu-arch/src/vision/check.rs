//! Numbers of a tower that no kernel takes, or that are beyond any real model.

use super::file::TowerFile;
use super::tower::{Grids, Vision};
use crate::error::ArchError;

/// Patches of an image, at most: 4096 × 4096 pixels in patches of 16.
pub const MAX_PATCHES: u32 = 1 << 16;

/// The same tower, if it can be run.
pub(super) fn checked(file: &TowerFile, vision: Vision) -> Result<Vision, ArchError> {
    let merge = vision.input.merge;
    let invalid = |key: &str, found, wanted| Err(file.tower.invalid(key, found, wanted));
    match vision.input.grids {
        Grids::Square(side) if side.saturating_mul(side) > MAX_PATCHES => {
            let found = format!("{side} × {side}");
            invalid("patches of an image", found, "at most 65536 of them")
        }
        Grids::Square(side) if merge == 0 || !side.is_multiple_of(merge) => {
            let found = format!("{merge} × {merge} for {side} × {side} patches");
            let wanted = "so many that an image has a whole number of them";
            invalid("patches that become a row", found, wanted)
        }
        Grids::Square(_) | Grids::Any => Ok(vision),
    }
}
