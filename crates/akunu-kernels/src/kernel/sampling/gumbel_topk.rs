//! `gumbel_topk_f32`: draws a token from the k best of each row, to `tokens[i]` and to the row's history.
//!
//! The candidates are sorted in descending order, as [`super::topk_select`] leaves them. The rule of the
//! row's sequence says how many of them count (`top_k`, or all), and then, in the order of llama.cpp's
//! default chain:
//!
//! 1. top-p: softmax over the values; keep the first ones until their sum reaches `top_p`,
//! 2. min-p: keep values of at least `best + log(min_p)`,
//! 3. draw: the largest of `value * inv_temperature - log(-log(u))`, where u comes from
//!    Philox(seed; token, position). The Gumbel noise makes that a draw from the softmax of the kept
//!    values at the temperature.
//!
//! The best candidate is always kept, and a greedy rule takes it without drawing. An idle row gets token 0
//! and no history. The random bits are the same on every executor; `exp` and `log`
//! are not, to the last digit. A draw can differ only where two sums, or a limit and a probability,
//! are that close, and the cases stay away from such ties (a test sees to it).

use akunu_types::SharedStruct;
use akunu_types::params::{GumbelTopKParams, Row, SamplingRule};

use super::cases::outputs;
use super::philox::{open_unit, philox};
use super::topk_select::MAX_K;
use super::{choice_work, choose_all, first_largest};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
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
        write(2, "tokens", Element::U32),
        read_write(3, "history", Element::U32),
        read(5, "outputs", Element::U32),
        read(6, "rows", Element::Row),
        read(7, "rules", Element::Rule),
    ],
    params_index: 4,
    params: GumbelTopKParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// One threadgroup a row, a candidate a thread; an empty grid, which the plan check refuses, for none or
/// too many.
fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GumbelTopKParams = args.params();
    let possible = (1..=MAX_K).contains(&p.k);
    Launch::new([if possible { p.n_rows } else { 0 }, 1, 1], [MAX_K, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: GumbelTopKParams = args.params();
    vec![
        bytes::<f32>(&[p.n_rows, p.k]),
        bytes::<u32>(&[p.n_rows, p.k]),
        bytes::<u32>(&[p.n_rows]),
        bytes::<u32>(&[p.n_sequences, p.history_stride]),
        bytes::<u32>(&[p.n_rows]),
        bytes::<Row>(&[p.row_capacity]),
        bytes::<SamplingRule>(&[p.n_sequences]),
    ]
}

/// A rule a row is read.
fn work(args: &Args, once: Work) -> Work {
    let p: GumbelTopKParams = args.params();
    let rules = bytes::<SamplingRule>(&[p.n_rows.min(p.n_sequences)]);
    choice_work(once, p.n_rows).with(6, Traffic::read(rules))
}

fn twin(t: &mut Twin) {
    let p: GumbelTopKParams = t.params();
    let (values, ids) = (t.read::<f32>(0), t.read::<u32>(1));
    let rules = t.read::<SamplingRule>(7);
    let k = p.k as usize;
    choose_all(t, p.history_stride, |at, row| {
        let (values, ids) = (&values[at * k..][..k], &ids[at * k..][..k]);
        let rule = &rules[row.sequence as usize];
        ids[draw(rule, row.position, values, ids)]
    });
}

/// The place of the candidate that is drawn.
pub fn draw(rule: &SamplingRule, position: u32, values: &[f32], ids: &[u32]) -> usize {
    if rule.is_greedy != 0 {
        return 0;
    }
    first_largest(scores(rule, position, values, ids)).unwrap_or(0)
}

/// What each kept candidate draws; -inf for those that are not kept.
fn scores(
    rule: &SamplingRule,
    position: u32,
    values: &[f32],
    ids: &[u32],
) -> impl Iterator<Item = f32> {
    let values = &values[..n_candidates(rule, values.len())];
    let best = values[0];
    let weights = values.iter().map(move |&value| weight(value, best));
    let total: f32 = weights.clone().sum();
    let limit = best + rule.min_p.ln();
    let mut before = 0.0;
    weights.enumerate().map(move |(i, weight)| {
        let in_top_p = rule.top_p >= 1.0 || before < rule.top_p * total;
        let in_min_p = rule.min_p <= 0.0 || values[i] >= limit;
        let kept = i == 0 || (in_top_p && in_min_p);
        before += weight;
        if kept {
            values[i] * rule.inv_temperature + noise(rule, position, ids[i])
        } else {
            f32::NEG_INFINITY
        }
    })
}

/// How many of the k best count.
fn n_candidates(rule: &SamplingRule, k: usize) -> usize {
    match rule.top_k {
        0 => k,
        top_k => k.min(top_k as usize),
    }
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
fn noise(rule: &SamplingRule, position: u32, id: u32) -> f32 {
    let bits = philox([id, position, 0, 0], [rule.seed_lo, rule.seed_hi]);
    -(-open_unit(bits[0]).ln()).ln()
}

/// A rule that keeps all candidates.
const ALL: SamplingRule = SamplingRule {
    inv_temperature: 1.25,
    top_p: 1.0,
    min_p: 0.0,
    penalty: 1.0,
    top_k: 0,
    penalty_window: 0,
    seed_lo: 42,
    seed_hi: 7,
    is_greedy: 0,
    _pad0: 0,
    _pad1: 0,
    _pad2: 0,
};

fn cases() -> Vec<Case> {
    let change = |change: fn(&mut SamplingRule)| {
        let mut rule = ALL;
        change(&mut rule);
        rule
    };
    let top_p = change(|rule| rule.top_p = 0.73);
    let min_p = change(|rule| rule.min_p = 0.21);
    let both = change(|rule| (rule.top_p, rule.min_p) = (0.9, 0.03));
    let hot = change(|rule| rule.inv_temperature = 0.1);
    let best = change(|rule| rule.top_p = 0.0);
    let nucleus = change(|rule| rule.top_p = 0.95);
    let top_k = change(|rule| (rule.top_k, rule.top_p) = (5, 0.9));
    let many = change(|rule| rule.top_k = 1000);
    let greedy = change(|rule| rule.is_greedy = 1);
    let of = |label, k, rule| Setting {
        label,
        k,
        rules: vec![rule],
        rows: vec![Some((0, 4))],
        history_stride: 8,
        n_forbidden: 0,
    };
    let settings = [
        of("one candidate", 1, ALL),
        of("all of 40", 40, ALL),
        of("top-p", 40, top_p),
        of("min-p", 40, min_p),
        of("both, of 256", 256, both),
        of("top-p 0 keeps the best", 40, best),
        of("top-k 5", 40, top_k),
        of("fewer than top-k", 40, many),
        of("greedy", 40, greedy),
        Setting {
            rows: vec![Some((0, 100_000))],
            ..of("hot", 200, hot)
        },
        Setting {
            history_stride: 0,
            ..of("no history", 40, ALL)
        },
        Setting {
            n_forbidden: 25,
            ..of("forbidden candidates", 40, nucleus)
        },
        Setting {
            n_forbidden: 40,
            ..of("only forbidden candidates", 40, ALL)
        },
        Setting {
            rules: vec![top_k, ALL, greedy, min_p],
            rows: vec![
                Some((1, 3)),
                None,
                Some((0, 50)),
                Some((3, 1)),
                Some((2, 9)),
            ],
            ..of("a rule each", 64, ALL)
        },
        Setting {
            rows: vec![None, None],
            ..of("only idle rows", 9, ALL)
        },
    ];
    settings.iter().map(case).collect()
}

/// Who draws from what.
struct Setting {
    label: &'static str,
    k: u32,
    /// The rule of each sequence.
    rules: Vec<SamplingRule>,
    /// Sequence and length of each row; `None` for an idle one.
    rows: Vec<Option<(u32, u32)>>,
    history_stride: u32,
    /// Candidates of each row that are -inf.
    n_forbidden: usize,
}

/// For each row descending values, the last ones -inf. Tokens are compared exactly.
fn case(s: &Setting) -> Case {
    let table = outputs(&s.rows);
    let params = GumbelTopKParams {
        n_rows: s.rows.len() as u32,
        k: s.k,
        history_stride: s.history_stride,
        n_sequences: s.rules.len() as u32,
        row_capacity: table.rows.len() as u32,
        ..Default::default()
    };
    let mut rng = Rng::new(12);
    let n = s.k as usize;
    let mut values = Vec::new();
    for _ in &s.rows {
        let mut row: Vec<f32> = rng.floats(n, 3.0).iter().map(|v| v + 10.0).collect();
        row.sort_by(|a, b| b.total_cmp(a));
        row[n - s.n_forbidden..].fill(f32::NEG_INFINITY);
        values.extend(row);
    }
    let ids: Vec<u32> = (0..values.len() as u32)
        .map(|i| (i * 7919 + 13) % 49_152)
        .collect();
    Case::new(s.label, &params, 0.0)
        .bind(&values)
        .bind(&ids)
        .bind(&vec![u32::MAX; s.rows.len()])
        .bind(&vec![55u32; s.rules.len() * s.history_stride as usize])
        .bind(&table.outputs)
        .bind(&table.rows)
        .bind(&s.rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A last digit of exp or log must not decide a case. If this fails, change the case's seed.
    #[test]
    fn cases_stay_away_from_ties() {
        for case in cases() {
            let p: GumbelTopKParams = bytemuck::pod_read_unaligned(case.params.as_bytes());
            let k = p.k as usize;
            let values: &[f32] = bytemuck::cast_slice(case.data[0].as_ref());
            let ids: &[u32] = bytemuck::cast_slice(case.data[1].as_ref());
            let outputs: &[u32] = bytemuck::cast_slice(case.data[4].as_ref());
            let rows: &[Row] = bytemuck::cast_slice(case.data[5].as_ref());
            let rules: &[SamplingRule] = bytemuck::cast_slice(case.data[6].as_ref());
            for (at, &output) in outputs.iter().enumerate() {
                let row = &rows[output as usize];
                if row.is_active() {
                    let (values, ids) = (&values[at * k..][..k], &ids[at * k..][..k]);
                    let rule = &rules[row.sequence as usize];
                    assert_no_tie(&case.label, rule, row.position, values, ids);
                }
            }
        }
    }

    fn assert_no_tie(label: &str, rule: &SamplingRule, position: u32, values: &[f32], ids: &[u32]) {
        let mut sorted: Vec<f32> = scores(rule, position, values, ids).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let gap = sorted.get(1).map_or(1.0, |second| sorted[0] - second);
        // All forbidden: -inf minus -inf. The first one is taken then, without a score.
        let clear = gap.is_nan() || gap >= 1e-3;
        assert!(clear, "{label}: scores differ by {gap}");
        let values = &values[..n_candidates(rule, values.len())];
        let total: f32 = values.iter().map(|&v| weight(v, values[0])).sum();
        let mut before = 0.0;
        for &value in values {
            let share = before / total;
            assert!(rule.top_p >= 1.0 || (share - rule.top_p).abs() > 1e-5 || rule.top_p == 0.0);
            let limit = values[0] + rule.min_p.ln();
            assert!(rule.min_p == 0.0 || (value - limit).abs() > 1e-4);
            before += weight(value, values[0]);
        }
    }

    /// Draws over many positions have the probabilities of the softmax at the temperature. The
    /// bound is 5 standard deviations of a count.
    #[test]
    fn draws_follow_the_softmax() {
        let (values, ids) = ([2.0f32, 1.5, 0.5, -1.0], [10u32, 20, 30, 40]);
        let mut counts = [0u32; 4];
        const N: u32 = 20_000;
        let rule = SamplingRule {
            inv_temperature: 0.5,
            seed_lo: 1,
            ..ALL
        };
        for position in 0..N {
            counts[draw(&rule, position, &values, &ids)] += 1;
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
            let rule = SamplingRule { top_p, ..ALL };
            let scores = scores(&rule, 0, &values, &[1, 2, 3]);
            let n = scores.filter(|score| score.is_finite()).count();
            assert_eq!(n, kept, "{top_p}");
        }
    }
}
