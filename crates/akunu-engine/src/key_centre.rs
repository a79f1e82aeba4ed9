//! What keys are stored less of: their centre.
//!
//! The bias of a key is in all keys of its head, turned to their positions. Where it is large and its pairs turn slowly, all keys
//! contain nearly the same vector, and in 8 bits most of the numbers are spent on it. Any vector c can be subtracted from all
//! keys: `q · (k - c) = q · k - q · c`, and softmax does not see what all scores of a query have in common.
//!
//! Of a bias b, c is the mean of what it becomes at the positions from 0 to [`POSITIONS`]. A pair (a, b) of it that turns by
//! `x` until then has
//!
//! ```text
//! c_a = a sin(x)/x - b (1 - cos x)/x,   c_b = a (1 - cos x)/x + b sin(x)/x;   x -> 0: (a, b)
//! ```
//!
//! which is next to nothing for pairs that turn fast. Scores with a cap are no sums any more, and a norm of heads bounds their
//! keys: such models have no centre. Nor have those with sinks, which are scores that do not change with the others.

use std::path::Path;

use akunu_arch::{Attention, Model};
use akunu_gguf::WeightStore;
use akunu_program::Pairing;
use akunu_types::KvFormat;

use crate::builder::{divisors, pairing};
use crate::error::EngineError;
use crate::weights::read_vector;

/// The positions that a centre is the mean of. Pairs that turn much further later on are less near to it there.
const POSITIONS: f64 = 8192.0;

/// The centres of each layer's keys, (n_kv_heads, head_dim); none where keys are stored as they are.
pub(crate) fn of_layers(
    store: &WeightStore,
    config: &Model,
    (kv, rope_freqs): (KvFormat, &[f32]),
    path: &Path,
) -> Result<Vec<Option<Vec<f32>>>, EngineError> {
    let of_layer = |attention: &Attention| match has_centre(attention, kv) {
        true => of_layer(store, attention, rope_freqs, path),
        false => Ok(None),
    };
    config.cached_attention().map(of_layer).collect()
}

fn has_centre(attention: &Attention, kv: KvFormat) -> bool {
    let takes_sums = attention.softcap.is_none() && attention.sinks.is_none();
    kv.subtracts_centre() && attention.qk_norm.is_none() && takes_sums
}

fn of_layer(
    store: &WeightStore,
    attention: &Attention,
    rope_freqs: &[f32],
    path: &Path,
) -> Result<Option<Vec<f32>>, EngineError> {
    let Some(bias) = &attention.k.bias else {
        return Ok(None);
    };
    let Some(view) = store.tensor(&bias.name) else {
        unreachable!("{} was checked with the others", bias.name)
    };
    let scale = attention
        .rope
        .map_or(1.0, |rope| f64::from(rope.freq_scale));
    let turned = |divisor: &f32| POSITIONS * scale / f64::from(*divisor);
    let angles: Vec<f64> = divisors(attention, rope_freqs).iter().map(turned).collect();
    let bias = read_vector(&view, path)?;
    let turned = attention.turned_dim() as usize;
    Ok(Some(mean_of_turned(
        &bias,
        &angles,
        (pairing(attention), turned),
    )))
}

/// The mean of heads while each pair turns from 0 to its angle. `turned_dim` elements of a head turn.
fn mean_of_turned(
    heads: &[f32],
    angles: &[f64],
    (pairing, turned_dim): (Pairing, usize),
) -> Vec<f32> {
    let head_dim = 2 * angles.len();
    let mut means = heads.to_vec();
    let of_heads = heads
        .chunks_exact(head_dim)
        .zip(means.chunks_exact_mut(head_dim));
    for (head, mean) in of_heads {
        for (d, &x) in angles.iter().enumerate() {
            let (cosine, sine) = match x {
                0.0 => (1.0, 0.0),
                x => (x.sin() / x, (1.0 - x.cos()) / x),
            };
            let (a, b) = pairing.pair(d, turned_dim);
            let [at_a, at_b] = [a, b].map(|at| f64::from(head[at]));
            mean[a] = (at_a * cosine - at_b * sine) as f32;
            mean[b] = (at_a * sine + at_b * cosine) as f32;
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use akunu_kernels::kernel::rope::Frequencies;

    use super::*;

    /// The formula gives what the sum over many positions gives. A wrong sign, or the other pairing, is far off.
    #[test]
    fn a_centre_is_the_mean_over_positions() {
        let bias: Vec<f32> = (0..16).map(|i| 300.0 - 37.0 * i as f32).collect();
        let divisors = [1.0, 700.0, 9000.0, 1e6];
        let angles = divisors.map(|divisor| POSITIONS / f64::from(divisor));
        let frequencies = Frequencies {
            table: Some(&divisors),
            theta: 0.0,
            scale: 1.0,
            head_dim: 8,
            turned_dim: 8,
        };
        for pairing in [Pairing::Interleaved, Pairing::Halves] {
            let mut sums = [0.0f64; 16];
            for position in 0..POSITIONS as u32 {
                let turn = |head| frequencies.turn(head, position as f32 + 0.5, pairing);
                let turned = bias.chunks(8).flat_map(turn);
                sums.iter_mut()
                    .zip(turned)
                    .for_each(|(sum, x)| *sum += f64::from(x));
            }
            let found = mean_of_turned(&bias, &angles, (pairing, 8));
            for (found, sum) in found.into_iter().zip(sums) {
                let mean = sum / POSITIONS;
                assert!(
                    (f64::from(found) - mean).abs() < 0.01,
                    "{found} instead of {mean}"
                );
            }
        }
    }

    /// A pair that never turns is its own mean.
    #[test]
    fn what_does_not_turn_is_its_own_centre() {
        assert_eq!(
            mean_of_turned(&[3.0, -5.0], &[0.0], (Pairing::Halves, 2)),
            [3.0, -5.0]
        );
    }
}
