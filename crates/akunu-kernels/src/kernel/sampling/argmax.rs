//! `argmax_f32`: the token of the largest value, to `token[0]` and `history[pos + 1]`.
//!
//! Ties go to the first; NaN never wins, and if all are NaN the first is taken. With `indexed`, value
//! i stands for token `ids[i]`: the winners of [`super::argmax_partial`]. One threadgroup.

use akunu_types::SharedStruct;
use akunu_types::params::ArgmaxParams;

use super::{first_largest, one_token_of_history, store_token};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("argmax_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "argmax",
    bindings: &[
        read(0, "values", Element::F32),
        read(1, "ids", Element::U32),
        write(2, "token", Element::U32),
        read_write(3, "history", Element::U32),
    ],
    params_index: 4,
    params: ArgmaxParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: one_token_of_history,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ArgmaxParams = args.params();
    Launch::new([p.count.min(1), 1, 1], [chip.max_threads.min(1024), 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: ArgmaxParams = args.params();
    let n_ids = if p.indexed == 0 { 0 } else { p.count };
    vec![
        bytes::<f32>(&[p.count]),
        bytes::<u32>(&[n_ids]),
        size_of::<u32>(),
        bytes::<u32>(&[p.history_len]),
    ]
}

fn twin(t: &mut Twin) {
    let p: ArgmaxParams = t.params();
    let (values, ids) = (t.read::<f32>(0), t.read::<u32>(1));
    let place = first_largest(values.iter().copied()).unwrap_or(0);
    let token = if p.indexed == 0 {
        place as u32
    } else {
        ids[place]
    };
    t.store(2, &[token]);
    store_token(t.write(3), p.pos, token);
}

fn cases() -> Vec<Case> {
    let mut rng = Rng::new(1);
    let mut tied = vec![-1.0f32; 2000];
    // 700 and 1724 are looked at by the same thread, the others by other threads.
    for place in [1500, 700, 701, 1724] {
        tied[place] = 3.0;
    }
    let mut with_nan = rng.floats(1100, 5.0);
    (with_nan[0], with_nan[600]) = (f32::NAN, f32::NAN);
    let mut last = vec![f32::NEG_INFINITY; 1025];
    last[1024] = -3e38;
    let ids: Vec<u32> = (0..40).map(|i| 900 - 7 * i).collect();
    vec![
        case("one value", &[-7.0], 0, 4),
        case("random, count 4099", &rng.floats(4099, 10.0), 5, 16),
        case("ties go to the first", &tied, 14, 16),
        case("a full history stays as it is", &tied, 15, 16),
        case("no history", &tied, 3, 0),
        case("NaN never wins", &with_nan, 0, 2),
        case("only NaN", &[f32::NAN; 33], 0, 2),
        case("all -inf", &[f32::NEG_INFINITY; 70], 0, 2),
        case("the last of -inf", &last, 0, 2),
        indexed("winners of parts", &rng.floats(40, 1.0), &ids),
    ]
}

fn case(label: &str, values: &[f32], pos: u32, history_len: u32) -> Case {
    let params = ArgmaxParams {
        count: values.len() as u32,
        pos,
        history_len,
        indexed: 0,
    };
    bind(label, params, values, &[])
}

fn indexed(label: &str, values: &[f32], ids: &[u32]) -> Case {
    let params = ArgmaxParams {
        count: values.len() as u32,
        pos: 2,
        history_len: 9,
        indexed: 1,
    };
    bind(label, params, values, ids)
}

/// Tokens are compared exactly.
fn bind(label: &str, params: ArgmaxParams, values: &[f32], ids: &[u32]) -> Case {
    Case::new(label, &params, 0.0)
        .bind(values)
        .bind(ids)
        .bind(&[u32::MAX])
        .bind(&vec![77u32; params.history_len as usize])
}
