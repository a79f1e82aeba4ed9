//! Medians, ratios and the table.

use super::bar::Bar;
use super::{Measured, Sizes, files, scaling};
use crate::median::median;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A row of a record: the rounds of both programs, measured in one way.
pub trait Row: Serialize + DeserializeOwned {
    /// How many tokens the tests have.
    type Sizes: Clone + PartialEq + Serialize + DeserializeOwned;
    /// Where the row stands among others; one that is measured again has the same place.
    type Place: Ord;

    /// Its place.
    fn place(&self) -> Self::Place;
}

/// Everything that was measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Summary<R: Row = Comparison> {
    pub sizes: R::Sizes,
    pub comparisons: Vec<R>,
}

impl<R: Row> Summary<R> {
    /// Puts a row in its place, instead of an older one that was there.
    pub fn put(&mut self, new: R) {
        self.comparisons.retain(|old| old.place() != new.place());
        self.comparisons.push(new);
        self.comparisons.sort_by_key(R::place);
    }
}

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
        let of_model = (files::place(&self.model), scaling::place(&self.model));
        (of_model, self.model.clone(), self.isa.clone(), self.threads)
    }
}

/// A column of the table.
pub struct Metric {
    pub name: &'static str,
    value: fn(&Measured) -> f64,
    /// Whether more is better; the ratio is above 1 when ours is better.
    more_is_better: bool,
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

    fn medians(&self, value: fn(&Measured) -> f64) -> (f64, f64) {
        medians(&self.ours, &self.peer, value)
    }

    /// A row of the table.
    fn row(&self) -> String {
        let mut text = format!("| {} | {} |", self.model, self.threads);
        for metric in &METRICS {
            let both = self.medians(metric.value);
            let _ = write!(text, " {} |", cell(both, self.ratio(metric)));
        }
        let weights = short(self.weight_bytes as f64 / 1e6);
        let _ = write!(text, " {weights}, **{:.2}** |", self.memory_of_weights());
        let floor = 100.0 * self.decode().0 / self.floor;
        let rounds = self.ours.len();
        let same = self.same_first_tokens;
        text + &format!(" {floor:.0} % | {same} | {rounds}, {} |\n", self.date)
    }
}

impl Summary {
    /// The table of scaling in Markdown: ours, the peer's, and how many times better ours is.
    pub fn scaling_table(&self) -> String {
        let columns =
            "| model | instructions | threads | decode, tok/s | prompt, tok/s | rounds, day |";
        let mut text = format!("{columns}\n|{}\n", "---|".repeat(6));
        for row in &self.comparisons {
            let level = if row.level().is_empty() {
                "all"
            } else {
                row.level()
            };
            let _ = write!(text, "| {} | {level} | {} |", row.model, row.threads);
            for (ours, peer) in [row.decode(), row.prefill()] {
                let _ = write!(text, " {} |", cell((ours, peer), ours / peer));
            }
            let _ = writeln!(text, " {}, {} |", row.ours.len(), row.date);
        }
        text
    }

    /// The table in Markdown: in each cell ours, the peer's, and how many times better ours is.
    pub fn table(&self) -> String {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let first = ["file", "threads"];
        let last = [
            "weights, MB; memory of them",
            "of the floor",
            "same tokens",
            "rounds, day",
        ];
        let columns = [&first[..], &names, &last].concat();
        let head = format!("| {} |\n", columns.join(" | "));
        let line = format!("|{}\n", "---|".repeat(columns.len()));
        let rows: String = self.comparisons.iter().map(Comparison::row).collect();
        head + &line + &rows
    }
}

/// The medians of both programs' rounds: ours, the peer's.
pub fn medians<M>(ours: &[M], peer: &[M], value: impl Fn(&M) -> f64) -> (f64, f64) {
    let of = |rounds: &[M]| median(rounds.iter().map(&value).collect()).unwrap_or(f64::NAN);
    (of(ours), of(peer))
}

/// A cell of a table: ours, the peer's, and how many times better ours is.
pub fn cell((ours, peer): (f64, f64), ratio: f64) -> String {
    format!("{} / {}, **{ratio:.2}**", short(ours), short(peer))
}

/// Three digits are enough for a figure that varies by a few percent.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

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

    pub fn example() -> Summary {
        Summary {
            sizes: crate::compare::QUICK,
            comparisons: vec![comparison("q4_1", 2)],
        }
    }

    /// A ratio above 1 means that ours is better, for speeds and for times; memory is 100 of 80 MB.
    #[test]
    fn ratios_have_one_direction() {
        let table = example().table();
        assert!(table.contains("30.0 / 20.0, **1.50**"), "{table}");
        assert!(table.contains("4.00 / 10.0, **2.50**"), "{table}");
        let end = "| 80.0, **1.25** | 50 % | 8 | 1, 2026-11-15 |";
        assert!(table.contains(end), "{table}");
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
        let table = summary.scaling_table();
        let row =
            "| 1B Q4_0 | avx2 | 4 | 30.0 / 20.0, **1.50** | 300 / 200, **1.50** | 1, 2026-11-15 |";
        assert!(table.contains(row), "{table}");
    }
}
