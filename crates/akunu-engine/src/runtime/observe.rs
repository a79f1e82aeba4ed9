//! A prompt that is run in parts, so that the inputs of its products can be seen.

use std::ops::Range;

use akunu_program::{Counts, DeviceError, ExpertMatrix, Op, Program, Slice, op};

use super::state::Runtime;
use super::states::RUN_STATES;
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
    /// The inputs, (tokens, cols), or of experts that read results of their own, (tokens * used, cols).
    pub rows: &'a [f32],
    /// The experts that read them, if the matrix is a stack of those.
    pub experts: Option<Chosen<'a>>,
}

/// The experts that read some rows.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// Experts of the layer.
    pub count: usize,
    /// As many for each row as there are ids for it, row after row.
    pub ids: &'a [u32],
}

/// The inputs of a product, or of those of experts.
struct Inputs {
    /// Where the matrices of the products lie.
    weights: Vec<Slice>,
    cols: u32,
    x: Slice,
    /// Rows for each token.
    per_token: u32,
    experts: Option<ChosenAt>,
}

/// Where the chosen experts are.
struct ChosenAt {
    ids: Slice,
    /// How many there are, and how many a token uses.
    experts: [u32; 2],
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
        self.reserve_states(sequence, RUN_STATES)?;
        self.begin(1)?;
        self.push_run(sequence, tokens)?;
        let mut builder = self.builder(self.active_adapters);
        builder.layers(&self.model.weights, &self.memory.layers(&self.model.config));
        if let Some(mtp) = self.memory.mtp(&self.model.config) {
            builder.follow(&self.model.weights, &mtp);
        }
        let ops = builder.ops();
        for part in parts(&ops) {
            if let Some(inputs) = inputs(&ops[part.start]) {
                self.show(&inputs, tokens.len(), see)?;
            }
            self.run_part(&ops[part], tokens.len() as u32)?;
        }
        self.stored(sequence, tokens);
        Ok(())
    }

    /// Shows what the products of an operation are about to read.
    fn show(
        &mut self,
        inputs: &Inputs,
        n_tokens: usize,
        see: &mut dyn FnMut(Observed),
    ) -> Result<(), EngineError> {
        let (x, cols) = (inputs.x, inputs.cols as usize);
        let mut rows = vec![0f32; n_tokens * inputs.per_token as usize * cols];
        let bytes = bytemuck::cast_slice_mut(&mut rows);
        self.device.read(x.buffer, x.offset, bytes)?;
        let mut ids = Vec::new();
        if let Some(chosen) = &inputs.experts {
            let [_, used] = chosen.experts;
            ids.resize(n_tokens * used as usize, 0u32);
            let bytes = bytemuck::cast_slice_mut(&mut ids);
            self.device
                .read(chosen.ids.buffer, chosen.ids.offset, bytes)?;
        }
        let mut names: Vec<&str> = (inputs.weights.iter())
            .map(|&place| name_at(&self.model.weights, place))
            .collect();
        // Gate and up may be parts of one tensor.
        names.dedup();
        for weight in names {
            see(Observed {
                weight,
                cols,
                rows: &rows,
                experts: inputs.experts.as_ref().map(|chosen| Chosen {
                    count: chosen.experts[0] as usize,
                    ids: &ids,
                }),
            });
        }
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
    let products = (1..ops.len()).filter(|&at| inputs(&ops[at]).is_some());
    let starts: Vec<usize> = [0].into_iter().chain(products).collect();
    let ends = starts.iter().copied().skip(1).chain([ops.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

fn inputs(op: &Op) -> Option<Inputs> {
    let of_experts = |weights: &[&ExpertMatrix], x, per_token, ids, experts| Inputs {
        weights: weights.iter().map(|weight| weight.matrix.place).collect(),
        cols: weights[0].matrix.cols,
        x,
        per_token,
        experts: Some(ChosenAt { ids, experts }),
    };
    match op {
        Op::Product(op::Product { weight, x, .. }) => Some(Inputs {
            weights: vec![weight.place],
            cols: weight.cols,
            x: *x,
            per_token: 1,
            experts: None,
        }),
        Op::ExpertGate(of) => Some(of_experts(&[&of.gate, &of.up], of.x, 1, of.ids, of.experts)),
        Op::ExpertDown(of) => {
            let [_, used] = of.experts;
            Some(of_experts(&[&of.weight], of.x, used, of.ids, of.experts))
        }
        _ => None,
    }
}
