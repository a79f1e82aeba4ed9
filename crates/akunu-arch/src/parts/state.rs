//! Mixers with a state, with the names of their weights.

use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::file::Key;
use crate::state::{DeltaNet, HeadOrder, ShortConv, Taps};
use crate::weights::{Change, NamedVector};

const TAPS: Key = Key::new(&["ssm.conv_kernel"], &["linear_conv_kernel_dim"]);
const HEAD_DIM: Key = Key::new(&["ssm.state_size"], &["linear_key_head_dim"]);
const KEY_HEADS: Key = Key::new(&["ssm.group_count"], &["linear_num_key_heads"]);
const VALUE_HEADS: Key = Key::new(&["ssm.time_step_rank"], &["linear_num_value_heads"]);

/// The sizes of a delta rule, which all layers have in common.
pub(crate) struct DeltaSizes {
    key_heads: u32,
    value_heads: u32,
    head_dim: u32,
    taps: u32,
}

impl Parts<'_> {
    /// Which layers have full attention: in `config.json` those whose type says so, in GGUF files those that `has` names.
    pub fn attention_layers(
        &self,
        has: impl Fn(usize) -> Result<bool, ArchError>,
    ) -> Result<Vec<bool>, ArchError> {
        let types = self.file.config().and_then(|config| {
            let types = config.get("layer_types")?.as_array()?;
            Some(
                types
                    .iter()
                    .map(|kind| kind.as_str() == Some("full_attention")),
            )
        });
        match types {
            None => (0..self.n_layers).map(has).collect(),
            Some(types) if types.len() == self.n_layers => Ok(types.collect()),
            Some(types) => {
                let found = format!("{} for {} layers", types.len(), self.n_layers);
                Err(self
                    .file
                    .invalid("layer_types", found, "a type for each layer"))
            }
        }
    }

    /// The taps of a convolution that a file says.
    pub fn taps(&self, key: Key) -> Result<u32, ArchError> {
        let taps = self.file.required(key)?;
        match (2..=4).contains(&taps) {
            true => Ok(taps),
            false => {
                let key = self.file.key_name(key);
                Err(self.file.invalid(&key, taps.to_string(), "2, 3 or 4"))
            }
        }
    }

    /// A convolution between two gates.
    pub fn short_conv(&self, at: usize, taps: u32) -> ShortConv {
        let (width, name) = (self.dim, |part| in_layer(at, &format!("conv.{part}")));
        ShortConv {
            width,
            conv: Taps {
                count: taps,
                weight: NamedVector::new(name("taps.weight"), width, taps),
                bias: None,
            },
            input: linear(name("input"), 3 * width, width),
            output: linear(name("output"), width, width),
        }
    }

    /// The sizes of a delta rule.
    pub(crate) fn delta_sizes(&self) -> Result<DeltaSizes, ArchError> {
        let file = self.file;
        let sizes = DeltaSizes {
            key_heads: file.required(KEY_HEADS)?,
            value_heads: file.required(VALUE_HEADS)?,
            head_dim: file.required(HEAD_DIM)?,
            taps: self.taps(TAPS)?,
        };
        file.check_heads(sizes.value_heads, sizes.key_heads)?;
        if !sizes.head_dim.is_multiple_of(32) || !(32..=256).contains(&sizes.head_dim) {
            let (key, found) = (file.key_name(HEAD_DIM), sizes.head_dim.to_string());
            return Err(file.invalid(&key, found, "a multiple of 32, at most 256"));
        }
        Ok(sizes)
    }

    /// A delta rule.
    pub(crate) fn delta_net(&self, at: usize, sizes: &DeltaSizes) -> DeltaNet {
        let &DeltaSizes {
            key_heads,
            value_heads,
            head_dim,
            taps,
        } = sizes;
        let in_folder = self.file.config().is_some();
        let name = |part: &str| in_layer(at, part);
        let product = |part, rows| linear(name(part), rows, self.dim);
        let of_heads = |part| NamedVector::new(name(part), 1, value_heads);
        let value_dim = value_heads * head_dim;
        let qkv_dim = 2 * key_heads * head_dim + value_dim;
        DeltaNet {
            key_heads,
            value_heads,
            head_dim,
            order: match in_folder {
                true => HeadOrder::Grouped,
                false => HeadOrder::Tiled,
            },
            qkv: product("attention.qkv", qkv_dim),
            conv: Taps {
                count: taps,
                weight: NamedVector::new(name("state.conv.weight"), qkv_dim, taps),
                bias: None,
            },
            gate: product("attention.gate", value_dim),
            beta: product("state.beta", value_heads),
            alpha: product("state.alpha", value_heads),
            decay: NamedVector {
                change: match in_folder {
                    true => Change::MinusExp,
                    false => Change::None,
                },
                ..of_heads("state.decay")
            },
            dt_bias: of_heads("state.dt_bias"),
            norm: NamedVector::new(name("state.norm.weight"), 1, head_dim),
            eps: self.eps,
            output: linear(name("state.output"), self.dim, value_dim),
        }
    }
}

impl ShortConv {
    /// The same with all biases.
    pub(crate) fn with_biases(self) -> ShortConv {
        let name = self.conv.weight.name.trim_end_matches("weight");
        let bias = NamedVector::new(format!("{name}bias"), 1, self.width);
        ShortConv {
            conv: Taps {
                bias: Some(bias),
                ..self.conv
            },
            input: self.input.with_bias(),
            output: self.output.with_bias(),
            ..self
        }
    }
}
