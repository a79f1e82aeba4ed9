//! `act(gate) * up` before a product.
//!
//! Both activations are `x * sigmoid(t)`: SiLU with `t = x`, the tanh form of GELU with
//! `t = 2 √(2/π) (x + 0.044715 x³)`, since `(1 + tanh z) / 2 = sigmoid(2 z)`.

/// The activation of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// The tanh form.
    Gelu,
}

/// Writes `act(gate) * up` to `out`. Inlined, so that it is compiled with the vector instructions of its
/// caller.
#[inline(always)]
pub fn gate(activation: Activation, gate: &[f32], up: &[f32], out: &mut [f32]) {
    let each = out.iter_mut().zip(gate.iter().zip(up));
    match activation {
        Activation::Silu => each.for_each(|(out, (&x, up))| *out = x * sigmoid(x) * up),
        Activation::Gelu => each.for_each(|(out, (&x, up))| {
            let t = 1.595_769 * (x + 0.044_715 * x * x * x);
            *out = x * sigmoid(t) * up;
        }),
    }
}

#[inline(always)]
fn sigmoid(t: f32) -> f32 {
    1.0 / (1.0 + exp(-t))
}

/// `exp(x) = 2ⁿ exp(r)` with `n = round(x / ln 2)` and a polynomial for the small `r`. Beyond what f32 can
/// hold it stays at the largest and the smallest normal number.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it leaves a number's integer part in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.3);
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let tail = 1.0 / 120.0 + r * (1.0 / 720.0 + r / 5040.0);
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * tail))));
    series * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_some_ulps() {
        for i in -8700..8800 {
            let x = i as f32 / 100.0;
            let (ours, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!(
                (ours / exact - 1.0).abs() < 4e-7,
                "exp({x}) = {ours}, not {exact}"
            );
        }
        assert!(exp(-1000.0) < 1e-37 && exp(1000.0) > 1e38 && exp(f32::NAN).is_nan());
    }
}
