//! The row tables of the cases.

use akunu_types::params::Row;

/// The rows of a step, and those of them that have logits.
pub struct Outputs {
    /// The row of the row table that each row of logits belongs to.
    pub outputs: Vec<u32>,
    /// The row table.
    pub rows: Vec<Row>,
    /// Sequences that the rows name.
    pub n_sequences: u32,
}

/// Row i of the logits belongs to a row of this sequence and length, or to an idle one. In the row table
/// they stand in the opposite order, between rows without logits, whose sequence does not exist.
pub fn outputs(of: &[Option<(u32, u32)>]) -> Outputs {
    let nobody = Row {
        length: u32::MAX,
        ..Row::at(u32::MAX, 0)
    };
    let idle = Row { flags: 0, ..nobody };
    let mut rows = vec![nobody; 2 * of.len() + 1];
    let place = |output: usize| 2 * (of.len() - 1 - output) + 1;
    for (output, chooser) in of.iter().enumerate() {
        rows[place(output)] = chooser.map_or(idle, |(sequence, length)| Row {
            length,
            ..Row::at(sequence, 3 * length)
        });
    }
    let sequences = of.iter().flatten().map(|(sequence, _)| sequence + 1);
    Outputs {
        outputs: (0..of.len()).map(|output| place(output) as u32).collect(),
        rows,
        n_sequences: sequences.max().unwrap_or(1),
    }
}
