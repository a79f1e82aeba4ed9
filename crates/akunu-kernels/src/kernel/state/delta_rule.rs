//! `delta_rule_f32`: a state of (head_dim, head_dim) for each value head, which forgets a share of itself and then corrects what it
//! has for a key.
//!
//! ```text
//! q, k = q / |q|, k / |k|    |x| = sqrt(Σ x² + eps);    q /= sqrt(head_dim)
//! β = sigmoid(beta);   g = decay * softplus(alpha + dt_bias)
//! S *= e^g;   d = β (v - Sᵀ k);   S += k dᵀ;   to = Sᵀ q
//! ```
//!
//! The columns of S are independent. A kernel reads each number of S once a row: with `a = Sᵀ k` and `b = Sᵀ q` of the state before the
//! row,
//!
//! ```text
//! d = β (v - e^g a);   to = e^g b + (k · q) d;   S = e^g S + k dᵀ
//! ```

use akunu_types::params::{DeltaRuleParams, Row};

use super::{loaded, store};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::Constant;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, count, product};
use crate::kernel::activation::{sigmoid, softplus};
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

/// Elements of a head, at most. Their number is a multiple of 32.
pub const MAX_HEAD_DIM: u32 = 256;
/// Columns of a state that a threadgroup has.
const COLUMNS: u32 = 32;
/// Lanes that share a column.
const LANES: u32 = 4;

buffers! {
    pub struct Buffers, Slices(p: DeltaRuleParams at 8) {
        qkv: read f32 = product(&[p.n_rows, qkv_heads(&p), p.head_dim]),
        beta: read f32 = [p.n_rows, p.value_heads],
        alpha: read f32 = [p.n_rows, p.value_heads],
        decay: read f32 = [p.value_heads],
        dt_bias: read f32 = [p.value_heads],
        rows: read Row = [p.n_rows],
        states: change f32 = states_len(&p),
        to: change f32 = [p.n_rows, p.value_heads, p.head_dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("delta_rule_f32", ""),
    family: Family::State,
    source: "delta_rule",
    constants: &[Constant::HeadDim],
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: DeltaRuleParams = args.params();
    let columns = count(&[p.value_heads, p.head_dim / COLUMNS]);
    Launch::new([columns, p.n_rows, 1], [SIMD_WIDTH * LANES, 1, 1])
}

/// Heads of a row of qkv.
fn qkv_heads(p: &DeltaRuleParams) -> u32 {
    p.key_heads.saturating_mul(2).saturating_add(p.value_heads)
}

/// Heads that the kernel cannot take make the buffer larger than any.
fn states_len(p: &DeltaRuleParams) -> usize {
    let fits = p.head_dim.is_multiple_of(COLUMNS)
        && (COLUMNS..=MAX_HEAD_DIM).contains(&p.head_dim)
        && p.key_heads != 0
        && p.value_heads.is_multiple_of(p.key_heads);
    match fits {
        true => product(&[p.n_blocks, p.value_heads, p.head_dim, p.head_dim]),
        false => usize::MAX,
    }
}

/// At most a state a row, and never more than there are.
fn work(args: &Args, once: Work) -> Work {
    let p: DeltaRuleParams = args.params();
    let blocks = p.n_rows.min(p.n_blocks);
    let states = bytes::<f32>(&[blocks, p.value_heads, p.head_dim, p.head_dim]);
    let to = bytes::<f32>(&[p.n_rows, p.value_heads, p.head_dim]);
    once.with(Buffers::PLACES.states, Traffic::both(states))
        .with(Buffers::PLACES.to, Traffic::written(to))
        .with_flops(multiply_adds(&[
            p.n_rows,
            p.value_heads,
            p.head_dim,
            p.head_dim,
            3,
        ]))
}

/// The key head of a value head.
pub fn key_head(p: &DeltaRuleParams, head: usize) -> usize {
    let (key_heads, value_heads) = (p.key_heads as usize, p.value_heads as usize);
    match p.grouped {
        0 => head % key_heads,
        _ => head / (value_heads / key_heads),
    }
}

fn twin(t: &mut Twin) {
    let p: DeltaRuleParams = t.params();
    let b = Slices::of(t);
    let (dim, heads) = (p.head_dim as usize, p.value_heads as usize);
    let qkv_len = qkv_heads(&p) as usize * dim;
    for (at, row) in b.rows.iter().enumerate().filter(|(_, row)| row.is_active()) {
        let mut state = loaded(b.states, heads * dim * dim, row);
        let qkv = b.qkv[at * qkv_len..][..qkv_len].chunks_exact(dim);
        let qkv: Vec<&[f32]> = qkv.collect();
        for head in 0..heads {
            let key = key_head(&p, head);
            let mut q = unit(qkv[key], p.eps);
            q.iter_mut().for_each(|q| *q /= (dim as f32).sqrt());
            let k = unit(qkv[p.key_heads as usize + key], p.eps);
            let v = qkv[2 * p.key_heads as usize + head];
            let of_row = at * heads + head;
            let beta = sigmoid(b.beta[of_row]);
            let forget = (b.decay[head] * softplus(b.alpha[of_row] + b.dt_bias[head])).exp();
            let state = &mut state[head * dim * dim..][..dim * dim];
            let to = &mut b.to[of_row * dim..][..dim];
            delta_rule(state, [&q, &k, v], beta, forget, to);
        }
        store(b.states, &state, row);
    }
}

/// The formula for one head of one row.
fn delta_rule(state: &mut [f32], [q, k, v]: [&[f32]; 3], beta: f32, forget: f32, to: &mut [f32]) {
    let dim = v.len();
    for (j, to) in to.iter_mut().enumerate() {
        let mut found = 0.0;
        for (i, k) in k.iter().enumerate() {
            state[i * dim + j] *= forget;
            found += state[i * dim + j] * k;
        }
        let missing = beta * (v[j] - found);
        *to = 0.0;
        for (i, k) in k.iter().enumerate() {
            state[i * dim + j] += k * missing;
            *to += state[i * dim + j] * q[i];
        }
    }
}

/// `x / sqrt(Σ x² + eps)`.
fn unit(x: &[f32], eps: f32) -> Vec<f32> {
    let square: f32 = x.iter().map(|x| x * x).sum();
    x.iter().map(|x| x / (square + eps).sqrt()).collect()
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::kernel::state::awkward::{N_BLOCKS, Step, steps};

    /// Both orders of heads, heads of each size, on every awkward step; and a thousand rows.
    pub fn all() -> Vec<Case> {
        let shapes = [
            ([1, 2, 128], 0, Some(128)),
            ([2, 4, 32], 1, None),
            ([2, 6, 96], 0, Some(96)),
        ];
        let of_shape = |shape| steps().into_iter().map(move |step| case(shape, step));
        let mut cases: Vec<Case> = shapes.into_iter().flat_map(of_shape).collect();
        let run = |n| (0..n).map(|at| Row::at(3, at).with_states(1, 1)).collect();
        let [few, many] = [(5, "a run"), (1000, "a long run")].map(|(n, label)| Step {
            label,
            rows: run(n),
        });
        cases.push(case(([1, 1, 256], 1, None), few));
        cases.push(case(([1, 2, 32], 0, Some(32)), many));
        cases
    }

    /// Key heads, value heads, their elements; whether grouped; the constant.
    type Shape = ([u32; 3], u32, Option<u32>);

    /// Gates between e^-20 and 1, about as many near either end. Sums of 32 to 256 products in another order: 1e-11.
    fn case(([key_heads, value_heads, head_dim], grouped, constant): Shape, step: Step) -> Case {
        let n_rows = step.rows.len() as u32;
        let params = DeltaRuleParams {
            n_rows,
            key_heads,
            value_heads,
            head_dim,
            n_blocks: N_BLOCKS,
            grouped,
            eps: 1e-6,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(head_dim + value_heads));
        let qkv = product(&[n_rows, qkv_heads(&params), head_dim]);
        let of_rows = product(&[n_rows, value_heads]);
        let decay: Vec<f32> = (0..value_heads)
            .map(|_| -(3.0 * rng.unit()).exp())
            .collect();
        let constants = match constant {
            None => Constants::none(),
            Some(dim) => Constants::none().with_u32(Constant::HeadDim, dim),
        };
        let label = format!(
            "{}, {key_heads} and {value_heads} heads of {head_dim}",
            step.label
        );
        Case::new(label, &params, 1e-11)
            .constants(constants)
            .bind(&rng.floats(qkv, 1.0))
            .bind(&rng.floats(of_rows, 6.0))
            .bind(&rng.floats(of_rows, 8.0))
            .bind(&decay)
            .bind(&rng.floats(value_heads as usize, 1.0))
            .bind(&step.rows)
            .bind(&rng.floats(states_len(&params), 1.0))
            .bind(&rng.floats(of_rows * head_dim as usize, 1.0))
    }
}
