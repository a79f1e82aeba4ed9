//! The chart of scaling: for each model the speed over the number of threads, ours and the peer's.
//!
//! A row for each model, with a panel for decoding and one for prompts. Threads are spaced by their
//! logarithm, speeds from zero. A colour is an instruction set; a full line is ours, a dashed one the
//! peer's.

use super::comparison::Comparison;
use super::summary::Summary;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 50.0;
const PANEL: (f64, f64) = (340.0, 170.0);
const GAP: f64 = 60.0;
const TOP: f64 = 34.0;
const ROW: f64 = 250.0;

const TEXT: &str = "#555e6b";
const GRID: &str = "#b8bfca";
/// Colours that can be told apart on light and on dark pages.
const COLOURS: [&str; 4] = ["#2f6fdb", "#d0402f", "#2c9c5a", "#b07a1e"];

/// A value of both programs: ours, the peer's.
type Both = fn(&Comparison) -> (f64, f64);

/// The chart as an SVG file.
pub fn draw(summary: &Summary<Comparison>) -> String {
    let all = &summary.comparisons;
    let mut models: Vec<&str> = all.iter().map(|row| row.model.as_str()).collect();
    models.dedup();
    let mut levels: Vec<&str> = all.iter().map(Comparison::level).collect();
    levels.sort_unstable();
    levels.dedup();
    let height = TOP + ROW * models.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{TEXT}\">\n"
    );
    legend(&mut svg, &levels);
    for (n, model) in models.iter().enumerate() {
        let rows: Vec<&Comparison> = all.iter().filter(|row| row.model == *model).collect();
        let y = TOP + ROW * n as f64 + 30.0;
        let panels: [(&str, Both); 2] = [
            ("decode", Comparison::decode),
            ("prompt", Comparison::prefill),
        ];
        for (column, (what, both)) in panels.into_iter().enumerate() {
            let x = LEFT + column as f64 * (PANEL.0 + GAP);
            let title = format!("{model}: {what}, tokens a second over threads");
            text(&mut svg, (x, y - 10.0), &title);
            panel(&mut svg, (x, y), &rows, (both, &levels));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, levels: &[&str]) {
    let mut x = LEFT;
    for (n, level) in levels.iter().enumerate() {
        for (program, dash) in [("Akunu", ""), ("llama.cpp", " stroke-dasharray=\"5 4\"")] {
            let words = format!("{program} {level}");
            let colour = COLOURS[n % COLOURS.len()];
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" y1=\"14\" x2=\"{}\" y2=\"14\" stroke=\"{colour}\" \
                 stroke-width=\"2\"{dash}/>",
                x + 22.0
            );
            text(svg, (x + 27.0, 18.0), words.trim_end());
            x += 45.0 + 6.5 * words.len() as f64;
        }
    }
}

/// The axes, and two lines for each instruction set.
fn panel(
    svg: &mut String,
    (x, y): (f64, f64),
    rows: &[&Comparison],
    (both, levels): (Both, &[&str]),
) {
    let most = rows.iter().map(|row| both(row).0.max(both(row).1));
    let most = most.fold(1.0, f64::max);
    let most_threads = rows.iter().map(|row| row.threads).max().unwrap_or(1);
    let steps = (most_threads as f64).log2().max(1.0);
    let across = |threads: usize| x + PANEL.0 * (threads as f64).log2() / steps;
    let up = |value: f64| y + PANEL.1 * (1.0 - value / most);
    for value in [0.0, most / 2.0, most] {
        line(
            svg,
            &[(x, up(value)), (x + PANEL.0, up(value))],
            (GRID, " stroke-width=\"0.5\""),
        );
        text(svg, (x - 46.0, up(value) + 4.0), &format!("{value:.0}"));
    }
    let mut threads: Vec<usize> = rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    for n in threads {
        text(svg, (across(n) - 4.0, y + PANEL.1 + 16.0), &n.to_string());
    }
    for (n, level) in levels.iter().enumerate() {
        let of_level = || rows.iter().filter(|row| row.level() == *level);
        let ours: Vec<_> = of_level()
            .map(|r| (across(r.threads), up(both(r).0)))
            .collect();
        let peer: Vec<_> = of_level()
            .map(|r| (across(r.threads), up(both(r).1)))
            .collect();
        let colour = COLOURS[n % COLOURS.len()];
        line(svg, &ours, (colour, " stroke-width=\"2\""));
        let dashed = " stroke-width=\"2\" stroke-dasharray=\"5 4\"";
        line(svg, &peer, (colour, dashed));
    }
}

fn line(svg: &mut String, points: &[(f64, f64)], (colour, style): (&str, &str)) {
    let points: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"{style}/>",
        points.join(" ")
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::comparison::tests::comparison;

    /// Fails if a line does not reach its value: ours writes 30 tokens a second, which is the top of the
    /// panel, with one thread at its left end and with four at its right one; the peer writes 20.
    #[test]
    fn lines_go_through_their_values() {
        let mut rows = vec![comparison("1B Q4_0", 1), comparison("1B Q4_0", 4)];
        rows.iter_mut()
            .for_each(|row| row.isa = Some("avx2".into()));
        let summary = Summary {
            sizes: crate::compare::cpu::QUICK,
            comparisons: rows,
        };
        let svg = draw(&summary);
        let (y, right) = (TOP + 30.0, LEFT + PANEL.0);
        let ours =
            format!("points=\"{LEFT:.1},{y:.1} {right:.1},{y:.1}\" fill=\"none\" stroke=\"#2f");
        assert!(svg.contains(&ours), "{svg}");
        let third = y + PANEL.1 / 3.0;
        let peer = format!("points=\"{LEFT:.1},{third:.1} {right:.1},{third:.1}\"");
        assert!(svg.contains(&peer), "{svg}");
        assert!(svg.contains("Akunu avx2<") && svg.contains("llama.cpp avx2<"));
        assert!(svg.contains("1B Q4_0: decode") && svg.contains("1B Q4_0: prompt"));
    }
}
