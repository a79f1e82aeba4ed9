//! `halves_f32`: `y[i] = x[i]` as a half, rounded to the nearest.
//!
//! For what is written once and read by every token: the keys and values of an encoder.

use akunu_types::params::ElementwiseParams;
use half::f16;

use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ElementwiseParams at 2) {
        x: read f32 = [p.count],
        y: write f16 = [p.count],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("halves_f32", ""),
    family: Family::Convert,
    source: "halves",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<ElementwiseParams>().count, chip)
}

fn twin(t: &mut Twin) {
    let Slices { x, y } = Slices::of(t);
    for (y, x) in y.iter_mut().zip(x) {
        *y = f16::from_f32(*x);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// Whole vectors and not, and numbers that only a half's smallest steps hold. All round alike: exact.
    pub fn all() -> Vec<Case> {
        [(1, 1.0), (1538, 100.0), (2048, 1e-3), (7, 6e4)]
            .map(|(count, scale): (u32, f32)| {
                let params = ElementwiseParams {
                    count,
                    ..Default::default()
                };
                let mut rng = Rng::new(u64::from(count));
                Case::new(format!("{count} up to {scale}"), &params, 0.0)
                    .bind(&rng.floats(count as usize, scale))
                    .bind(&vec![f16::NAN; count as usize])
            })
            .into()
    }
}
