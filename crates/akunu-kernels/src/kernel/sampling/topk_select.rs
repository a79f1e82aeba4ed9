//! `topk_select_f32`: the k largest values of each part of each row, with their tokens, in descending
//! order.
//!
//! Ties go to the first; NaN counts as -inf and comes after every other. Places of a part that has
//! fewer than k values hold -inf and [`NO_TOKEN`]. One threadgroup a part of a row.
//!
//! A vocabulary of more than [`MAX_PART`] takes two launches: parts first, then the parts' winners as
//! one part, with `indexed` so that value i stands for token `ids[i]`. [`stages`] plans them.

use std::cmp::Ordering;

use akunu_types::SharedStruct;
use akunu_types::params::TopKParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("topk_select_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "topk_select",
    bindings: &[
        read(0, "values", Element::F32),
        read(1, "ids", Element::U32),
        write(2, "top_values", Element::F32),
        write(3, "top_ids", Element::U32),
    ],
    params_index: 4,
    params: TopKParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

/// Most values that a launch can keep of a part.
pub const MAX_K: u32 = 256;
/// Most values of a part: 512 threads with 16 each.
pub const MAX_PART: u32 = 8192;
/// Stands where a part has fewer than k values.
pub const NO_TOKEN: u32 = u32::MAX;

const THREADS: u32 = 512;

/// The launches that select the k best of `count` values of each row: each keeps k of every part, and the last
/// one has a single part. `None` if k is 0 or above [`MAX_K`], or `count` is 0.
pub fn stages(n_rows: u32, count: u32, k: u32) -> Option<Vec<TopKParams>> {
    if k == 0 || k > MAX_K || count == 0 {
        return None;
    }
    let stage = |count: u32, indexed| TopKParams {
        n_rows,
        count,
        k,
        part: count.min(MAX_PART),
        indexed,
        ..Default::default()
    };
    let mut stages = vec![stage(count, 0)];
    while let Some(last) = stages.last().filter(|last| n_parts(last) > 1) {
        let count = n_parts(last) * k;
        stages.push(stage(count, 1));
    }
    Some(stages)
}

/// Number of parts of a row; 0, an empty grid that the plan check refuses, for params that the kernel cannot
/// take.
pub fn n_parts(p: &TopKParams) -> u32 {
    let possible = (1..=MAX_PART).contains(&p.part) && (1..=MAX_K).contains(&p.k);
    if possible {
        p.count.div_ceil(p.part)
    } else {
        0
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: TopKParams = args.params();
    Launch::new([n_parts(&p), p.n_rows, 1], [THREADS, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: TopKParams = args.params();
    let n_ids = if p.indexed == 0 { 0 } else { p.count };
    let kept = [p.n_rows, n_parts(&p), p.k];
    vec![
        bytes::<f32>(&[p.n_rows, p.count]),
        bytes::<u32>(&[p.n_rows, n_ids]),
        bytes::<f32>(&kept),
        bytes::<u32>(&kept),
    ]
}

fn twin(t: &mut Twin) {
    let p: TopKParams = t.params();
    let (values, ids) = (t.read::<f32>(0), t.read::<u32>(1));
    let (mut top_values, mut top_ids) = (Vec::new(), Vec::new());
    for (row, values) in values.chunks(p.count as usize).enumerate() {
        for (part, values) in values.chunks(p.part as usize).enumerate() {
            let mut places: Vec<usize> = (0..values.len()).collect();
            places.sort_by(|&a, &b| descending(values[a], values[b]).then(a.cmp(&b)));
            for rank in 0..p.k as usize {
                let place = places.get(rank).copied();
                top_values.push(place.map_or(f32::NEG_INFINITY, |at| number(values[at])));
                top_ids.push(place.map_or(NO_TOKEN, |at| {
                    let at = part * p.part as usize + at;
                    if p.indexed == 0 {
                        at as u32
                    } else {
                        ids[row * p.count as usize + at]
                    }
                }));
            }
        }
    }
    t.store(2, &top_values);
    t.store(3, &top_ids);
}

/// The value, or -inf for NaN.
fn number(value: f32) -> f32 {
    if value.is_nan() {
        f32::NEG_INFINITY
    } else {
        value
    }
}

/// Larger values first, NaN after all others.
fn descending(a: f32, b: f32) -> Ordering {
    let by_value = b.partial_cmp(&a);
    by_value.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn cases() -> Vec<Case> {
    let mut rng = Rng::new(11);
    let tied: Vec<f32> = (0..1200).map(|_| rng.below(5) as f32 - 2.0).collect();
    let mut special = rng.floats(600, 1.0);
    special[..400].fill(f32::NEG_INFINITY);
    (special[10], special[11], special[450]) = (f32::NAN, f32::INFINITY, f32::NAN);
    let mut zeros = vec![0.0f32; 100];
    zeros[..50].fill(-0.0);
    let ids: Vec<u32> = (0..300).map(|i| 5000 - 3 * i).collect();
    vec![
        case("k 1 of 1", &[4.0], (1, 1), None),
        case("k 40 of 8192", &rng.floats(8192, 12.0), (40, 8192), None),
        case("k 256 of 8000", &rng.floats(8000, 1e-30), (256, 8192), None),
        case("ties", &tied, (100, 1200), None),
        case(
            "k larger than the part",
            &rng.floats(20, 3.0),
            (30, 8192),
            None,
        ),
        case("-inf, inf and NaN", &special, (250, 600), None),
        case("0 and -0 are equal", &zeros, (60, 100), None),
        case(
            "parts of 500, the last of 30",
            &rng.floats(2030, 9.0),
            (7, 500),
            None,
        ),
        case(
            "winners of parts",
            &rng.floats(300, 2.0),
            (50, 300),
            Some(&ids),
        ),
        rows(
            "three rows of parts",
            &rng.floats(3 * 700, 2.0),
            3,
            (20, 300),
            None,
        ),
        rows(
            "winners of two rows",
            &rng.floats(300, 2.0),
            2,
            (9, 8192),
            Some(&ids),
        ),
    ]
}

fn case(label: &str, values: &[f32], kept: (u32, u32), ids: Option<&[u32]>) -> Case {
    rows(label, values, 1, kept, ids)
}

/// Values are only moved: exact.
fn rows(
    label: &str,
    values: &[f32],
    n_rows: u32,
    (k, part): (u32, u32),
    ids: Option<&[u32]>,
) -> Case {
    let params = TopKParams {
        n_rows,
        count: values.len() as u32 / n_rows,
        k,
        part,
        indexed: u32::from(ids.is_some()),
        ..Default::default()
    };
    let kept = (n_rows * n_parts(&params) * k) as usize;
    Case::new(label, &params, 0.0)
        .bind(values)
        .bind(ids.unwrap_or(&[]))
        .bind(&vec![f32::NAN; kept])
        .bind(&vec![0u32; kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vocabularies of the models: Whisper, SmolLM2, Llama 3, Qwen, Gemma.
    #[test]
    fn two_launches_are_enough_for_every_vocabulary() {
        for (count, k, launches) in [
            (51_864, 40, 2),
            (8_192, 256, 1),
            (49_152, 256, 2),
            (128_256, 256, 2),
            (151_936, 256, 2),
            (262_144, 256, 2),
        ] {
            let stages = stages(1, count, k).unwrap();
            assert_eq!(stages.len(), launches, "{count}, {k}");
            assert_eq!(n_parts(stages.last().unwrap()), 1);
        }
        assert_eq!(stages(1, 100, 0), None);
        assert_eq!(stages(1, 100, 257), None);
        assert_eq!(stages(1, 0, 1), None);
    }

    /// The winners of the parts, selected again, are the winners of the whole: ties that straddle
    /// parts still go to the first token.
    #[test]
    fn two_stages_select_what_one_sort_does() {
        let mut rng = Rng::new(21);
        let logits: Vec<f32> = (0..20_000).map(|_| rng.below(300) as f32).collect();
        let k = 200;
        let mut expected: Vec<u32> = (0..20_000).collect();
        expected.sort_by(|&a, &b| descending(logits[a as usize], logits[b as usize]));
        let (mut values, mut ids) = (logits.clone(), Vec::<u32>::new());
        for stage in stages(1, 20_000, k).unwrap() {
            let kept = (n_parts(&stage) * k) as usize;
            let case = Case::new("stage", &stage, 0.0)
                .bind(&values)
                .bind(&ids)
                .bind(&vec![0f32; kept])
                .bind(&vec![0u32; kept]);
            let written = case.expected(&ROW);
            values = bytemuck::cast_slice(written[0].1.as_ref()).to_vec();
            ids = bytemuck::cast_slice(written[1].1.as_ref()).to_vec();
        }
        assert_eq!(ids, expected[..k as usize]);
        let best = expected.iter().map(|&id| logits[id as usize]);
        assert!(best.zip(&values).all(|(a, &b)| a == b));
    }
}
