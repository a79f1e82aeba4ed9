//! `copy_f32`: `y[i] = x[i]`.

use akunu_types::params::ElementwiseParams;

use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ElementwiseParams at 2) {
        x: read f32 = [p.count],
        y: write f32 = [p.count],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("copy_f32", ""),
    family: Family::Common,
    source: "copy",
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
    y.copy_from_slice(x);
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// Values are only moved: exact.
    pub fn all() -> Vec<Case> {
        let counts = [1u32, 5, 640, 1026].into_iter();
        let case = |count: u32| {
            let params = ElementwiseParams {
                count,
                ..Default::default()
            };
            Case::new(format!("count {count}"), &params, 0.0)
                .bind(&Rng::new(u64::from(count)).floats(count as usize, 9.0))
                .bind(&vec![f32::NAN; count as usize])
        };
        counts.map(case).collect()
    }
}
