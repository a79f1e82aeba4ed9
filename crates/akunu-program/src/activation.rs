//! Activation functions.

/// The function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationFunction {
    /// GELU by the error function, exactly.
    GeluErf,
    /// GELU by its tanh form.
    Gelu,
    /// `max(x, 0)²`.
    ReluSquared,
}

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFunction {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU by its tanh form.
    Gelu,
    /// GELU by the error function, exactly.
    GeluErf,
    /// `g * sigmoid(1.702 g) * (u + 1)`, with `g = min(gate, 7)` and `u = up` clamped to 7: that of gpt-oss.
    SwigluOai,
    /// `sigmoid(x)`: the gate of attention.
    Sigmoid,
}
