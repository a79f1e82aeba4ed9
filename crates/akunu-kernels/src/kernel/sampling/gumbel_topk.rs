//! `gumbel_topk_f32`: draws a token from the k best, to `token[0]` and `history[pos + 1]`.
//!
//! The candidates are sorted in descending order, as [`super::topk_select`] leaves them. In the order
//! of llama.cpp's default chain:
//!
//! 1. top-p: softmax over the k values; keep the first ones until their sum reaches `top_p`,
//! 2. min-p: keep values of at least `best + log(min_p)`,
//! 3. draw: the largest of `value * inv_temperature - log(-log(u))`, where u comes from
//!    Philox(seed; token, pos). The Gumbel noise makes that a draw from the softmax of the kept
//!    values at the temperature.
//!
//! The best candidate is always kept. The random bits are the same on every executor; `exp` and `log`
//! are not, to the last digit. A draw can differ only where two sums, or a limit and a probability,
//! are that close, and the cases stay away from such ties (a test sees to it).

use akunu_types::SharedStruct;
use akunu_types::params::GumbelTopKParams;

use super::philox::{open_unit, philox};
use super::topk_select::MAX_K;
use super::{first_largest, one_token_of_history, store_token};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gumbel_topk_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "gumbel_topk",
    bindings: &[
        read(0, "values", Element::F32),
        read(1, "ids", Element::U32),
        write(2, "token", Element::U32),
        read_write(3, "history", Element::U32),
    ],
    params_index: 4,
    params: GumbelTopKParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: one_token_of_history,
    twin,
    cases: |_| cases(),
};

/// One threadgroup, a candidate a thread; an empty grid, which the plan check refuses, for none or
/// too many.
fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GumbelTopKParams = args.params();
    let possible = (1..=MAX_K).contains(&p.k);
    Launch::new([u32::from(possible), 1, 1], [MAX_K, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: GumbelTopKParams = args.params();
    vec![
        bytes::<f32>(&[p.k]),
        bytes::<u32>(&[p.k]),
        size_of::<u32>(),
        bytes::<u32>(&[p.history_len]),
    ]
}

fn twin(t: &mut Twin) {
    let p: GumbelTopKParams = t.params();
    let (values, ids) = (t.read::<f32>(0), t.read::<u32>(1));
    let token = ids[draw(&p, values, ids)];
    t.store(2, &[token]);
    store_token(t.write(3), p.pos, token);
}

/// The place of the candidate that is drawn.
pub fn draw(p: &GumbelTopKParams, values: &[f32], ids: &[u32]) -> usize {
    first_largest(scores(p, values, ids)).unwrap_or(0)
}

/// What each kept candidate draws; -inf for those that are not kept.
fn scores(p: &GumbelTopKParams, values: &[f32], ids: &[u32]) -> impl Iterator<Item = f32> {
    let best = values[0];
    let weights = values.iter().map(move |&value| weight(value, best));
    let total: f32 = weights.clone().sum();
    let limit = best + p.min_p.ln();
    let mut before = 0.0;
    weights.enumerate().map(move |(i, weight)| {
        let in_top_p = p.top_p >= 1.0 || before < p.top_p * total;
        let in_min_p = p.min_p <= 0.0 || values[i] >= limit;
        let kept = i == 0 || (in_top_p && in_min_p);
        before += weight;
        if kept {
            values[i] * p.inv_temperature + noise(p, ids[i])
        } else {
            f32::NEG_INFINITY
        }
    })
}

/// The probability of a value, up to the common factor.
fn weight(value: f32, best: f32) -> f32 {
    if value > f32::NEG_INFINITY {
        (value - best).exp()
    } else {
        0.0
    }
}

/// Gumbel noise: `-log(-log(u))`.
fn noise(p: &GumbelTopKParams, id: u32) -> f32 {
    let bits = philox([id, p.pos, 0, 0], [p.seed_lo, p.seed_hi]);
    -(-open_unit(bits[0]).ln()).ln()
}

fn cases() -> Vec<Case> {
    let all = GumbelTopKParams {
        k: 40,
        pos: 3,
        history_len: 8,
        inv_temperature: 1.25,
        top_p: 1.0,
        min_p: 0.0,
        seed_lo: 42,
        seed_hi: 7,
    };
    let of = |label: &str, p: GumbelTopKParams| case(label, p, 0);
    vec![
        of("one candidate", GumbelTopKParams { k: 1, ..all }),
        of("all of 40", all),
        of("top-p", GumbelTopKParams { top_p: 0.73, ..all }),
        of("min-p", GumbelTopKParams { min_p: 0.21, ..all }),
        of(
            "both, of 256",
            GumbelTopKParams {
                k: 256,
                top_p: 0.9,
                min_p: 0.03,
                ..all
            },
        ),
        of(
            "hot",
            GumbelTopKParams {
                k: 200,
                inv_temperature: 0.1,
                pos: 100_000,
                ..all
            },
        ),
        of(
            "top-p 0 keeps the best",
            GumbelTopKParams { top_p: 0.0, ..all },
        ),
        of(
            "no history",
            GumbelTopKParams {
                history_len: 0,
                ..all
            },
        ),
        case(
            "forbidden candidates",
            GumbelTopKParams {
                top_p: 0.95,
                pos: 7,
                ..all
            },
            25,
        ),
        case("only forbidden candidates", all, 40),
    ]
}

/// Descending values, the last `n_forbidden` of them -inf. Tokens are compared exactly.
fn case(label: &str, params: GumbelTopKParams, n_forbidden: usize) -> Case {
    let n = params.k as usize;
    let mut rng = Rng::new(12);
    let mut values: Vec<f32> = rng.floats(n, 3.0).iter().map(|v| v + 10.0).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values[n - n_forbidden..].fill(f32::NEG_INFINITY);
    let ids: Vec<u32> = (0..params.k).map(|i| (i * 7919 + 13) % 49_152).collect();
    Case::new(label, &params, 0.0)
        .bind(&values)
        .bind(&ids)
        .bind(&[u32::MAX])
        .bind(&vec![55u32; params.history_len as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(case: &Case) -> (GumbelTopKParams, &[f32], &[u32]) {
        let params = bytemuck::pod_read_unaligned(case.params.as_bytes());
        let values = bytemuck::cast_slice(case.data[0].as_ref());
        (params, values, bytemuck::cast_slice(case.data[1].as_ref()))
    }

    /// A last digit of exp or log must not decide a case. If this fails, change the case's seed.
    #[test]
    fn cases_stay_away_from_ties() {
        for case in cases() {
            let (p, values, ids) = inputs(&case);
            let mut sorted: Vec<f32> = scores(&p, values, ids).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let gap = sorted.get(1).map_or(1.0, |second| sorted[0] - second);
            // All forbidden: -inf minus -inf. The first one is taken then, without a score.
            let clear = gap.is_nan() || gap >= 1e-3;
            assert!(clear, "{}: scores differ by {gap}", case.label);
            let total: f32 = values.iter().map(|&v| weight(v, values[0])).sum();
            let mut before = 0.0;
            for &value in values {
                let share = before / total;
                assert!(p.top_p >= 1.0 || (share - p.top_p).abs() > 1e-5 || p.top_p == 0.0);
                let limit = values[0] + p.min_p.ln();
                assert!(p.min_p == 0.0 || (value - limit).abs() > 1e-4);
                before += weight(value, values[0]);
            }
        }
    }

    /// Draws over many positions have the probabilities of the softmax at the temperature. The
    /// bound is 5 standard deviations of a count.
    #[test]
    fn draws_follow_the_softmax() {
        let (values, ids) = ([2.0f32, 1.5, 0.5, -1.0], [10u32, 20, 30, 40]);
        let mut counts = [0u32; 4];
        const N: u32 = 20_000;
        for pos in 0..N {
            let p = GumbelTopKParams {
                k: 4,
                pos,
                inv_temperature: 0.5,
                top_p: 1.0,
                seed_lo: 1,
                ..Default::default()
            };
            counts[first_largest(scores(&p, &values, &ids)).unwrap()] += 1;
        }
        let total: f64 = values.iter().map(|&v| f64::from(v * 0.5).exp()).sum();
        for (count, value) in counts.iter().zip(values) {
            let share = f64::from(value * 0.5).exp() / total;
            let deviation = (share * (1.0 - share) * f64::from(N)).sqrt();
            let off = (f64::from(*count) - share * f64::from(N)).abs();
            assert!(off < 5.0 * deviation, "{count} of {N}, {share}");
        }
    }

    /// llama.cpp keeps the candidate that makes the sum reach top_p, and none after it.
    #[test]
    fn top_p_keeps_the_candidate_that_crosses() {
        let values = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        for (top_p, kept) in [(0.4, 1), (0.6, 2), (0.79, 2), (0.85, 3), (1.0, 3)] {
            let p = GumbelTopKParams {
                k: 3,
                inv_temperature: 1.0,
                top_p,
                ..Default::default()
            };
            let scores = scores(&p, &values, &[1, 2, 3]);
            let n = scores.filter(|score| score.is_finite()).count();
            assert_eq!(n, kept, "{top_p}");
        }
    }
}
