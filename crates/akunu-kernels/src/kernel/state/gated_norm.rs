//! `gated_norm_f32`: the norm of pieces of a row by their root mean square, and a gate.
//!
//! ```text
//! to = norm(x) * weight * silu(gate)      or      to = norm(x * silu(gate)) * weight
//! norm(x) = x / sqrt(mean(x²) + eps)
//! ```

use akunu_types::params::GatedNormParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::extent::{count, strided};
use crate::kernel::activation::silu;
use crate::kernel::norm::rmsnorm::inverse_rms;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: GatedNormParams at 4) {
        x: read f32 = [p.n_rows, p.pieces, p.width],
        gate: read f32 = strided(p.n_rows, p.gate_stride, count(&[p.pieces, p.width])),
        weight: read f32 = [if p.own_weights == 0 { 1 } else { p.pieces }, p.width],
        to: write f32 = [p.n_rows, p.pieces, p.width],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gated_norm_f32", ""),
    family: Family::State,
    source: "gated_norm",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// A threadgroup a piece, with a thread for about four elements.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: GatedNormParams = args.params();
    let threads = p.width.div_ceil(4).next_multiple_of(SIMD_WIDTH);
    Launch::new(
        [p.pieces, p.n_rows, 1],
        [
            threads.clamp(SIMD_WIDTH, chip.max_threads.clamp(SIMD_WIDTH, 512)),
            1,
            1,
        ],
    )
}

fn twin(t: &mut Twin) {
    let p: GatedNormParams = t.params();
    let b = Slices::of(t);
    let (pieces, width) = (p.pieces as usize, p.width as usize);
    for (at, to) in b.to.chunks_exact_mut(width).enumerate() {
        let (row, piece) = (at / pieces, at % pieces);
        let gate = &b.gate[row * p.gate_stride as usize + piece * width..][..width];
        let weight = &b.weight[if p.own_weights == 0 { 0 } else { piece * width }..][..width];
        to.copy_from_slice(&b.x[at * width..][..width]);
        if p.gate_first != 0 {
            to.iter_mut()
                .zip(gate)
                .for_each(|(to, &gate)| *to *= silu(gate));
        }
        let inverse = inverse_rms(to, p.eps);
        for (to, weight) in to.iter_mut().zip(weight) {
            *to *= inverse * weight;
        }
        if p.gate_first == 0 {
            to.iter_mut()
                .zip(gate)
                .for_each(|(to, &gate)| *to *= silu(gate));
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::extent::product;

    pub fn all() -> Vec<Case> {
        vec![
            case([1, 1, 1], true, false),
            case([3, 4, 128], false, false),
            case([2, 3, 71], true, true),
            case([2, 2, 2100], true, true),
            case([2, 1, 1024], false, true),
        ]
    }

    /// A sum in another order, an exponential and a few products of each element.
    fn case([n_rows, pieces, width]: [u32; 3], gate_first: bool, own_weights: bool) -> Case {
        let gate_stride = pieces * width + 5;
        let params = GatedNormParams {
            n_rows,
            pieces,
            width,
            gate_stride,
            gate_first: u32::from(gate_first),
            own_weights: u32::from(own_weights),
            eps: 1e-5,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(width));
        let n = product(&[n_rows, pieces, width]);
        let weights = if own_weights { pieces * width } else { width };
        let label = format!("{n_rows} rows, {pieces} x {width}, gate first {gate_first}");
        Case::new(label, &params, 1e-11)
            .bind(&rng.floats(n, 3.0))
            .bind(&rng.floats((n_rows * gate_stride) as usize, 8.0))
            .bind(&rng.floats(weights as usize, 1.0))
            .bind(&vec![f32::NAN; n])
    }
}
