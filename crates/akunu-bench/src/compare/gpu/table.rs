//! The table and the chart of the comparison on a GPU.

use super::comparison::GpuComparison;
use super::round::{GpuSizes, Speeds};
use crate::compare::chart::{self, Panel};
use crate::compare::summary::{Summary, cell, short};
use std::fmt::Write;

/// Two tests of one kind.
struct Pair {
    of: fn(&Speeds) -> [f64; 2],
    titles: fn(&GpuSizes) -> [String; 2],
}

/// All tests, in the order of columns and panels.
const PAIRS: [Pair; 3] = [
    Pair {
        of: |speeds| speeds.depths,
        titles: |sizes| {
            sizes.depths.map(|depth| match depth {
                0 => "decode".into(),
                depth => format!("decode after {depth}"),
            })
        },
    },
    Pair {
        of: |speeds| speeds.prompts,
        titles: |sizes| sizes.prompts.map(|tokens| format!("prompt of {tokens}")),
    },
    Pair {
        of: |speeds| speeds.sequences,
        titles: |sizes| sizes.sequences.map(|n| format!("{n} sequences")),
    },
];

/// The table in Markdown: in each cell ours, the peer's, and how many times better ours is.
pub fn table(summary: &Summary<GpuComparison>) -> String {
    let titles = PAIRS.iter().flat_map(|pair| (pair.titles)(&summary.sizes));
    let titles = titles.map(|title| format!("{title}, tok/s"));
    let first = ["model".to_string(), "weights, MB".into()].into_iter();
    let last = ["GPU, driver's CUDA".to_string(), "rounds, day".into()];
    let columns: Vec<String> = first.chain(titles).chain(last).collect();
    let line = "---|".repeat(columns.len());
    let mut text = format!("| {} |\n|{line}\n", columns.join(" | "));
    for row in &summary.comparisons {
        let weights = short(row.weight_bytes as f64 / 1e6);
        let _ = write!(text, "| {} | {weights} |", row.model);
        for (ours, peer) in PAIRS.iter().flat_map(|pair| row.pair(pair.of)) {
            let _ = write!(text, " {} |", cell((ours, peer), ours / peer));
        }
        let (gpu, driver) = (&row.gpu.name, &row.gpu.driver);
        let rounds = row.ours.len();
        let _ = writeln!(text, " {gpu}, {driver} | {rounds}, {} |", row.date);
    }
    text
}

/// The chart as an SVG file: a pair of panels below the other.
pub fn draw(summary: &Summary<GpuComparison>) -> String {
    let rows = &summary.comparisons;
    let labels: Vec<String> = rows.iter().map(|row| row.model.clone()).collect();
    let panels = PAIRS.map(|pair| {
        let titles = (pair.titles)(&summary.sizes);
        let panel = |test: usize| Panel {
            title: format!("{}, tokens a second", titles[test]),
            values: rows.iter().map(|row| row.pair(pair.of)[test]).collect(),
            floors: Vec::new(),
        };
        [panel(0), panel(1)]
    });
    chart::draw_pairs(&labels, &panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::gpu::tests::example;

    /// Fails if a figure stands in the column of another test.
    #[test]
    fn every_test_has_its_column() {
        let expected = "| model | weights, MB | decode, tok/s | decode after 4096, tok/s | prompt of 512, tok/s \
            | prompt of 4096, tok/s | 16 sequences, tok/s | 64 sequences, tok/s | GPU, driver's CUDA | rounds, day |\n\
            |---|---|---|---|---|---|---|---|---|---|\n\
            | 1B Q4_0 | 80.0 | 10.0 / 5.00, **2.00** | 20.0 / 10.0, **2.00** | 30.0 / 15.0, **2.00** \
            | 40.0 / 20.0, **2.00** | 50.0 / 25.0, **2.00** | 60.0 / 30.0, **2.00** | NVIDIA H200, 13.0 | 1, 2026-11-17 |\n";
        assert_eq!(table(&example()), expected);
    }

    /// Fails if a test has no panel, or one with the figures of another. There is no floor.
    #[test]
    fn every_test_has_its_panel() {
        let svg = draw(&example());
        for title in [
            "decode",
            "decode after 4096",
            "prompt of 512",
            "prompt of 4096",
        ] {
            let title = format!(">{title}, tokens a second<");
            assert_eq!(svg.matches(&title).count(), 1, "{svg}");
        }
        assert!(svg.contains(">16 sequences,") && svg.contains(">64 sequences,"));
        let numbers = [
            "10", "5", "20", "10", "30", "15", "40", "20", "50", "25", "60", "30",
        ];
        let mut rest = svg.as_str();
        for number in numbers {
            let (_, after) = rest.split_once(&format!(">{number}<")).expect(number);
            rest = after;
        }
        assert_eq!(svg.matches(">1B Q4_0<").count(), 3, "{svg}");
        assert!(!svg.contains("reading the weights once"), "{svg}");
    }
}
