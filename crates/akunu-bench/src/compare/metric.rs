//! The figures that are compared on a CPU, and the bar for each.

use super::round::Measured;

/// What is asked of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// At least so many times as good as the peer.
    Times(f64),
    /// The same for prompts, where the peer has good code for some types only.
    Prefill,
    /// Memory: at most this multiple of the weights.
    OfWeights(f64),
}

/// A column of the table.
pub struct Metric {
    pub name: &'static str,
    pub value: fn(&Measured) -> f64,
    /// Whether more is better; the ratio is above 1 when ours is better.
    pub more_is_better: bool,
    /// What is asked of it.
    pub bar: Bar,
}

pub const METRICS: [Metric; 6] = [
    Metric {
        name: "prefill, tok/s",
        value: |m| m.prefill,
        more_is_better: true,
        bar: Bar::Prefill,
    },
    Metric {
        name: "decode, tok/s",
        value: |m| m.decode,
        more_is_better: true,
        bar: Bar::Times(1.5),
    },
    Metric {
        name: "first token, ms",
        value: |m| m.first_token_ms,
        more_is_better: false,
        bar: Bar::Times(1.5),
    },
    Metric {
        name: "load, ms",
        value: |m| m.load_ms,
        more_is_better: false,
        bar: Bar::Times(1.0),
    },
    Metric {
        name: "memory, MB",
        value: |m| m.resident_bytes / 1e6,
        more_is_better: false,
        bar: Bar::OfWeights(1.15),
    },
    Metric {
        name: "kept at depth",
        value: |m| m.decode_deep / m.decode_shallow,
        more_is_better: true,
        bar: Bar::Times(1.0),
    },
];
