//! `logit_softcap_f32`: `x[i] = cap * tanh(x[i] / cap)`, in place (Gemma 2).

use akunu_types::params::LogitSoftcapParams;

use crate::table::{Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: LogitSoftcapParams at 1) {
        logits: change f32 = [p.count],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("logit_softcap_f32", ""),
    family: Family::Attention,
    source: "logit_softcap",
    launch: |args, chip| Launch::elementwise(args.params::<LogitSoftcapParams>().count, chip),
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn twin(t: &mut Twin) {
    let p: LogitSoftcapParams = t.params();
    let Slices { logits } = Slices::of(t);
    for x in logits {
        *x = p.cap * (*x / p.cap).tanh();
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        // elements, cap, size of the logits
        [
            (1, 30.0, 1.0),
            (255, 50.0, 100.0),
            (257, 30.0, 1e-3),
            (1000, 30.0, 1e5),
        ]
        .map(case)
        .into()
    }

    /// tanh is good to a few units in the last place: 1e-6, 1e-12 squared.
    fn case((count, cap, scale): (u32, f32, f32)) -> Case {
        let params = LogitSoftcapParams {
            cap,
            count,
            ..Default::default()
        };
        let label = format!("{count} logits up to {scale}, cap {cap}");
        Case::new(label, &params, 1e-11).bind(&Rng::new(count.into()).floats(count as usize, scale))
    }
}
