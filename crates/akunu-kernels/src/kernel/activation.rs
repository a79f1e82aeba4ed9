//! Activation functions, alone and as the gate of a feed-forward.

pub mod activate;
pub mod gate;

/// `x * sigmoid(x)`.
pub fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `log(1 + e^x)`.
pub fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The tanh form of GELU, as Gemma has it; in `f64`, because `1 + tanh` cancels below -3.
pub fn gelu(x: f32) -> f32 {
    let x = f64::from(x);
    let sqrt_2_over_pi = std::f64::consts::FRAC_2_PI.sqrt();
    (0.5 * x * (1.0 + (sqrt_2_over_pi * (x + 0.044715 * x * x * x)).tanh())) as f32
}

/// The exact form of GELU, as Whisper and BERT have it.
pub fn gelu_erf(x: f32) -> f32 {
    let x = f64::from(x);
    (0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))) as f32
}

/// `max(x, 0)²`.
pub fn relu_squared(x: f32) -> f32 {
    let positive = x.max(0.0);
    positive * positive
}

/// The gate of gpt-oss: a SiLU of slope 1.702, and 1 added to what it lets through, both limited to 7.
pub fn swiglu_oai(gate: f32, up: f32) -> f32 {
    let limited = gate.min(7.0);
    limited / (1.0 + (-1.702 * limited).exp()) * (up.clamp(-7.0, 7.0) + 1.0)
}

/// The error function by its series `2 / √π * exp(-x²) * Σ 2ⁿ x²ⁿ⁺¹ / (2n + 1)!!`, whose terms all
/// have the same sign; beyond 6 it is 1 in `f64`.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > sum.abs() * f64::EPSILON {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(feature = "testing")]
mod cases {
    /// Inputs of every magnitude, where overflow and cancellation would show. Their own case: beside the
    /// large ones, the errors of the others would not count.
    pub fn awkward_inputs(n: usize) -> Vec<f32> {
        const INPUTS: [f32; 12] = [
            0.0, -0.0, 1e-20, -1e-6, 12.0, -12.0, 88.8, -88.8, 1e4, -1e4, 3e13, -3e13,
        ];
        INPUTS.into_iter().cycle().take(n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of tables: Abramowitz and Stegun, table 7.1.
    #[test]
    pub fn erf_has_the_values_of_the_tables() {
        let table = [
            (0.0, 0.0),
            (0.1, 0.112_462_916_0),
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
            (7.0, 1.0),
        ];
        for (x, expected) in table {
            assert!((erf(x) - expected).abs() < 1e-10, "erf({x})");
            assert!((erf(-x) + expected).abs() < 1e-10, "erf(-{x})");
        }
    }

    #[test]
    pub fn large_inputs_pass_or_vanish() {
        for act in [silu, gelu, gelu_erf] {
            assert_eq!(act(1e30), 1e30);
            assert_eq!(act(-1e30), 0.0);
            assert_eq!(act(0.0), 0.0);
        }
    }
}
