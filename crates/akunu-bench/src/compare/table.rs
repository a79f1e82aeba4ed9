//! The tables of a CPU, in Markdown.

use super::comparison::Comparison;
use super::metric::METRICS;
use super::summary::{Summary, cell, short};
use std::fmt::Write;

/// The table of the files: in each cell ours, the peer's, and how many times better ours is.
pub fn files(summary: &Summary<Comparison>) -> String {
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
    let rows: String = summary.comparisons.iter().map(row).collect();
    head + &line + &rows
}

/// The table of scaling, with the same cells.
pub fn scaling(summary: &Summary<Comparison>) -> String {
    let columns =
        "| model | instructions | threads | decode, tok/s | prompt, tok/s | rounds, day |";
    let mut text = format!("{columns}\n|{}\n", "---|".repeat(6));
    for row in &summary.comparisons {
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

/// A row of the table of the files.
fn row(comparison: &Comparison) -> String {
    let mut text = format!("| {} | {} |", comparison.model, comparison.threads);
    for metric in &METRICS {
        let both = comparison.medians(metric.value);
        let _ = write!(text, " {} |", cell(both, comparison.ratio(metric)));
    }
    let weights = short(comparison.weight_bytes as f64 / 1e6);
    let _ = write!(
        text,
        " {weights}, **{:.2}** |",
        comparison.memory_of_weights()
    );
    let floor = 100.0 * comparison.decode().0 / comparison.floor;
    let rounds = comparison.ours.len();
    let same = comparison.same_first_tokens;
    text + &format!(" {floor:.0} % | {same} | {rounds}, {} |\n", comparison.date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::comparison::tests::{comparison, example};

    /// A ratio above 1 means that ours is better, for speeds and for times; memory is 100 of 80 MB.
    #[test]
    fn ratios_have_one_direction() {
        let table = files(&example());
        assert!(table.contains("30.0 / 20.0, **1.50**"), "{table}");
        assert!(table.contains("4.00 / 10.0, **2.50**"), "{table}");
        let end = "| 80.0, **1.25** | 50 % | 8 | 1, 2026-11-15 |";
        assert!(table.contains(end), "{table}");
    }

    #[test]
    fn a_row_of_scaling_names_its_instructions() {
        let mut summary = example();
        summary.put(Comparison {
            isa: Some("avx2".into()),
            ..comparison("1B Q4_0", 4)
        });
        let table = scaling(&summary);
        let row =
            "| 1B Q4_0 | avx2 | 4 | 30.0 / 20.0, **1.50** | 300 / 200, **1.50** | 1, 2026-11-15 |";
        assert!(table.contains(row), "{table}");
        assert!(table.contains("| q4_1 | all | 2 |"), "{table}");
    }
}
