//! `argmax_f32`: the token of the largest value of each row, to `tokens[i]` and to the row's history.
//!
//! Ties go to the first; NaN never wins, and if all are NaN the first is taken. With `indexed`, value
//! i stands for token `ids[i]`: the winners of [`super::argmax_partial`]. An idle row gets token 0 and no
//! history. One threadgroup a row.

use akunu_types::params::{ArgmaxParams, Row};

use super::{first_largest, note_token};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ArgmaxParams at 4) {
        values: read f32 = [p.n_rows, p.count],
        ids: read u32 = [p.n_rows, if p.indexed == 0 { 0 } else { p.count }],
        tokens: write u32 = [p.n_rows],
        history: change u32 = [p.n_sequences, p.history_stride],
        outputs: read u32 = [p.n_rows],
        rows: read Row = [p.row_capacity],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("argmax_f32", ""),
    family: Family::Sampling,
    source: "argmax",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ArgmaxParams = args.params();
    let n_rows = if p.count == 0 { 0 } else { p.n_rows };
    Launch::new([n_rows, 1, 1], [chip.max_threads.min(1024), 1, 1])
}

/// Of the history a token a row is written, and of the row table a row each is read.
fn work(args: &Args, once: Work) -> Work {
    let n_rows = args.params::<ArgmaxParams>().n_rows;
    let (history, rows) = (
        once.traffic[Buffers::PLACES.history].written,
        once.traffic[Buffers::PLACES.rows].read,
    );
    once.with(
        Buffers::PLACES.history,
        Traffic::written(bytes::<u32>(&[n_rows]).min(history)),
    )
    .with(
        Buffers::PLACES.rows,
        Traffic::read(bytes::<Row>(&[n_rows]).min(rows)),
    )
}

fn twin(t: &mut Twin) {
    let p: ArgmaxParams = t.params();
    let Slices {
        values,
        ids,
        tokens,
        history,
        outputs,
        rows,
    } = Slices::of(t);
    let count = p.count as usize;
    for (at, &output) in outputs.iter().enumerate() {
        let row = &rows[output as usize];
        let mut token = 0;
        if row.is_active() {
            let values = &values[at * count..][..count];
            let place = first_largest(values.iter().copied()).unwrap_or(0);
            token = if p.indexed == 0 {
                place as u32
            } else {
                ids[at * count + place]
            };
            note_token(history, row, p.history_stride, token);
        }
        tokens[at] = token;
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::sampling::cases::outputs;

    pub fn all() -> Vec<Case> {
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
        let ids: Vec<u32> = (0..80).map(|i| 900 - 7 * i).collect();
        let one = |length| [Some((0, length))];
        let some = [Some((2, 9)), None, Some((0, 1)), Some((1, 5))];
        vec![
            case("one value", &[-7.0], &one(1), 4),
            case("random, count 4099", &rng.floats(4099, 10.0), &one(6), 16),
            case("ties go to the first", &tied, &one(15), 16),
            case("the history begins again", &tied, &one(32), 16),
            case("no history", &tied, &one(4), 0),
            case("NaN never wins", &with_nan, &one(1), 2),
            case("only NaN", &[f32::NAN; 33], &one(1), 2),
            case("all -inf", &[f32::NEG_INFINITY; 70], &one(1), 2),
            case("the last of -inf", &last, &one(1), 2),
            case(
                "rows of several sequences",
                &rng.floats(4 * 700, 1.0),
                &some,
                7,
            ),
            case("idle rows alone", &rng.floats(8, 1.0), &[None, None], 7),
            indexed("winners of parts", &rng.floats(80, 1.0), &ids),
        ]
    }

    fn case(label: &str, values: &[f32], of: &[Option<(u32, u32)>], history_stride: u32) -> Case {
        let params = ArgmaxParams {
            count: (values.len() / of.len()) as u32,
            history_stride,
            ..Default::default()
        };
        bind(label, params, (values, &[]), of)
    }

    fn indexed(label: &str, values: &[f32], ids: &[u32]) -> Case {
        let params = ArgmaxParams {
            count: values.len() as u32 / 2,
            history_stride: 9,
            indexed: 1,
            ..Default::default()
        };
        bind(label, params, (values, ids), &[Some((1, 3)), Some((0, 20))])
    }

    /// Tokens are compared exactly.
    fn bind(
        label: &str,
        params: ArgmaxParams,
        (values, ids): (&[f32], &[u32]),
        of: &[Option<(u32, u32)>],
    ) -> Case {
        let table = outputs(of);
        let params = ArgmaxParams {
            n_rows: of.len() as u32,
            n_sequences: table.n_sequences,
            row_capacity: table.rows.len() as u32,
            ..params
        };
        Case::new(label, &params, 0.0)
            .bind(values)
            .bind(ids)
            .bind(&vec![u32::MAX; of.len()])
            .bind(&vec![
                77u32;
                (params.n_sequences * params.history_stride) as usize
            ])
            .bind(&table.outputs)
            .bind(&table.rows)
    }
}
