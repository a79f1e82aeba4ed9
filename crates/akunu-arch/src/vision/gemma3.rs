//! Gemma 3: SigLIP, the mean of each square of patches, a norm by the root mean square, and one product.

use super::family::Family;
use super::file::TowerFile;
use super::siglip::{Siglip, Usual};
use super::tower::{Grids, ImageInput, Join, Projector, Vision};
use crate::error::ArchError;
use crate::ffn::DenseActivation;
use crate::file::Key;
use crate::layer::{Norm, NormKind};
use crate::linear::Linear;
use crate::weights::{Change, Frames, NamedMatrix, NamedVector};

pub(super) const FAMILY: Family = Family {
    name: "gemma3",
    model_types: &["gemma3"],
    read,
};

const USUAL: Usual = Usual {
    dim: 768,
    ffn: 3072,
    layers: 12,
    heads: 12,
    image: 224,
    patch: 16,
};

/// Patches on a side of a square. Files of real models do not say it: it is 4.
const MERGE: Key = Key::new(&["projector.scale_factor"], &[]);
const USUAL_MERGE: u32 = 4;
/// Rows of an image, in folders.
const TOKENS: &str = "mm_tokens_per_image";
const USUAL_TOKENS: u32 = 256;

fn read(file: &TowerFile) -> Result<Vision, ArchError> {
    let parts = Siglip::read(file, &USUAL)?;
    let side = parts.side(file, &USUAL)?;
    let merge = merge(file, side)?;
    let out_dim = file.out_dim()?;
    let [mean, std] = file.normalisation(0.5)?;
    let norm_change = match file.config() {
        Some(_) => Change::Plus(1.0),
        None => Change::None,
    };
    let input = "vision.projector.input.weight";
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
            join: Join::Mean,
            norm: Some(Norm {
                kind: NormKind::Rms,
                weight: NamedVector {
                    change: norm_change,
                    ..NamedVector::new("vision.projector.norm.weight", 1, parts.dim)
                },
                bias: None,
                eps: parts.eps,
            }),
            // The file has the columns of the matrix as its rows.
            linears: vec![Linear {
                weight: NamedMatrix::new(input, out_dim, parts.dim).transposed(),
                bias: None,
            }],
            activation: DenseActivation::Gelu,
        },
        deep: Vec::new(),
    })
}

/// Patches on a side of the squares that become one row.
fn merge(file: &TowerFile, side: u32) -> Result<u32, ArchError> {
    let Some(config) = file.config() else {
        return Ok(file.tower.u32(MERGE)?.unwrap_or(USUAL_MERGE));
    };
    let tokens = config.u32(TOKENS)?.unwrap_or(USUAL_TOKENS);
    let rows = tokens.isqrt();
    match rows > 0 && rows * rows == tokens && side.is_multiple_of(rows) {
        true => Ok(side / rows),
        false => {
            let found = format!("{tokens} for {side} × {side} patches");
            let wanted = "a square number whose root divides the patches on a side";
            Err(file.tower.invalid(TOKENS, found, wanted))
        }
    }
}
