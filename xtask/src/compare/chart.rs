//! The chart: for each file the speed of decoding and of reading, ours and the peer's, and the floor.
//!
//! Horizontal bars in two panels side by side; a thin line in the left one marks the floor.

use super::summary::{Comparison, Summary};
use crate::svg::Svg;

const WIDTH: f64 = 860.0;
const LABEL: f64 = 110.0;
const PANEL: f64 = 340.0;
const GAP: f64 = 30.0;
const BAR: f64 = 12.0;
const ROW: f64 = 38.0;
const TOP: f64 = 56.0;

const OURS: &str = "#2f6fdb";
const PEER: &str = "#b8bfca";
const FLOOR: &str = "#d0402f";

/// The chart as an SVG file, readable on light and on dark pages.
pub fn draw(summary: &Summary) -> String {
    let rows = &summary.comparisons;
    let height = TOP + ROW * rows.len() as f64 + 16.0;
    let mut svg = Svg::new(WIDTH, height);
    let legend = [
        (OURS, "Akunu"),
        (PEER, "llama.cpp"),
        (FLOOR, "reading the weights once"),
    ];
    svg.legend((LABEL, 8.0), legend.into_iter());
    let left = LABEL;
    let right = LABEL + PANEL + GAP;
    svg.text((left, TOP - 12.0), "decode, tokens a second");
    svg.text((right, TOP - 12.0), "prompt, tokens a second");
    let decode_scale = scale(rows, |row| {
        row.decode().0.max(row.decode().1).max(row.floor)
    });
    let prefill_scale = scale(rows, |row| row.prefill().0.max(row.prefill().1));
    for (n, row) in rows.iter().enumerate() {
        let y = TOP + ROW * n as f64;
        svg.text((4.0, y + 16.0), &row.label());
        bars(&mut svg, (left, y), row.decode(), decode_scale);
        bars(&mut svg, (right, y), row.prefill(), prefill_scale);
        let x = left + row.floor * decode_scale;
        svg.bar((x, y), (2.0, 2.0 * BAR + 2.0), FLOOR);
    }
    svg.finish()
}

/// Pixels for a token a second, so that the largest value fits with its number beside.
fn scale(rows: &[Comparison], value: impl Fn(&Comparison) -> f64) -> f64 {
    let largest = rows.iter().map(value).fold(1.0, f64::max);
    (PANEL - 44.0) / largest
}

/// Ours above the peer's, each with its number.
fn bars(svg: &mut Svg, (x, y): (f64, f64), (ours, peer): (f64, f64), scale: f64) {
    for (n, (value, colour)) in [(ours, OURS), (peer, PEER)].into_iter().enumerate() {
        let y = y + n as f64 * (BAR + 2.0);
        let width = (value * scale).max(1.0);
        svg.bar((x, y), (width, BAR), colour);
        svg.text((x + width + 5.0, y + 10.0), &format!("{value:.0}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::summary::tests::example;

    /// The bars are as long as their values: 30 and 20 of a floor of 60, which takes the panel.
    #[test]
    fn lengths_follow_values() {
        let svg = draw(&example());
        let whole = PANEL - 44.0;
        let ours = format!(
            "width=\"{:.1}\" height=\"{BAR}\" fill=\"{OURS}\"",
            whole / 2.0
        );
        assert!(svg.contains(&ours), "{svg}");
        let peer = format!(
            "width=\"{:.1}\" height=\"{BAR}\" fill=\"{PEER}\"",
            whole / 3.0
        );
        assert!(svg.contains(&peer), "{svg}");
        let floor = format!("x=\"{:.1}\"", LABEL + whole);
        assert!(svg.contains(&floor), "{svg}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }
}
