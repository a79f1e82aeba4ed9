//! `ssd_f32`: Mamba-2: a state of (head_dim, state_size) for each head, of which a share that depends on the token is forgotten.
//!
//! ```text
//! Δ = softplus(dt + dt_bias);   S = e^(Δ a) S + Δ x Bᵀ;   to = S C + d x
//! ```
//!
//! The rows of S are independent. Head h reads B and C of group `h div (heads / groups)`.

use akunu_types::params::{Row, SsdParams};

use super::{loaded, store};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, count, product, strided};
use crate::kernel::activation::softplus;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

/// Numbers that an element of a head remembers, at most. There is a multiple of [`STATE_STEP`] of them.
pub const MAX_STATE_SIZE: u32 = 256;
/// What their number is a multiple of.
pub const STATE_STEP: u32 = 32;
/// Rows of a state that a threadgroup has.
const ROWS: u32 = 16;

buffers! {
    pub struct Buffers, Slices(p: SsdParams at 8) {
        xbc: read f32 = product(&[p.n_rows, width_of_xbc(&p)]),
        dt: read f32 = strided(p.n_rows, p.dt_stride, p.heads),
        dt_bias: read f32 = [p.heads],
        a: read f32 = [p.heads],
        d: read f32 = [p.heads],
        rows: read Row = [p.n_rows],
        states: change f32 = states_len(&p),
        to: change f32 = [p.n_rows, p.heads, p.head_dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("ssd_f32", ""),
    family: Family::State,
    source: "ssd",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: SsdParams = args.params();
    let rows = count(&[p.heads, p.head_dim.div_ceil(ROWS)]);
    Launch::new([rows, p.n_rows, 1], [4 * SIMD_WIDTH, 1, 1])
}

/// Elements of a row of xbc.
fn width_of_xbc(p: &SsdParams) -> u32 {
    let of_groups = p.groups.saturating_mul(2).saturating_mul(p.state_size);
    p.heads.saturating_mul(p.head_dim).saturating_add(of_groups)
}

/// Shapes that the kernel cannot take make the buffer larger than any.
fn states_len(p: &SsdParams) -> usize {
    // Rows are read in vectors of four.
    let fits = product(&[p.heads, p.head_dim]).is_multiple_of(4)
        && p.state_size.is_multiple_of(STATE_STEP)
        && (STATE_STEP..=MAX_STATE_SIZE).contains(&p.state_size)
        && p.groups != 0
        && p.heads.is_multiple_of(p.groups);
    match fits {
        true => product(&[p.n_blocks, p.heads, p.head_dim, p.state_size]),
        false => usize::MAX,
    }
}

/// At most a state a row, and never more than there are.
fn work(args: &Args, once: Work) -> Work {
    let p: SsdParams = args.params();
    let blocks = p.n_rows.min(p.n_blocks);
    let states = bytes::<f32>(&[blocks, p.heads, p.head_dim, p.state_size]);
    let to = bytes::<f32>(&[p.n_rows, p.heads, p.head_dim]);
    once.with(Buffers::PLACES.states, Traffic::both(states))
        .with(Buffers::PLACES.to, Traffic::written(to))
        .with_flops(multiply_adds(&[
            p.n_rows,
            p.heads,
            p.head_dim,
            p.state_size,
            2,
        ]))
}

fn twin(t: &mut Twin) {
    let p: SsdParams = t.params();
    let b = Slices::of(t);
    let (heads, dim, size) = (p.heads as usize, p.head_dim as usize, p.state_size as usize);
    let width = width_of_xbc(&p) as usize;
    for (at, row) in b.rows.iter().enumerate().filter(|(_, row)| row.is_active()) {
        let mut state = loaded(b.states, heads * dim * size, row);
        let (x, of_groups) = b.xbc[at * width..][..width].split_at(heads * dim);
        let (keys, queries) = of_groups.split_at(p.groups as usize * size);
        for head in 0..heads {
            let group = head / (heads / p.groups as usize) * size;
            let [keys, queries] = [keys, queries].map(|all| &all[group..][..size]);
            let delta = softplus(b.dt[at * p.dt_stride as usize + head] + b.dt_bias[head]);
            let kept = (delta * b.a[head]).exp();
            for i in 0..dim {
                let x = x[head * dim + i];
                let state = &mut state[(head * dim + i) * size..][..size];
                let mut sum = 0.0;
                for ((state, key), query) in state.iter_mut().zip(keys).zip(queries) {
                    *state = kept * *state + delta * x * key;
                    sum += *state * query;
                }
                b.to[(at * heads + head) * dim + i] = sum + b.d[head] * x;
            }
        }
        store(b.states, &state, row);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::state::awkward::{N_BLOCKS, Step, steps};

    /// One and several groups, a head that is no multiple of a threadgroup's rows, each size of a state, on every awkward step; and a
    /// thousand rows.
    pub fn all() -> Vec<Case> {
        let shapes = [[2, 64, 1, 128], [4, 20, 2, 32], [1, 16, 1, 256]];
        let of_shape = |shape| steps().into_iter().map(move |step| case(shape, step));
        let mut cases: Vec<Case> = shapes.into_iter().flat_map(of_shape).collect();
        let rows = (0..1000)
            .map(|at| Row::at(3, at).with_states(1, 1))
            .collect();
        let label = "a long run";
        cases.push(case([1, 16, 1, 32], Step { label, rows }));
        cases
    }

    /// Shares that are kept between e^-20 and 1. Sums of 32 to 256 products in another order: 1e-11.
    fn case([heads, head_dim, groups, state_size]: [u32; 4], step: Step) -> Case {
        let n_rows = step.rows.len() as u32;
        let dt_stride = heads + 3;
        let params = SsdParams {
            n_rows,
            heads,
            head_dim,
            groups,
            state_size,
            n_blocks: N_BLOCKS,
            dt_stride,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(head_dim + state_size));
        let a: Vec<f32> = (0..heads).map(|_| -(3.0 * rng.unit()).exp()).collect();
        let label = format!(
            "{}, {heads} heads of {head_dim} x {state_size}, {groups} groups",
            step.label
        );
        Case::new(label, &params, 1e-11)
            .bind(&rng.floats(product(&[n_rows, width_of_xbc(&params)]), 1.0))
            .bind(&rng.floats((n_rows * dt_stride) as usize, 6.0))
            .bind(&rng.floats(heads as usize, 1.0))
            .bind(&a)
            .bind(&rng.floats(heads as usize, 1.0))
            .bind(&step.rows)
            .bind(&rng.floats(states_len(&params), 1.0))
            .bind(&rng.floats(product(&[n_rows, heads, head_dim]), 1.0))
    }
}
