//! `silu_gate_f32`, `gelu_gate_f32`, `gelu_erf_gate_f32`: `y[i] = act(gate[i]) * up[i]`.
//!
//! `swiglu_oai_gate_f32`: `y[i] = g * sigmoid(1.702 g) * (u + 1)`, with `g = min(gate[i], 7)` and `u = up[i]` clamped to 7.
//!
//! `sigmoid_gate_f32`: `y[i] = sigmoid(gate[i]) * up[i]`.
//!
//! One thread for four elements.

use akunu_types::params::ElementwiseParams;

use super::{gelu, gelu_erf, sigmoid, silu, swiglu_oai};
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

/// The row of `silu_gate_f32`, the gate of Llama and Qwen.
pub const SILU: KernelRow = row("silu_gate_f32", |t| twin(t, |gate, up| silu(gate) * up));

/// The row of `gelu_gate_f32`, the gate of Gemma.
pub const GELU: KernelRow = row("gelu_gate_f32", |t| twin(t, |gate, up| gelu(gate) * up));

/// The row of `gelu_erf_gate_f32`, the gate of ModernBERT.
pub const GELU_ERF: KernelRow = KernelRow {
    #[cfg(feature = "testing")]
    cases: |_| cases::erf_cases(),
    ..row("gelu_erf_gate_f32", |t| {
        twin(t, |gate, up| gelu_erf(gate) * up)
    })
};

/// The row of `swiglu_oai_gate_f32`, the gate of gpt-oss.
pub const SWIGLU_OAI: KernelRow = row("swiglu_oai_gate_f32", |t| twin(t, swiglu_oai));

/// The row of `sigmoid_gate_f32`, the gate of attention.
pub const SIGMOID: KernelRow = row("sigmoid_gate_f32", |t| {
    twin(t, |gate, up| sigmoid(gate) * up)
});

buffers! {
    pub struct Buffers, Slices(p: ElementwiseParams at 3) {
        gate: read f32 = [p.count],
        up: read f32 = [p.count],
        y: write f32 = [p.count],
    }
}

const fn row(name: &'static str, twin: fn(&mut Twin)) -> KernelRow {
    KernelRow {
        name: (name, ""),
        family: Family::Activation,
        source: "gate",
        launch,
        twin,
        #[cfg(feature = "testing")]
        cases: |_| cases::all(),
        ..KernelRow::of::<Buffers<()>>()
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<ElementwiseParams>().count, chip)
}

fn twin(t: &mut Twin, gated: fn(f32, f32) -> f32) {
    let Slices { gate, up, y } = Slices::of(t);
    for (y, (&gate, &up)) in y.iter_mut().zip(gate.iter().zip(up)) {
        *y = gated(gate, up);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::activation::cases::awkward_inputs;

    pub fn all() -> Vec<Case> {
        of(&[1, 3, 4, 1023, 1536, 2050])
    }

    /// The shader's erf is off by at most 5e-7 of 1: a large share of a single result far below zero, and none of several.
    pub fn erf_cases() -> Vec<Case> {
        of(&[3, 4, 1023, 2050])
    }

    fn of(counts: &[usize]) -> Vec<Case> {
        let mut rng = Rng::new(3);
        let mut cases: Vec<Case> = counts
            .iter()
            .map(|&n| case(&format!("count {n}"), &rng.floats(n, 6.0)))
            .collect();
        cases.push(case("all magnitudes, count 13", &awkward_inputs(13)));
        cases
    }

    /// Each element by itself in f32. An exponent of up to 25 (GELU at -6) is rounded by about 2e-6 in
    /// all, and exp passes that on as a relative error: 4e-12 squared.
    fn case(label: &str, gate: &[f32]) -> Case {
        let params = ElementwiseParams {
            count: gate.len() as u32,
            ..Default::default()
        };
        Case::new(label, &params, 1e-11)
            .bind(gate)
            .bind(&Rng::new(5).floats(gate.len(), 10.0))
            .bind(&vec![f32::NAN; gate.len()])
    }
}
