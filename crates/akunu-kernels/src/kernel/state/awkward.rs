//! Rows of steps that are awkward for a layer with a state.

use akunu_types::params::Row;

/// Blocks that the steps name, and one that is there without being named.
pub(super) const N_BLOCKS: u32 = 7;

/// No block.
const NONE: u16 = Row::NO_STATE;

/// The rows of a step.
pub(super) struct Step {
    /// What is awkward about it.
    pub label: &'static str,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// One row that begins; rows of several sequences; runs that end where they began, begin with zeros, leave nothing or leave every
/// state; a tree of guesses; idle rows in between; two runs, one of them long.
pub(super) fn steps() -> Vec<Step> {
    let row = |sequence, position, from, to| Row::at(sequence, position).with_states(from, to);
    let idle = Row {
        flags: 0,
        ..row(1, 0, 9000, 9000)
    };
    let run = |sequence, n: u32, from, to| {
        (0..n).map(move |at| row(sequence, at, if at == 0 { from } else { to }, to))
    };
    let step = |label, rows| Step { label, rows };
    vec![
        step("one row", vec![row(0, 0, NONE, 2)]),
        step(
            "single rows",
            vec![
                row(3, 9, 1, 1),
                row(1, 5, 4, 0),
                idle,
                row(0, 0, NONE, NONE),
                row(2, 7, 4, 3),
            ],
        ),
        step("a run in place", run(0, 9, 5, 5).collect()),
        step(
            "every state is left, then a run that leaves none",
            [
                row(0, 0, NONE, 0),
                row(0, 1, 0, 1),
                row(0, 2, 1, 2),
                row(0, 3, 2, 3),
                row(0, 4, 3, 4),
            ]
            .into_iter()
            .chain(run(1, 1, 5, NONE))
            .collect(),
        ),
        step(
            "a tree",
            vec![
                row(2, 5, 0, 1),
                row(2, 6, 1, 2),
                row(2, 6, 1, 3),
                row(2, 7, 3, 4),
                row(2, 7, 2, 2),
                row(2, 8, NONE, 0),
                row(4, 0, 5, 6),
            ],
        ),
        step(
            "idle rows",
            vec![
                idle,
                row(1, 5, 1, 1),
                idle,
                idle,
                row(1, 6, 1, 1),
                row(1, 7, 1, 2),
                idle,
                row(0, 3, 0, 0),
                idle,
            ],
        ),
        step(
            "two runs",
            run(0, 3, NONE, 6).chain(run(1, 67, 2, 0)).collect(),
        ),
    ]
}
