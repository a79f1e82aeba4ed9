//! Which figures do not reach their bars.

use super::comparison::Comparison;
use super::metric::{Bar, METRICS, Metric};
use super::summary::Summary;
use std::fmt::Write;

/// Files whose prompts the peer already reads with code made for their type.
const PEER_READS_WELL: [&str; 2] = ["q4_0", "f16"];

/// A line for each figure below its bar.
pub fn below(summary: &Summary<Comparison>) -> String {
    let mut text = String::new();
    for comparison in &summary.comparisons {
        for metric in &METRICS {
            if let Some(missed) = missed(comparison, metric) {
                let label = comparison.label();
                let _ = writeln!(text, "- {label}: {}: {missed}", metric.name);
            }
        }
    }
    match text.is_empty() {
        true => "Every figure reaches the bar.\n".into(),
        false => format!("Below the bar:\n\n{text}"),
    }
}

/// What was found against what is asked, in words, when the bar is not reached.
fn missed(comparison: &Comparison, metric: &Metric) -> Option<String> {
    let least = match metric.bar {
        Bar::Times(least) => least,
        Bar::Prefill if PEER_READS_WELL.contains(&comparison.model.as_str()) => 1.5,
        Bar::Prefill => 3.0,
        Bar::OfWeights(most) => {
            let found = comparison.memory_of_weights();
            let said = format!("{found:.2} × the weights, at most {most}");
            return (found > most).then_some(said);
        }
    };
    let found = comparison.ratio(metric);
    (found < least).then(|| format!("{found:.2} × llama.cpp, at least {least}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::comparison::tests::comparison;
    use crate::compare::cpu::QUICK;

    fn said(comparisons: Vec<Comparison>) -> String {
        below(&Summary {
            sizes: QUICK,
            comparisons,
        })
    }

    /// Prompts at 1.5 are enough for q4_0 and f16 only; the memory is 1.25 times the weights.
    #[test]
    fn each_figure_below_its_bar_has_a_line() {
        let found = said(vec![comparison("q4_1", 2), comparison("q4_0", 1)]);
        let expected = "Below the bar:\n\n\
            - q4_1, 2 threads: prefill, tok/s: 1.50 × llama.cpp, at least 3\n\
            - q4_1, 2 threads: memory, MB: 1.25 × the weights, at most 1.15\n\
            - q4_0, 1 thread: memory, MB: 1.25 × the weights, at most 1.15\n";
        assert_eq!(found, expected);
    }

    /// Fails if a bar is not looked at: each figure is made worse alone.
    #[test]
    fn every_bar_is_looked_at() {
        let mut good = comparison("f16", 1);
        good.weight_bytes = 100_000_000;
        assert_eq!(said(vec![good.clone()]), "Every figure reaches the bar.\n");
        for metric in METRICS {
            let mut worse = good.clone();
            let ours = &mut worse.ours[0];
            match metric.name {
                "prefill, tok/s" => ours.prefill *= 0.9,
                "decode, tok/s" => ours.decode *= 0.9,
                "first token, ms" => ours.first_token_ms *= 2.0,
                "load, ms" => ours.load_ms *= 1.1,
                "memory, MB" => ours.resident_bytes *= 1.2,
                "kept at depth" => ours.decode_deep *= 0.9,
                other => panic!("no case for {other}"),
            }
            let found = said(vec![worse]);
            assert_eq!(found.matches("- f16").count(), 1, "{found}");
            assert!(found.contains(metric.name), "{found}");
        }
    }
}
