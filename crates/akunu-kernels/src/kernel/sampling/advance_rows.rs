//! `advance_rows`: records the token of each active row and moves the row on by one.
//!
//! `chosen[step % max_steps][r] = tokens[r]`, then position, slot, length and step of row r grow by one. Idle
//! rows stay as they are, and no record is kept where `max_steps` is 0. So the next step of a chain needs
//! nothing of the host, however many came before.

use akunu_types::params::{AdvanceRowsParams, Row};

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: AdvanceRowsParams at 3) {
        rows: change Row = [p.n_rows],
        tokens: read u32 = [p.n_rows],
        chosen: change u32 = [p.max_steps, p.chosen_stride],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("advance_rows", ""),
    family: Family::Sampling,
    source: "advance_rows",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// A thread a row. A record that is too narrow for the rows gets an empty grid, which the plan check
/// refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: AdvanceRowsParams = args.params();
    let fits = p.n_rows <= p.chosen_stride;
    Launch::elementwise(if fits { p.n_rows } else { 0 }, chip)
}

/// Of the record a token a row is written.
fn work(args: &Args, once: Work) -> Work {
    let p: AdvanceRowsParams = args.params();
    let n_recorded = if p.max_steps == 0 { 0 } else { p.n_rows };
    once.with(
        Buffers::PLACES.chosen,
        Traffic::written(bytes::<u32>(&[n_recorded])),
    )
}

fn twin(t: &mut Twin) {
    let p: AdvanceRowsParams = t.params();
    let Slices {
        rows,
        tokens,
        chosen,
    } = Slices::of(t);
    for (index, row) in rows.iter_mut().enumerate() {
        if !row.is_active() {
            continue;
        }
        if let Some(round) = row.step.checked_rem(p.max_steps) {
            chosen[(round * p.chosen_stride) as usize + index] = tokens[index];
        }
        row.advance(1);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case("one row", 1, 1, 1),
            case(
                "idle rows, a record that is wider and begins again",
                7,
                9,
                3,
            ),
            case("no record", 3, 3, 0),
            case("more rows than a threadgroup has threads", 300, 300, 2),
        ]
    }

    /// Numbers are compared exactly.
    fn case(label: &str, n_rows: u32, chosen_stride: u32, max_steps: u32) -> Case {
        let params = AdvanceRowsParams {
            n_rows,
            chosen_stride,
            max_steps,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(n_rows));
        let row = |index: u32| Row {
            slot: 3 * index,
            length: 3 * index + 2,
            step: index * 5 % (3 * max_steps + 2),
            flags: if index % 3 == 1 { 0 } else { Row::ACTIVE },
            ..Row::at(index, 1000 + index).with_states(index as u16, 3 * index as u16)
        };
        let rows: Vec<Row> = (0..n_rows).map(row).collect();
        let tokens: Vec<u32> = (0..n_rows).map(|_| rng.below(50_000)).collect();
        Case::new(label, &params, 0.0)
            .bind(&rows)
            .bind(&tokens)
            .bind(&vec![u32::MAX; (max_steps * chosen_stride) as usize])
    }
}
