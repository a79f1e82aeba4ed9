//! Bars, words and legends as SVG, readable on light and on dark pages.

use std::fmt::Write;

const TEXT: &str = "#555e6b";
/// The side of the coloured square in a legend.
const SQUARE: f64 = 12.0;

/// A drawing that is being made.
pub struct Svg(String);

impl Svg {
    /// An empty drawing of this size.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"{TEXT}\">\n"
        ))
    }

    /// Words that begin at this point, on this base line.
    pub fn text(&mut self, (x, y): (f64, f64), words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
    }

    /// A filled rectangle, from its left upper corner.
    pub fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
        );
    }

    /// Names beside squares of their colours, in one line from this point on.
    pub fn legend<'a, 'b>(
        &mut self,
        (mut x, y): (f64, f64),
        entries: impl Iterator<Item = (&'a str, &'b str)>,
    ) {
        for (colour, name) in entries {
            self.bar((x, y), (SQUARE, SQUARE), colour);
            self.text((x + 18.0, y + 10.0), name);
            x += 40.0 + 7.0 * name.chars().count() as f64;
        }
    }

    /// The file.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}
