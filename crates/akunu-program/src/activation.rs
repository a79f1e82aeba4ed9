//! Activation functions.

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFunction {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU by its tanh form.
    Gelu,
    /// GELU by the error function, exactly.
    GeluErf,
}
