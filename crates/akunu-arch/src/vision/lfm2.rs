//! LFM2-VL: SigLIP 2 for images of any shape, whose squares of patches are put together, normalised, and go through two products.

use super::family::Family;
use super::file::TowerFile;
use super::siglip::{Siglip, Usual};
use super::tower::{Grids, ImageInput, Join, PatchPositions, Projector, Resize, Vision};
use crate::error::ArchError;
use crate::ffn::DenseActivation;
use crate::file::Key;
use crate::layer::Norm;
use crate::linear::Linear;
use crate::parts::linear;
use crate::weights::{Frames, NamedMatrix, PatchKernel};

pub(super) const FAMILY: Family = Family {
    name: "lfm2",
    model_types: &["lfm2_vl"],
    read,
};

const USUAL: Usual = Usual {
    dim: 768,
    ffn: 3072,
    layers: 12,
    heads: 12,
    image: 256,
    patch: 16,
};

const MERGE: Key = Key::new(&["projector.scale_factor"], &[]);
const POSITIONS: &str = "vision.positions.weight";
const NORM: &str = "vision.projector.input_norm";
/// Added under the root of the projector's norm.
const NORM_EPS: f32 = 1e-5;

fn read(file: &TowerFile) -> Result<Vision, ArchError> {
    let parts = Siglip::read(file, &USUAL)?;
    let merge = match file.config() {
        Some(config) => config.u32("downsample_factor")?.unwrap_or(2),
        None => file.size(MERGE, None, 64)?,
    };
    file.tower.check_size("downsample_factor", merge, 64)?;
    let [mean, std] = file.normalisation(0.5)?;
    let out_dim = file.out_dim()?;
    Ok(Vision {
        family: FAMILY.name,
        input: ImageInput {
            patch: parts.patch,
            merge,
            grids: Grids::Any,
            mean,
            std,
        },
        dim: parts.dim,
        out_dim,
        patches: patches(file, &parts),
        positions: PatchPositions {
            resize: Resize::Areas,
            ..parts.positions(side(file)?)
        },
        turn: None,
        layers: parts.layers(),
        norm: Some(parts.norm("vision.norm".to_string())),
        projector: projector(file, &parts, [merge * merge * parts.dim, out_dim])?,
        deep: Vec::new(),
    })
}

/// The product of patches: a matrix whose columns are pixel by pixel in folders, a kernel in GGUF files.
fn patches(file: &TowerFile, parts: &Siglip) -> Linear {
    let Linear { weight, bias } = parts.patches(Frames::One);
    let by_pixels = file.config().is_some();
    let kernel = weight.kernel.map(|kernel| PatchKernel {
        by_pixels,
        ..kernel
    });
    Linear {
        weight: NamedMatrix { kernel, ..weight },
        bias,
    }
}

/// Patches on a side of the table of positions: GGUF files do not say it.
fn side(file: &TowerFile) -> Result<u32, ArchError> {
    let entries = file.tower.rows(POSITIONS);
    match entries.isqrt() {
        side if side > 0 && side * side == entries => Ok(side),
        _ => {
            let found = format!("a table of {entries} entries");
            Err(file
                .tower
                .invalid(POSITIONS, found, "a square number of them"))
        }
    }
}

/// A norm, which some files do not have, and two products.
fn projector(
    file: &TowerFile,
    parts: &Siglip,
    [width, out_dim]: [u32; 2],
) -> Result<Projector, ArchError> {
    let [first, second] = match file.config() {
        Some(_) => ["vision.projector.linear_1", "vision.projector.linear_2"],
        None => ["vision.projector.1", "vision.projector.2"],
    };
    let hidden = file.tower.rows(&format!("{first}.weight"));
    file.tower.check_size(first, hidden, 1 << 20)?;
    let norm_found = file.tower.rows(&format!("{NORM}.weight")) > 0;
    let has_norm = match file.config() {
        Some(config) => config.bool("projector_use_layernorm")?.unwrap_or(true),
        None => norm_found,
    };
    if let Some(config) = file.config()
        && let Some(found) = config
            .string("projector_hidden_act")?
            .filter(|&act| act != "gelu")
    {
        let what = format!("`projector_hidden_act` = `{found}`");
        return Err(file.tower.unsupported(what));
    }
    let norm = has_norm.then(|| Norm {
        eps: NORM_EPS,
        ..parts.norm_of(NORM.to_string(), width)
    });
    let product = |name: &str, rows, cols| {
        let plain = linear(name.to_string(), rows, cols);
        match file.tower.rows(&format!("{name}.bias")) {
            0 => plain,
            _ => plain.with_bias(),
        }
    };
    Ok(Projector {
        join: Join::Concatenate,
        norm,
        linears: vec![
            product(first, hidden, width),
            product(second, out_dim, hidden),
        ],
        activation: DenseActivation::GeluErf,
    })
}
