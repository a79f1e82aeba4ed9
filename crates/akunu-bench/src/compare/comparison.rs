//! A row of the record of a CPU, and its medians.

use super::metric::Metric;
use super::round::{Measured, Sizes};
use super::summary::{Row, medians};
use super::{files, random};
use serde::{Deserialize, Serialize};

/// One file with one number of threads: every round of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    pub model: String,
    /// Instructions that both keep to; all that there are, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isa: Option<String>,
    pub threads: usize,
    /// The day it was measured, as 2026-11-15.
    pub date: String,
    /// What the file's weights take.
    pub weight_bytes: u64,
    pub ours: Vec<Measured>,
    pub peer: Vec<Measured>,
    /// Tokens a second when each weight is read once a token and nothing else is done.
    pub floor: f64,
    /// How many of the first tokens of an answer are the same.
    pub same_first_tokens: usize,
}

impl Row for Comparison {
    type Sizes = Sizes;
    /// The file's and the model's place and name, the instructions and the threads.
    type Place = ((usize, usize), String, Option<String>, usize);

    fn place(&self) -> Self::Place {
        let of_model = (files::place(&self.model), random::place(&self.model));
        (of_model, self.model.clone(), self.isa.clone(), self.threads)
    }
}

impl Comparison {
    /// The file and the threads, for people.
    pub fn label(&self) -> String {
        let plural = if self.threads == 1 { "" } else { "s" };
        let isa = self.isa.as_deref().map(|isa| format!(", {isa}"));
        let isa = isa.unwrap_or_default();
        format!("{}{isa}, {} thread{plural}", self.model, self.threads)
    }

    /// The instructions that both keep to; nothing where they keep to none.
    pub fn level(&self) -> &str {
        self.isa.as_deref().unwrap_or_default()
    }

    /// The medians of decoding: ours, the peer's.
    pub fn decode(&self) -> (f64, f64) {
        self.medians(|m| m.decode)
    }

    /// The medians of reading prompts: ours, the peer's.
    pub fn prefill(&self) -> (f64, f64) {
        self.medians(|m| m.prefill)
    }

    /// How many times better ours is.
    pub fn ratio(&self, metric: &Metric) -> f64 {
        let (ours, peer) = self.medians(metric.value);
        match metric.more_is_better {
            true => ours / peer,
            false => peer / ours,
        }
    }

    /// Our memory as a multiple of the weights.
    pub fn memory_of_weights(&self) -> f64 {
        let (ours, _) = self.medians(|m| m.resident_bytes);
        ours / self.weight_bytes as f64
    }

    /// The medians of a figure: ours, the peer's.
    pub fn medians(&self, value: fn(&Measured) -> f64) -> (f64, f64) {
        medians(&self.ours, &self.peer, value)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::compare::cpu::QUICK;
    use crate::compare::summary::Summary;

    /// One round in which ours writes 30 tokens a second and the peer 20, of 60 that are possible.
    pub fn comparison(model: &str, threads: usize) -> Comparison {
        let measured = |decode: f64, first_token_ms: f64| Measured {
            prefill: 10.0 * decode,
            first_token_ms,
            decode,
            load_ms: 50.0,
            resident_bytes: 1e8,
            decode_shallow: decode,
            decode_deep: decode / 2.0,
        };
        Comparison {
            model: model.into(),
            isa: None,
            threads,
            date: "2026-11-15".into(),
            weight_bytes: 80_000_000,
            ours: vec![measured(30.0, 4.0)],
            peer: vec![measured(20.0, 10.0)],
            floor: 60.0,
            same_first_tokens: 8,
        }
    }

    pub fn example() -> Summary<Comparison> {
        Summary {
            sizes: QUICK,
            comparisons: vec![comparison("q4_1", 2)],
        }
    }

    /// Fails if a measurement of one cell loses another, or if an old figure stays beside the new one.
    #[test]
    fn a_new_figure_replaces_its_own_cell_only() {
        let mut summary = example();
        summary.put(comparison("f16", 1));
        summary.put(comparison("q4_1", 1));
        let newer = Comparison {
            floor: 70.0,
            ..comparison("q4_1", 2)
        };
        summary.put(newer);
        let cells: Vec<(String, f64)> = summary
            .comparisons
            .iter()
            .map(|c| (c.label(), c.floor))
            .collect();
        let expected = [
            ("q4_1, 1 thread", 60.0),
            ("q4_1, 2 threads", 70.0),
            ("f16, 1 thread", 60.0),
        ];
        assert_eq!(cells, expected.map(|(label, floor)| (label.into(), floor)));
    }

    /// Fails if figures of another instruction set are replaced, or if threads are out of order.
    #[test]
    fn every_instruction_set_has_its_own_rows() {
        let mut summary = example();
        summary.comparisons.clear();
        for (isa, threads) in [("avx512", 4), ("avx2", 4), ("avx2", 1), ("avx2", 4)] {
            let isa = Some(isa.to_string());
            let row = comparison("1B Q4_0", threads);
            summary.put(Comparison { isa, ..row });
        }
        let labels: Vec<String> = summary.comparisons.iter().map(Comparison::label).collect();
        let expected = [
            "1B Q4_0, avx2, 1 thread",
            "1B Q4_0, avx2, 4 threads",
            "1B Q4_0, avx512, 4 threads",
        ];
        assert_eq!(labels, expected);
    }
}
