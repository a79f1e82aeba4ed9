//! The heads of attention, and how they turn.

use akunu_arch::{self as arch, Attention};
use akunu_program::{HeadNorms, Heads, Op, Pairing, Rope, Slice, op};

use crate::weights::Weight;

/// The numbers of heads, as the operations take them.
pub(super) fn heads(attention: &Attention<Weight, Slice>) -> Heads {
    Heads {
        n_heads: attention.heads,
        n_kv_heads: attention.kv_heads,
        head_dim: attention.head_dim,
    }
}

/// The norms of single heads, as the operations take them.
pub(super) fn turned_norms(attention: &Attention<Weight, Slice>) -> Option<HeadNorms> {
    attention.qk_norm.as_ref().map(|norms| HeadNorms {
        q: norms.q,
        k: norms.k,
        eps: norms.eps,
        turn_first: norms.turn_first,
    })
}

/// The turn of keys with these divisors. Those of keys that do not turn are infinite.
pub(super) fn rope(attention: &Attention<Weight, Slice>, divisors: Slice) -> Rope {
    Rope {
        pairing: pairing(attention),
        theta: attention.rope.map_or(1.0, |rope| rope.theta),
        freq_scale: attention.rope.map_or(1.0, |rope| rope.freq_scale),
        turned_dim: attention.turned_dim(),
        divisors,
    }
}

/// The factor of scores whose queries and keys are both multiplied by the magnitude of a turn: 1 where a part of them does not turn.
pub(super) fn magnitude(attention: &Attention<Weight, Slice>) -> f32 {
    match attention.turned_dim() == attention.head_dim {
        true => turned_factor(attention),
        false => 1.0,
    }
}

/// The same of their elements that turn.
fn turned_factor(attention: &Attention<Weight, Slice>) -> f32 {
    let magnitude = attention.rope.map_or(1.0, |rope| rope.magnitude);
    magnitude * magnitude
}

/// The operation that multiplies queries by the temperature of their positions, and those elements that turn by the magnitude.
pub(super) fn scaled_queries(attention: &Attention<Weight, Slice>, q: Slice) -> Option<Op> {
    let turned_factor = turned_factor(attention) / magnitude(attention);
    if attention.temperature.is_none() && turned_factor == 1.0 {
        return None;
    }
    let temperature = attention.temperature;
    Some(Op::ScaleQueries(op::ScaleQueries {
        q,
        n_heads: attention.heads,
        head_dim: attention.head_dim,
        turned_dim: attention.turned_dim(),
        turned_factor,
        temperature: temperature.map_or(0.0, |temperature| temperature.scale),
        period: temperature.map_or(1, |temperature| temperature.period),
    }))
}

/// Which elements of its heads turn together.
pub(crate) fn pairing<M, V>(attention: &Attention<M, V>) -> Pairing {
    match attention.rope.map(|rope| rope.pairing) {
        Some(arch::Pairing::Interleaved) => Pairing::Interleaved,
        Some(arch::Pairing::SplitHalves) | None => Pairing::Halves,
    }
}

/// The divisors of a layer's attention: infinite where its keys do not turn, so that a turn leaves them as they are.
pub(crate) fn divisors<M, V>(attention: &Attention<M, V>, rope_freqs: &[f32]) -> Vec<f32> {
    match attention.rope {
        Some(rope) => rope.divisors(attention.head_dim, rope_freqs),
        None => vec![f32::INFINITY; attention.head_dim as usize / 2],
    }
}
