//! `embedding_scale_f32`: `x[i] *= factor`, in place.
//!
//! Gemma multiplies its embeddings by the square root of their dimension. One thread for four elements.

use akunu_types::SharedStruct;
use akunu_types::params::EmbeddingScaleParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("embedding_scale_f32", ""),
    dtype: None,
    family: Family::Embedding,
    source: "embedding_scale",
    bindings: &[read_write(0, "x", Element::F32)],
    params_index: 1,
    params: EmbeddingScaleParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<EmbeddingScaleParams>().count)
}

fn required(args: &Args) -> Vec<usize> {
    vec![bytes::<f32>(&[args.params::<EmbeddingScaleParams>().count])]
}

fn twin(t: &mut Twin) {
    let p: EmbeddingScaleParams = t.params();
    for x in t.write::<f32>(0) {
        *x *= p.factor;
    }
}

/// One product each: exact, and -inf stays -inf.
fn cases() -> Vec<Case> {
    let shapes = [(1u32, 2.0), (1030, 1.25), (2049, 25.298_22)].into_iter();
    shapes
        .map(|(count, factor)| {
            let mut x = Rng::new(u64::from(count)).floats(count as usize, 20.0);
            x[count as usize / 2] = f32::NEG_INFINITY;
            let params = EmbeddingScaleParams {
                factor,
                count,
                ..Default::default()
            };
            Case::new(format!("count {count}, factor {factor}"), &params, 0.0).bind(&x)
        })
        .collect()
}
