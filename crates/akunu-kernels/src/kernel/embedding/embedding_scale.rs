//! `embedding_scale_f32`: `x[i] *= factor`, in place.
//!
//! Gemma multiplies its embeddings by the square root of their dimension. One thread for four elements.

use akunu_types::params::EmbeddingScaleParams;

use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: EmbeddingScaleParams at 1) {
        x: change f32 = [p.count],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("embedding_scale_f32", ""),
    family: Family::Embedding,
    source: "embedding_scale",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<EmbeddingScaleParams>().count, chip)
}

fn twin(t: &mut Twin) {
    let p: EmbeddingScaleParams = t.params();
    let Slices { x } = Slices::of(t);
    for x in x {
        *x *= p.factor;
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// One product each: exact, and -inf stays -inf.
    pub fn all() -> Vec<Case> {
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
}
