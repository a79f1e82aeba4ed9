//! Medians, ratios and the table.

use super::{Measured, Sizes};
use serde::Serialize;
use std::fmt::Write;

/// One file with one number of threads: every round of both.
#[derive(Serialize)]
pub struct Comparison {
    pub model: &'static str,
    pub threads: usize,
    pub ours: Vec<Measured>,
    pub peer: Vec<Measured>,
    /// Tokens a second when each weight is read once a token and nothing else is done.
    pub floor: f64,
    /// How many of the first tokens of an answer are the same.
    pub same_first_tokens: usize,
}

/// Everything that was measured.
#[derive(Serialize)]
pub struct Summary {
    pub sizes: Sizes,
    pub comparisons: Vec<Comparison>,
}

/// A column of the table.
struct Metric {
    name: &'static str,
    value: fn(&Measured) -> f64,
    /// Whether more is better; the ratio is above 1 when ours is better.
    more_is_better: bool,
}

const METRICS: [Metric; 6] = [
    Metric {
        name: "prefill, tok/s",
        value: |m| m.prefill,
        more_is_better: true,
    },
    Metric {
        name: "decode, tok/s",
        value: |m| m.decode,
        more_is_better: true,
    },
    Metric {
        name: "first token, ms",
        value: |m| m.first_token_ms,
        more_is_better: false,
    },
    Metric {
        name: "load, ms",
        value: |m| m.load_ms,
        more_is_better: false,
    },
    Metric {
        name: "memory, MB",
        value: |m| m.resident_bytes / 1e6,
        more_is_better: false,
    },
    Metric {
        name: "kept at depth",
        value: |m| m.decode_deep / m.decode_shallow,
        more_is_better: true,
    },
];

impl Comparison {
    pub fn new(model: &'static str, threads: usize) -> Comparison {
        Comparison {
            model,
            threads,
            ours: Vec::new(),
            peer: Vec::new(),
            floor: 0.0,
            same_first_tokens: 0,
        }
    }

    /// The medians of decoding: ours, the peer's.
    pub fn decode(&self) -> (f64, f64) {
        self.medians(|m| m.decode)
    }

    /// The medians of reading prompts: ours, the peer's.
    pub fn prefill(&self) -> (f64, f64) {
        self.medians(|m| m.prefill)
    }

    fn medians(&self, value: fn(&Measured) -> f64) -> (f64, f64) {
        let of = |rounds: &[Measured]| median(rounds.iter().map(value).collect());
        (of(&self.ours), of(&self.peer))
    }
}

impl Summary {
    /// The table in Markdown: in each cell ours, the peer's, and how many times better ours is.
    pub fn table(&self) -> String {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let mut text = format!(
            "| file | threads | {} | of the floor | same tokens |\n|---|---|{}---|---|\n",
            names.join(" | "),
            "---|".repeat(METRICS.len())
        );
        for comparison in &self.comparisons {
            let _ = write!(text, "| {} | {} |", comparison.model, comparison.threads);
            for metric in &METRICS {
                let (ours, peer) = comparison.medians(metric.value);
                let ratio = match metric.more_is_better {
                    true => ours / peer,
                    false => peer / ours,
                };
                let _ = write!(text, " {} / {}, **{ratio:.2}** |", short(ours), short(peer));
            }
            let (decode, _) = comparison.decode();
            let _ = writeln!(
                text,
                " {:.0} % | {} |",
                100.0 * decode / comparison.floor,
                comparison.same_first_tokens
            );
        }
        text
    }
}

/// Three digits are enough for a figure that varies by a few percent.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One round in which ours writes 30 tokens a second and the peer 20, of 60 that are possible.
    pub fn example() -> Summary {
        let measured = |decode: f64, first_token_ms: f64| Measured {
            prefill: 10.0 * decode,
            first_token_ms,
            decode,
            load_ms: 50.0,
            resident_bytes: 1e8,
            decode_shallow: decode,
            decode_deep: decode / 2.0,
        };
        Summary {
            sizes: crate::compare::QUICK,
            comparisons: vec![Comparison {
                ours: vec![measured(30.0, 4.0)],
                peer: vec![measured(20.0, 10.0)],
                floor: 60.0,
                same_first_tokens: 8,
                ..Comparison::new("q4_1", 2)
            }],
        }
    }

    #[test]
    fn medians_do_not_follow_outliers() {
        assert_eq!(median(vec![1.0, 100.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 2.0]), 3.0);
    }

    /// A ratio above 1 means that ours is better, for speeds and for times.
    #[test]
    fn ratios_have_one_direction() {
        let table = example().table();
        assert!(table.contains("30.0 / 20.0, **1.50**"), "{table}");
        assert!(table.contains("4.00 / 10.0, **2.50**"), "{table}");
        assert!(table.contains("| 50 % | 8 |"), "{table}");
    }
}
