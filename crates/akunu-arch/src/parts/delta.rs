//! The gated delta rule, with the names of its weights.

use super::state::TAPS;
use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::file::Key;
use crate::linear::Linear;
use crate::state::{DeltaNet, HeadOrder, Taps};
use crate::weights::{Change, NamedMatrix, NamedVector};

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

impl DeltaNet {
    /// The same of a file that has the products of all heads merged, a piece of each for each key head: beta and alpha, and in
    /// folders queries, keys, values and the gate. Value heads lie behind each other by key head.
    pub(crate) fn with_merged_inputs(self, parts: &Parts, at: usize) -> DeltaNet {
        let share = self.value_heads / self.key_heads;
        let (dim, values) = (self.head_dim, share * self.head_dim);
        let of = |name: &str, widths: &[u32]| Merged {
            whole: NamedMatrix::new(
                in_layer(at, name),
                self.key_heads * widths.iter().sum::<u32>(),
                parts.dim,
            ),
            widths: widths.to_vec(),
        };
        let beta_alpha = of("state.beta_alpha.weight", &[share; 2]);
        let [beta, alpha] = [0, 1].map(|part| beta_alpha.parts(&[part]));
        let net = DeltaNet {
            order: HeadOrder::Grouped,
            beta,
            alpha,
            ..self
        };
        if parts.file.store.tensor(&net.qkv.weight.name).is_some() {
            return net;
        }
        let all = of("state.input.weight", &[dim, dim, values, values]);
        DeltaNet {
            qkv: all.parts(&[0, 1, 2]),
            gate: all.parts(&[3]),
            ..net
        }
    }
}

/// Products whose rows alternate in one tensor: some rows of each, then the next of each.
struct Merged {
    whole: NamedMatrix,
    /// How many of each.
    widths: Vec<u32>,
}

impl Merged {
    /// These products, one behind the other.
    fn parts(&self, which: &[usize]) -> Linear {
        let stride: u32 = self.widths.iter().sum();
        let pieces = which.iter().flat_map(|&part| {
            let (before, width) = (self.widths[..part].iter().sum::<u32>(), self.widths[part]);
            let starts = (before..self.whole.rows).step_by(stride as usize);
            starts.map(move |first| [first, width])
        });
        Linear {
            weight: self.whole.gathered(pieces.collect()),
            bias: None,
        }
    }
}
