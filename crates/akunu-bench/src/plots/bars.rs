//! Groups of horizontal bars, each with its number.

use super::mark::Chart;
use crate::svg::Svg;

const WIDTH: f64 = 640.0;
const LABEL: f64 = 130.0;
const NUMBER: f64 = 56.0;
const BAR: f64 = 11.0;
const GAP: f64 = 10.0;
const TOP: f64 = 50.0;

/// Colours that can be told apart on light and on dark pages.
const COLOURS: [&str; 4] = ["#2f6fdb", "#b8bfca", "#2c9c5a", "#b07a1e"];

/// The chart as an SVG file.
pub fn draw(chart: &Chart) -> String {
    let group = chart.names.len() as f64 * BAR + GAP;
    let height = TOP + group * chart.groups.len() as f64;
    let mut svg = Svg::new(WIDTH, height);
    svg.text((4.0, 16.0), &chart.title);
    let names = chart.names.iter().map(String::as_str);
    svg.legend((LABEL, 26.0), colours().zip(names));
    let values = chart.groups.iter().flat_map(|(_, values)| values);
    let most = values.flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL - NUMBER) / most;
    for (n, (label, values)) in chart.groups.iter().enumerate() {
        let y = TOP + group * n as f64;
        svg.text((4.0, y + group / 2.0), label);
        for (n, (value, colour)) in values.iter().zip(colours()).enumerate() {
            if let Some(value) = value {
                let (y, width) = (y + n as f64 * BAR, value * scale);
                svg.bar((LABEL, y), (width, BAR - 1.0), colour);
                svg.text((LABEL + width + 5.0, y + 9.0), &value.to_string());
            }
        }
    }
    svg.finish()
}

/// A colour for each bar of a group, beginning again where there are more.
fn colours() -> impl Iterator<Item = &'static str> {
    COLOURS.into_iter().cycle()
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
