//! Idefics 3 and SmolVLM: SigLIP, whose squares of patches are put together and go through one product.

use super::family::Family;
use super::file::TowerFile;
use super::siglip::{Siglip, Usual};
use super::tower::{Grids, ImageInput, Join, Projector, Vision};
use crate::error::ArchError;
use crate::ffn::DenseActivation;
use crate::file::Key;
use crate::parts::linear;
use crate::weights::Frames;

pub(super) const FAMILY: Family = Family {
    name: "idefics3",
    model_types: &["idefics3", "smolvlm"],
    read,
};

const USUAL: Usual = Usual {
    dim: 1152,
    ffn: 3072,
    layers: 12,
    heads: 16,
    image: 224,
    patch: 32,
};

/// Patches on a side of a square; folders say it outside of the tower's config.
const MERGE: Key = Key::new(&["projector.scale_factor"], &[]);

fn read(file: &TowerFile) -> Result<Vision, ArchError> {
    let parts = Siglip::read(file, &USUAL)?;
    let side = parts.side(file, &USUAL)?;
    let merge = match file.config() {
        Some(config) => config.u32("scale_factor")?.unwrap_or(2),
        None => file.size(MERGE, None, 64)?,
    };
    file.tower.check_size("scale_factor", merge, 64)?;
    let out_dim = file.out_dim()?;
    let [mean, std] = file.normalisation(0.5)?;
    let joined = merge * merge * parts.dim;
    Ok(Vision {
        family: FAMILY.name,
        input: ImageInput {
            patch: parts.patch,
            merge,
            grids: Grids::Square(side),
            mean,
            std,
        },
        dim: parts.dim,
        out_dim,
        patches: parts.patches(Frames::One),
        positions: parts.positions(side),
        turn: None,
        layers: parts.layers(),
        norm: Some(parts.norm("vision.norm".to_string())),
        projector: Projector {
            join: Join::Concatenate,
            norm: None,
            linears: vec![linear("vision.projector.fc".to_string(), out_dim, joined)],
            activation: DenseActivation::Gelu,
        },
        deep: Vec::new(),
    })
}
