//! What the matrices of the layers are multiplied with, for importance matrices.
//!
//! A prefill plan is cut before each product `y = W x`. The parts run one after another, and before a part
//! runs its `x` is read from the device. So any device can be observed, and the plan stays as it is.

use std::collections::HashMap;
use std::ops::Range;

use akunu_kernels::plan::Slice;
use akunu_kernels::{Dispatch, KernelId, Plan};

use super::Session;
use crate::error::EngineError;
use crate::weights::Weights;

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

/// A part of a plan, which begins with a product or with the plan.
struct Part {
    plan: Plan,
    product: Option<Product>,
}

struct Product {
    weight: String,
    cols: usize,
    x: Slice,
}

impl Session<'_> {
    /// Runs `tokens` through the layers and shows `see` the inputs of each of their matrices. The token
    /// embedding and the output matrix are not shown; nor is a last chunk of a single token, for which
    /// some products have no input of their own in memory.
    ///
    /// It begins with an empty cache and leaves the session empty.
    pub fn observe(
        &mut self,
        tokens: &[u32],
        see: &mut dyn FnMut(Observed),
    ) -> Result<(), EngineError> {
        self.clear();
        self.check(tokens)?;
        for chunk in tokens.chunks(self.sizes.chunk as usize) {
            let plan = self.prefill_plan(chunk.len() as u32, false)?;
            if chunk.len() == 1 {
                self.run_chunk(&plan, chunk)?;
            } else {
                let parts = cut(&plan, self.model.weights())?;
                self.observe_chunk(&parts, chunk, see)?;
            }
        }
        self.clear();
        Ok(())
    }

    fn observe_chunk(
        &mut self,
        parts: &[Part],
        chunk: &[u32],
        see: &mut dyn FnMut(Observed),
    ) -> Result<(), EngineError> {
        let first = self.content.tokens.len();
        let mut device = self.model.device();
        device.write(self.memory.prompt, 0, bytemuck::cast_slice(chunk))?;
        let mut rows = Vec::new();
        for part in parts {
            if let Some(product) = &part.product {
                rows.resize(chunk.len() * product.cols, 0.0);
                let bytes = bytemuck::cast_slice_mut(&mut rows);
                device.read(product.x.buffer, product.x.offset, bytes)?;
                see(Observed {
                    weight: &product.weight,
                    cols: product.cols,
                    rows: &rows,
                });
            }
            device.run(&part.plan, first as u32)?;
        }
        drop(device);
        self.content.extend(chunk);
        Ok(())
    }
}

/// Cuts a plan before each product.
fn cut(plan: &Plan, weights: &Weights) -> Result<Vec<Part>, EngineError> {
    let places = weights.by_place();
    let dispatches = plan.dispatches();
    let products: Vec<usize> = (0..dispatches.len())
        .filter(|&at| product(&dispatches[at], &places).is_some())
        .collect();
    let starts = [0].into_iter().chain(products.iter().copied());
    let ends = products.iter().copied().chain([dispatches.len()]);
    let part = |Range { start, end }: Range<usize>| {
        Ok(Part {
            plan: Plan::check(dispatches[start..end].to_vec(), plan.max_position())?,
            product: dispatches
                .get(start)
                .and_then(|first| product(first, &places)),
        })
    };
    starts
        .zip(ends)
        .map(|(start, end)| part(start..end))
        .collect()
}

/// The product of a dispatch: its bindings are x, the weight, and where the result goes.
fn product(dispatch: &Dispatch, places: &HashMap<(u32, usize), (&str, u32)>) -> Option<Product> {
    if matches!(dispatch.kernel, KernelId::EmbeddingLookup(_)) {
        return None;
    }
    let [x, weight, _] = dispatch.bindings[..] else {
        return None;
    };
    let (name, cols) = places.get(&(weight.buffer.id, weight.offset))?;
    Some(Product {
        weight: name.to_string(),
        cols: *cols as usize,
        x,
    })
}
