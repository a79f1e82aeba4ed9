//! Groups of horizontal bars, each with its number.

use super::mark::Chart;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const LABEL: f64 = 130.0;
const NUMBER: f64 = 56.0;
const BAR: f64 = 11.0;
const GAP: f64 = 10.0;
const TOP: f64 = 50.0;

const TEXT: &str = "#555e6b";
/// Colours that can be told apart on light and on dark pages.
const COLOURS: [&str; 4] = ["#2f6fdb", "#b8bfca", "#2c9c5a", "#b07a1e"];

/// The chart as an SVG file.
pub fn draw(chart: &Chart) -> String {
    let group = chart.names.len() as f64 * BAR + GAP;
    let height = TOP + group * chart.groups.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{TEXT}\">\n"
    );
    text(&mut svg, (4.0, 16.0), &chart.title);
    legend(&mut svg, &chart.names);
    let values = chart.groups.iter().flat_map(|(_, values)| values);
    let most = values.flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL - NUMBER) / most;
    for (n, (label, values)) in chart.groups.iter().enumerate() {
        let y = TOP + group * n as f64;
        text(&mut svg, (4.0, y + group / 2.0), label);
        for (n, value) in values.iter().enumerate() {
            if let Some(value) = value {
                bar(&mut svg, y + n as f64 * BAR, (*value, scale), n);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, names: &[String]) {
    let mut x = LABEL;
    for (n, name) in names.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"26\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
        );
        text(svg, (x + 18.0, 36.0), name);
        x += 40.0 + 7.0 * name.chars().count() as f64;
    }
}

fn bar(svg: &mut String, y: f64, (value, scale): (f64, f64), n: usize) {
    let (width, colour) = (value * scale, COLOURS[n % COLOURS.len()]);
    let height = BAR - 1.0;
    let _ = writeln!(
        svg,
        "<rect x=\"{LABEL}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
    );
    text(svg, (LABEL + width + 5.0, y + 9.0), &value.to_string());
}

fn text(svg: &mut String, (x, y): (f64, f64), words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a bar is not as long as its value, or an empty cell has one: 40 takes all the room, 10 a quarter.
    #[test]
    fn lengths_follow_values() {
        let chart = Chart {
            file: String::new(),
            title: "a < b".into(),
            names: vec!["ours".into(), "peer".into()],
            groups: vec![
                ("1".into(), vec![Some(40.0), Some(10.0)]),
                ("2".into(), vec![Some(20.0), None]),
            ],
        };
        let svg = draw(&chart);
        let whole = WIDTH - LABEL - NUMBER;
        for (part, colour) in [(1.0, 0), (0.25, 1), (0.5, 0)] {
            let wanted = format!(
                "width=\"{:.1}\" height=\"10\" fill=\"{}\"",
                part * whole,
                COLOURS[colour]
            );
            assert!(svg.contains(&wanted), "{wanted} in {svg}");
        }
        assert_eq!(svg.matches("height=\"10\"").count(), 3, "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
    }
}
