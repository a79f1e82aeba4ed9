//! Long-rope: each pair turns slower by a factor, with one list of factors for short texts and one for long texts.

/// The factors of the divisors of a model with long-rope.
#[derive(Clone, Debug, PartialEq)]
pub struct LongRope {
    /// Sessions of up to so many positions have the short factors.
    pub original_context: u32,
    /// A factor for each pair that turns.
    pub short: Vec<f32>,
    /// The same for longer sessions.
    pub long: Vec<f32>,
}

/// Its names in `config.json`, of which the second is the older one.
pub(crate) const NAMES: [&str; 2] = ["longrope", "su"];

/// The factor of turned queries and keys where a model says none: `sqrt(1 + ln(factor) / ln(original context))`.
pub(crate) fn magnitude(factor: f32, original_context: u32) -> f32 {
    match factor > 1.0 {
        true => (1.0 + factor.ln() / (original_context as f32).ln()).sqrt(),
        false => 1.0,
    }
}
