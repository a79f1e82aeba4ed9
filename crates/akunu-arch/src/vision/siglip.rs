//! The parts of SigLIP, which most towers are or resemble: patches, learned positions, layers with norms by mean and
//! variance before each block, biases everywhere, and no gate.

use super::file::TowerFile;
use super::tower::{CHANNELS, PatchPositions, Resize};
use crate::error::ArchError;
use crate::ffn::{Dense, DenseActivation, Ffn};
use crate::file::{Key, keys};
use crate::layer::{Attention, BlockNorms, Layer, LayerNorms, MAX_HEAD_LENGTH, Norm, NormKind};
use crate::linear::Linear;
use crate::parts::linear;
use crate::weights::{Frames, NamedMatrix, NamedVector, PatchKernel};

const HEADS: Key = Key::new(
    &["attention.head_count"],
    &["num_attention_heads", "num_heads"],
);
const LAYERS: Key = Key::new(&["block_count"], &["num_hidden_layers", "depth"]);
const PATCH: Key = Key::same(&["patch_size"]);
const IMAGE: Key = Key::same(&["image_size"]);
const EPS: Key = Key::new(&["attention.layer_norm_epsilon"], &["layer_norm_eps"]);

/// What `transformers` takes where a config does not say it.
pub(super) struct Usual {
    pub dim: u32,
    pub ffn: u32,
    pub layers: u32,
    pub heads: u32,
    pub image: u32,
    pub patch: u32,
}

/// The sizes of a tower, and the parts of these sizes.
pub(super) struct Siglip {
    pub dim: u32,
    pub eps: f32,
    /// Side of a patch in pixels.
    pub patch: u32,
    pub n_layers: u32,
    pub head_dim: u32,
    heads: u32,
    ffn: u32,
    activation: DenseActivation,
    /// Whether the file has the names of the two products of a feed-forward block the wrong way round.
    ffn_is_swapped: bool,
    /// Whether queries, keys and values are one tensor.
    pub qkv_is_fused: bool,
}

impl Siglip {
    pub fn read(file: &TowerFile, usual: &Usual) -> Result<Siglip, ArchError> {
        let size = |key, usual, most| file.size(key, Some(usual), most);
        let dim = size(keys::DIM, usual.dim, 1 << 16)?;
        let ffn = size(keys::FFN, usual.ffn, 1 << 20)?;
        let heads = size(HEADS, usual.heads, 1 << 10)?;
        let eps = match (file.tower.f32(EPS)?, file.config()) {
            (Some(eps), _) => eps,
            (None, Some(_)) => 1e-6,
            (None, None) => return Err(file.tower.missing(EPS)),
        };
        file.tower.check_positive("norm epsilon", eps)?;
        let head_dim = dim / heads;
        let is_whole = head_dim * heads == dim && head_dim.is_multiple_of(4) && head_dim > 0;
        if !is_whole || head_dim > MAX_HEAD_LENGTH {
            let found = format!("{heads} for a width of {dim}");
            let wanted = "so many that each has a multiple of 4 numbers, at most 256";
            return Err(file
                .tower
                .invalid(&file.tower.key_name(HEADS), found, wanted));
        }
        Ok(Siglip {
            dim,
            eps,
            patch: size(PATCH, usual.patch, 1 << 8)?,
            n_layers: size(LAYERS, usual.layers, 1 << 10)?,
            heads,
            head_dim,
            ffn,
            activation: activation(file)?,
            ffn_is_swapped: is_swapped(file, [ffn, dim]),
            qkv_is_fused: false,
        })
    }

    /// Patches on a side of the square images that the tower reads.
    pub fn side(&self, file: &TowerFile, usual: &Usual) -> Result<u32, ArchError> {
        let pixels = file.size(IMAGE, Some(usual.image), 1 << 14)?;
        match pixels / self.patch {
            0 => {
                let found = format!("{pixels}, and a patch has {}", self.patch);
                let key = file.tower.key_name(IMAGE);
                Err(file.tower.invalid(&key, found, "at least a patch"))
            }
            side => Ok(side),
        }
    }

    /// The product of patches, of so many images together.
    pub fn patches(&self, frames: Frames) -> Linear {
        let numbers = CHANNELS * self.patch * self.patch;
        let kernel = PatchKernel {
            channels: CHANNELS,
            side: self.patch,
            frames,
            by_pixels: false,
        };
        let name = "vision.patches";
        let plain = linear(name.to_string(), self.dim, numbers).with_bias();
        Linear {
            weight: NamedMatrix {
                kernel: Some(kernel),
                ..plain.weight
            },
            ..plain
        }
    }

    /// Positions of a square of so many patches on a side.
    pub fn positions(&self, side: u32) -> PatchPositions {
        let weight = NamedVector::new("vision.positions.weight", side * side, self.dim);
        PatchPositions {
            weight,
            side,
            resize: Resize::Corners,
        }
    }

    /// All layers.
    pub fn layers(&self) -> Vec<Layer> {
        (0..self.n_layers).map(|at| self.layer(at)).collect()
    }

    fn layer(&self, at: u32) -> Layer {
        let name = |part: &str| format!("vision.layers.{at}.{part}");
        let product = |part: &str, rows, cols| linear(name(part), rows, cols).with_bias();
        let whole = product("attention.qkv", 3 * self.dim, self.dim);
        let square = |part: &str| product(part, self.dim, self.dim);
        let [q, k, v] = match self.qkv_is_fused {
            true => [0, 1, 2].map(|at| part_of(&whole, at * self.dim, self.dim)),
            false => ["attention.q", "attention.k", "attention.v"].map(square),
        };
        let norms = |part: &str| BlockNorms {
            input: Some(self.norm(name(part))),
            ..BlockNorms::NONE
        };
        let attention = Attention {
            heads: self.heads,
            kv_heads: self.heads,
            head_dim: self.head_dim,
            keys_of: None,
            latent: None,
            has_gate: false,
            gate: None,
            q,
            k,
            v,
            output: square("attention.output"),
            qk_norm: None,
            row_norm: None,
            value_eps: None,
            rope: None,
            window: None,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
            temperature: None,
            softcap: None,
            sinks: None,
        };
        let [up, down] = match self.ffn_is_swapped {
            false => ["ffn.up", "ffn.down"],
            true => ["ffn.down", "ffn.up"],
        };
        let ffn = Ffn::Dense(Dense {
            width: self.ffn,
            activation: self.activation,
            up: product(up, self.ffn, self.dim),
            down: product(down, self.dim, self.ffn),
        });
        let norms = LayerNorms {
            mixer: norms("attention_norm"),
            ffn: norms("ffn_norm"),
        };
        Layer::new(attention, ffn, norms)
    }

    /// A norm by mean and variance, with a bias.
    pub fn norm(&self, module: String) -> Norm {
        self.norm_of(module, self.dim)
    }

    /// The same of so many numbers.
    pub fn norm_of(&self, module: String, width: u32) -> Norm {
        let norm = Norm {
            kind: NormKind::Layer,
            weight: NamedVector::new(format!("{module}.weight"), 1, width),
            bias: None,
            eps: self.eps,
        };
        norm.with_bias()
    }
}

/// `rows` outputs of a product, from `first` on.
fn part_of(whole: &Linear, first: u32, rows: u32) -> Linear {
    Linear {
        weight: whole.weight.part(first, rows),
        bias: whole.bias.as_ref().map(|bias| bias.part(first, rows)),
    }
}

/// The activation of the feed-forward blocks.
fn activation(file: &TowerFile) -> Result<DenseActivation, ArchError> {
    const USE_GELU: &str = "clip.use_gelu";
    if let Some(config) = file.tower.config() {
        return match config.string("hidden_act")? {
            None | Some("gelu_pytorch_tanh" | "gelu_new") => Ok(DenseActivation::Gelu),
            Some("gelu") => Ok(DenseActivation::GeluErf),
            Some(other) => Err(file.tower.unsupported(format!("`hidden_act` = `{other}`"))),
        };
    }
    match file.metadata_flag(USE_GELU)? {
        Some(true) => Ok(DenseActivation::Gelu),
        _ => {
            let what = format!("a vision tower without `{USE_GELU}`");
            Err(file.tower.unsupported(what))
        }
    }
}

/// Whether the first product of a feed-forward block is the one that the file calls `ffn_down`: early converters wrote so.
fn is_swapped(file: &TowerFile, [ffn, dim]: [u32; 2]) -> bool {
    let up = file.tower.store.tensor("vision.layers.0.ffn.up.weight");
    let shape = up.map(|up| [up.rows(), up.cols()]);
    ffn != dim && shape == Some([dim as usize, ffn as usize])
}
