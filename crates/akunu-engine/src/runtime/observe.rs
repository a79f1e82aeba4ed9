//! A prompt that is run in parts, so that the inputs of its products can be seen.

use std::ops::Range;

use akunu_program::{Counts, DeviceError, Matrix, Op, Program, Slice, op};

use super::state::Runtime;
use crate::error::EngineError;
use crate::sequence::Sequence;
use crate::weights::name_at;

/// The inputs of one product.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The matrix, by its canonical name.
    pub weight: &'a str,
    /// Its columns.
    pub cols: usize,
    /// The inputs, (tokens, cols).
    pub rows: &'a [f32],
}

impl Runtime {
    /// Runs a piece of a prompt of at least two tokens and shows the inputs of its products.
    pub fn observe(
        &mut self,
        sequence: &mut Sequence,
        tokens: &[u32],
        see: &mut dyn FnMut(Observed),
    ) -> Result<(), EngineError> {
        self.reserve(sequence, sequence.cached + tokens.len())?;
        self.begin(1)?;
        self.push_run(sequence, tokens)?;
        let mut builder = self.builder(self.active_adapters);
        builder.layers(&self.model.weights, &self.memory.layers());
        let ops = builder.ops();
        let mut rows = Vec::new();
        for part in parts(&ops) {
            if let Some((weight, x)) = product(&ops[part.start]) {
                rows.resize(tokens.len() * weight.cols as usize, 0f32);
                let bytes = bytemuck::cast_slice_mut(&mut rows);
                self.device.read(x.buffer, x.offset, bytes)?;
                see(Observed {
                    weight: name_at(&self.model.weights, weight.place),
                    cols: weight.cols as usize,
                    rows: &rows,
                });
            }
            self.run_part(&ops[part], tokens.len() as u32)?;
        }
        self.stored(sequence, tokens);
        Ok(())
    }

    fn run_part(&mut self, ops: &[Op], run: u32) -> Result<(), EngineError> {
        let program = Program {
            ops: ops.to_vec(),
            step: Some(self.memory.step),
            room: Counts {
                run,
                ..Counts::default()
            },
        };
        let plan = self.device.load(&program)?;
        let step = self.table.check(1).map_err(DeviceError::from);
        let ran = step.and_then(|step| self.device.run(plan, Some(&step)));
        self.device.unload(plan);
        Ok(ran?)
    }
}

/// Parts that begin with a product, or with the first operation.
fn parts(ops: &[Op]) -> Vec<Range<usize>> {
    let products = (1..ops.len()).filter(|&at| product(&ops[at]).is_some());
    let starts: Vec<usize> = [0].into_iter().chain(products).collect();
    let ends = starts.iter().copied().skip(1).chain([ops.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

fn product(op: &Op) -> Option<(&Matrix, Slice)> {
    match op {
        Op::Product(op::Product { weight, x, .. }) => Some((weight, *x)),
        _ => None,
    }
}
