//! Qwen3-VL and Qwen3.5: a tower for images of any size, whose patches turn by their line and their column. A norm, and two
//! products of squares of patches; the same of the residual stream after a few layers.

use super::family::Family;
use super::file::TowerFile;
use super::siglip::{Siglip, Usual};
use super::tower::{DeepProjector, Grids, ImageInput, Join, PatchTurn, Projector, Vision};
use crate::error::ArchError;
use crate::ffn::DenseActivation;
use crate::file::Key;
use crate::linear::Linear;
use crate::parts::linear;
use crate::weights::Frames;

pub(super) const FAMILY: Family = Family {
    name: "qwen3vl_merger",
    model_types: &["qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"],
    read,
};

const USUAL: Usual = Usual {
    dim: 1152,
    ffn: 4304,
    layers: 27,
    heads: 16,
    image: 768,
    patch: 16,
};

const MERGE: Key = Key::same(&["spatial_merge_size"]);
/// Images that are read together, in folders. GGUF files have a kernel for each.
const FRAMES: Key = Key::new(&[], &["temporal_patch_size"]);
const USUAL_FRAMES: u32 = 2;
const SECOND_FRAME: &str = "vision.patches.weight.1";
/// Entries of the table of positions, in folders. GGUF files have the size of the image that has as many patches.
const POSITIONS: Key = Key::new(&[], &["num_position_embeddings"]);
const USUAL_POSITIONS: u32 = 2304;
/// The layers that have a separate projector.
const DEEP: &str = "deepstack_visual_indexes";
const USUAL_DEEP: [u32; 3] = [8, 16, 24];
/// Which layers those are, in GGUF files.
const IS_DEEP: &str = "clip.vision.is_deepstack_layers";

fn read(file: &TowerFile) -> Result<Vision, ArchError> {
    let mut parts = Siglip::read(file, &USUAL)?;
    parts.qkv_is_fused = true;
    let merge = file.tower.u32(MERGE)?.unwrap_or(2);
    file.tower.check_size("spatial_merge_size", merge, 64)?;
    let out_dim = match file.tower.config() {
        Some(config) => config.required_u32("out_hidden_size")?,
        None => file.out_dim()?,
    };
    file.tower.check_size("out_hidden_size", out_dim, 1 << 20)?;
    let [mean, std] = file.normalisation(0.5)?;
    let squares = Squares {
        width: merge * merge * parts.dim,
        out_dim,
    };
    let side = side(file, &parts)?;
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
        patches: parts.patches(frames(file)?),
        positions: parts.positions(side),
        turn: Some(PatchTurn {
            theta: theta(file)?,
            head_dim: parts.head_dim,
        }),
        layers: parts.layers(),
        norm: Some(parts.norm("vision.norm".to_string())),
        projector: Projector {
            norm: None,
            ..squares.projector(match file.config() {
                Some(_) => ["vision.merger.fc1", "vision.merger.fc2"].map(String::from),
                None => ["vision.projector.0", "vision.projector.2"].map(String::from),
            })
        },
        deep: deep(file, &parts, &squares)?,
    })
}

/// The parts that all projectors of squares share.
struct Squares {
    /// Numbers of a square.
    width: u32,
    out_dim: u32,
}

impl Squares {
    /// Two products with the exact GELU between them.
    fn projector(&self, [first, second]: [String; 2]) -> Projector {
        let product = |name, rows| -> Linear { linear(name, rows, self.width).with_bias() };
        Projector {
            join: Join::Concatenate,
            norm: None,
            linears: vec![product(first, self.width), product(second, self.out_dim)],
            activation: DenseActivation::GeluErf,
        }
    }
}

/// The projectors of the layers that have one.
fn deep(
    file: &TowerFile,
    parts: &Siglip,
    squares: &Squares,
) -> Result<Vec<DeepProjector>, ArchError> {
    let layers = deep_layers(file, parts.n_layers)?;
    let projector = |(at, layer): (usize, u32)| {
        // Folders count the projectors, GGUF files name the layer.
        let number = match file.config() {
            Some(_) => at as u32,
            None => layer,
        };
        let name = |part: &str| format!("vision.deep.{number}.{part}");
        DeepProjector {
            layer,
            projector: Projector {
                norm: Some(parts.norm_of(name("norm"), squares.width)),
                ..squares.projector([name("fc1"), name("fc2")])
            },
        }
    };
    Ok(layers.into_iter().enumerate().map(projector).collect())
}

/// The layers that have a projector, in their order.
fn deep_layers(file: &TowerFile, n_layers: u32) -> Result<Vec<u32>, ArchError> {
    let Some(config) = file.tower.config() else {
        let flags = file.metadata_flags(IS_DEEP)?;
        let layers = (0..n_layers).zip(flags);
        return Ok(layers.filter(|(_, is)| *is).map(|(at, _)| at).collect());
    };
    // Qwen3.5 has none, and does not say so.
    let is_usual = file
        .config()
        .and_then(|whole| whole.string("model_type").ok()?);
    let usual = match is_usual {
        Some("qwen3_5" | "qwen3_5_moe") => &[][..],
        _ => &USUAL_DEEP[..],
    };
    let Some(list) = config.get(DEEP) else {
        return Ok(usual.to_vec());
    };
    let numbers = list.as_array().map(|list| {
        let numbers = list
            .iter()
            .map(|number| u32::try_from(number.as_u64()?).ok());
        numbers.collect::<Option<Vec<u32>>>()
    });
    let is_ascending = |list: &Vec<u32>| list.is_sorted_by(|a, b| a < b);
    let fits = |list: &Vec<u32>| list.last().is_none_or(|&last| last < n_layers);
    let numbers = numbers
        .flatten()
        .filter(|list| is_ascending(list) && fits(list));
    numbers.ok_or_else(|| {
        let found: String = list.to_string().chars().take(40).collect();
        let wanted = "layers of the tower, in ascending order";
        file.tower.invalid(DEEP, found, wanted)
    })
}

/// Patches on a side of the table of positions.
fn side(file: &TowerFile, parts: &Siglip) -> Result<u32, ArchError> {
    if file.config().is_none() {
        return parts.side(file, &USUAL);
    }
    let entries = file.size(POSITIONS, Some(USUAL_POSITIONS), 1 << 20)?;
    match entries.isqrt() {
        side if side * side == entries => Ok(side),
        _ => {
            let key = file.tower.key_name(POSITIONS);
            Err(file
                .tower
                .invalid(&key, entries.to_string(), "a square number"))
        }
    }
}

/// The images that are read together.
fn frames(file: &TowerFile) -> Result<Frames, ArchError> {
    if file.config().is_some() {
        let frames = file.size(FRAMES, Some(USUAL_FRAMES), 16)?;
        return Ok(Frames::Within(frames));
    }
    Ok(match file.tower.store.tensor(SECOND_FRAME) {
        Some(_) => Frames::Apart(USUAL_FRAMES),
        None => Frames::One,
    })
}

/// Base of the frequencies of turns. GGUF files do not say it.
fn theta(file: &TowerFile) -> Result<f32, ArchError> {
    let config = file.tower.config();
    let rope = config.and_then(|config| config.section("rope_parameters"));
    let found = match rope {
        Some(rope) => rope.f32("rope_theta")?,
        None => None,
    };
    let theta = found.unwrap_or(10_000.0);
    file.tower.check_positive("rope_theta", theta)?;
    Ok(theta)
}
