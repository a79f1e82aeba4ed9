//! Charts of bars: for each file or model the speeds of both programs, and the floor where it is known.
//!
//! Horizontal bars in two panels side by side; a thin line marks the floor of decoding.

use super::comparison::Comparison;
use super::summary::Summary;
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

/// A panel: a value of every row, ours and the peer's.
pub struct Panel {
    pub title: String,
    pub values: Vec<(f64, f64)>,
    /// What each row could reach; empty where that is not known.
    pub floors: Vec<f64>,
}

/// The chart of the files: decoding with its floor, and prompts.
pub fn draw(summary: &Summary<Comparison>) -> String {
    let rows = &summary.comparisons;
    let labels: Vec<String> = rows.iter().map(Comparison::label).collect();
    let decode = Panel {
        title: "decode, tokens a second".into(),
        values: rows.iter().map(Comparison::decode).collect(),
        floors: rows.iter().map(|row| row.floor).collect(),
    };
    let prefill = Panel {
        title: "prompt, tokens a second".into(),
        values: rows.iter().map(Comparison::prefill).collect(),
        floors: Vec::new(),
    };
    draw_pairs(&labels, &[[decode, prefill]])
}

/// Pairs of panels, one below the other, with a label for every row, as an SVG file that is readable on light
/// and on dark pages.
pub fn draw_pairs(labels: &[String], pairs: &[[Panel; 2]]) -> String {
    let pair_height = TOP + ROW * labels.len() as f64;
    let height = pair_height * pairs.len() as f64 + 16.0;
    let mut svg = Svg::new(WIDTH, height);
    let has_floor = pairs.iter().flatten().any(|panel| !panel.floors.is_empty());
    let floor = has_floor.then_some((FLOOR, "reading the weights once"));
    let legend = [(OURS, "Akunu"), (PEER, "llama.cpp")];
    svg.legend((LABEL, 8.0), legend.into_iter().chain(floor));
    for (n, pair) in pairs.iter().enumerate() {
        let top = TOP + pair_height * n as f64;
        draw_pair(&mut svg, top, labels, pair);
    }
    svg.finish()
}

/// Two panels side by side, whose first row is at this height.
fn draw_pair(svg: &mut Svg, top: f64, labels: &[String], pair: &[Panel; 2]) {
    let places = [LABEL, LABEL + PANEL + GAP];
    for (panel, x) in pair.iter().zip(places) {
        svg.text((x, top - 12.0), &panel.title);
    }
    for (row, label) in labels.iter().enumerate() {
        let y = top + ROW * row as f64;
        svg.text((4.0, y + 16.0), label);
        for (panel, x) in pair.iter().zip(places) {
            bars(svg, (x, y), panel.values[row], scale(panel));
        }
        for (panel, x) in pair.iter().zip(places) {
            if let Some(floor) = panel.floors.get(row) {
                let x = x + floor * scale(panel);
                svg.bar((x, y), (2.0, 2.0 * BAR + 2.0), FLOOR);
            }
        }
    }
}

/// Pixels for a token a second, so that the largest value fits with its number beside.
fn scale(panel: &Panel) -> f64 {
    let values = panel.values.iter().flat_map(|&(ours, peer)| [ours, peer]);
    let largest = values
        .chain(panel.floors.iter().copied())
        .fold(1.0, f64::max);
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
    use crate::compare::comparison::tests::example;

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
