//! Mamba-2, with the names of its weights.

use super::state::TAPS;
use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::file::Key;
use crate::linear::Linear;
use crate::state::{Ssd, SsdGate, Taps};
use crate::weights::{Change, NamedVector};

const SSD_STATE: Key = Key::new(
    &["ssm.state_size"],
    &["mamba_d_state", "ssm_state_size", "state_size"],
);
const SSD_GROUPS: Key = Key::new(&["ssm.group_count"], &["mamba_n_groups", "n_groups"]);
const SSD_HEADS: Key = Key::new(
    &["ssm.time_step_rank"],
    &["mamba_n_heads", "mamba_num_heads", "num_heads"],
);
/// Elements of all heads; folders say those of each, or by how much more they are than the model's width.
const SSD_WIDTH: Key = Key::new(&["ssm.inner_size"], &["mamba_d_ssm"]);
const SSD_HEAD_DIM: Key = Key::new(&[], &["mamba_head_dim"]);
const SSD_EXPANSION: Key = Key::new(&[], &["mamba_expand", "expand"]);

/// The sizes of Mamba-2, which all layers have in common.
pub(crate) struct SsdSizes {
    heads: u32,
    head_dim: u32,
    groups: u32,
    state_size: u32,
    taps: u32,
}

impl Parts<'_> {
    /// The sizes of Mamba-2.
    pub(crate) fn ssd_sizes(&self) -> Result<SsdSizes, ArchError> {
        let file = self.file;
        let (heads, groups) = (
            file.required(SSD_HEADS)?,
            file.u32(SSD_GROUPS)?.unwrap_or(1),
        );
        file.check_heads(heads, groups)?;
        let expanded = file
            .u32(SSD_EXPANSION)?
            .unwrap_or(2)
            .saturating_mul(self.dim);
        let of_heads = file.u32(SSD_HEAD_DIM)?;
        let of_heads = of_heads.map(|each| each.saturating_mul(heads));
        let width = file.u32(SSD_WIDTH)?.or(of_heads).unwrap_or(expanded);
        let state_size = file.required(SSD_STATE)?;
        if !state_size.is_multiple_of(32) || !(32..=256).contains(&state_size) {
            let (key, found) = (file.key_name(SSD_STATE), state_size.to_string());
            return Err(file.invalid(&key, found, "a multiple of 32, at most 256"));
        }
        let head_dim = width / heads;
        let is_even = width.is_multiple_of(heads) && width.is_multiple_of(4);
        if !is_even || !(1..=1 << 10).contains(&head_dim) {
            let found = format!("{width} elements for {heads} heads");
            let wanted = "heads of equal size, up to 1024, a multiple of 4 elements in all";
            return Err(file.invalid("Mamba-2 heads", found, wanted));
        }
        Ok(SsdSizes {
            heads,
            head_dim,
            groups,
            state_size,
            taps: self.taps(TAPS)?,
        })
    }

    /// Mamba-2 with a bias in its convolution.
    pub(crate) fn ssd(&self, at: usize, sizes: &SsdSizes) -> Ssd {
        let &SsdSizes {
            heads,
            head_dim,
            groups,
            state_size,
            taps,
        } = sizes;
        let name = |part: &str| in_layer(at, &format!("state.{part}"));
        let (width, xbc) = (heads * head_dim, heads * head_dim + 2 * groups * state_size);
        let in_folder = self.file.config().is_some();
        // GGUF files have a row for each head, and for each group of the norm.
        let of = |part, rows: u32, cols: u32| match in_folder {
            true => NamedVector::new(name(part), 1, rows * cols),
            false => NamedVector::new(name(part), rows, cols),
        };
        Ssd {
            heads,
            head_dim,
            groups,
            state_size,
            input: linear(name("input"), width + xbc + heads, self.dim),
            gate: SsdGate::Normed(of("norm.weight", groups, width / groups)),
            conv: Taps {
                count: taps,
                weight: NamedVector::new(name("conv.weight"), xbc, taps),
                bias: Some(NamedVector::new(name("conv.bias"), 1, xbc)),
            },
            dt_bias: NamedVector::new(name("dt_bias"), 1, heads),
            a: NamedVector {
                change: match in_folder {
                    true => Change::MinusExp,
                    false => Change::None,
                },
                ..of("decay", heads, 1)
            },
            d: of("d", heads, 1),
            eps: self.eps,
            output: linear(name("output"), self.dim, width),
        }
    }
}

impl Ssd {
    /// The same without a norm.
    pub(crate) fn without_norm(self) -> Ssd {
        let (width, rows) = (self.width(), self.input_dim());
        let whole = self.input.weight;
        let part = |first, rows| Linear {
            weight: whole.part(first, rows),
            bias: None,
        };
        Ssd {
            gate: SsdGate::Alone(part(0, width)),
            input: part(width, rows - width),
            ..self
        }
    }

    /// The same whose products for the gate, x, B, C and the time steps have these factors.
    pub(crate) fn times_each(self, factors: [f32; 5]) -> Ssd {
        let shared = self.groups * self.state_size;
        let sizes = [self.width(), self.width(), shared, shared, self.heads];
        let pieces: Vec<(u32, f32)> = sizes.into_iter().zip(factors).collect();
        let times = |linear: Linear, pieces: &[(u32, f32)]| Linear {
            weight: linear.weight.times_each(pieces.to_vec()),
            ..linear
        };
        match self.gate {
            SsdGate::Normed(_) => Ssd {
                input: times(self.input, &pieces),
                ..self
            },
            SsdGate::Alone(gate) => Ssd {
                gate: SsdGate::Alone(times(gate, &pieces[..1])),
                input: times(self.input, &pieces[1..]),
                ..self
            },
        }
    }
}
