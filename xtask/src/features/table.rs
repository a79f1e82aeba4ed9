//! The table of features on its page: `| feature | in Rust | in C | in Python |`, where a cell begins with a check mark if its test
//! has passed.

use std::collections::BTreeSet;

/// The page of the table, from the workspace's root.
pub const PAGE: &str = "docs/library.md";
/// The languages, in the order of the columns.
pub const LANGUAGES: [&str; 3] = ["Rust", "C", "Python"];
const HEADING: &str = "# In Rust, C and Python";
const MARK: &str = "✓ ";

/// A row: a feature and its names in each language.
#[derive(Clone, Debug)]
pub struct Row<'p> {
    /// Its words.
    pub feature: &'p str,
    /// The names in each language, without marks.
    pub cells: [&'p str; 3],
    /// Which cells have a mark.
    pub marked: [bool; 3],
}

impl<'p> Row<'p> {
    fn read(line: &'p str) -> Option<Row<'p>> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [feature, cells @ ..] = <[&str; 4]>::try_from(cells).ok()?;
        let without = |cell: &'p str| cell.strip_prefix(MARK).unwrap_or(cell);
        Some(Row {
            feature,
            cells: cells.map(without),
            marked: cells.map(|cell| cell.starts_with(MARK)),
        })
    }

    /// The name of the row's test: its words.
    pub fn test(&self) -> String {
        let words = self.feature.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.join("_").to_lowercase()
    }

    fn line(&self) -> String {
        let cells = self.cells.iter().zip(self.marked);
        let cells =
            cells.map(|(cell, is_marked)| format!("{}{cell}", if is_marked { MARK } else { "" }));
        let cells: Vec<String> = cells.collect();
        format!("| {} | {} |", self.feature, cells.join(" | "))
    }
}

/// The lines of the table below its head.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    let (_, after) = page.split_once(HEADING).unwrap_or_default();
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    lines.take_while(|line| line.starts_with('|')).skip(2)
}

/// The rows of the table.
pub fn rows(page: &str) -> impl Iterator<Item = Row<'_>> {
    lines(page).filter_map(Row::read)
}

/// The page with marks at the rows whose tests have passed, by language, and at no others.
pub fn marked(page: &str, passed: &[BTreeSet<String>; 3]) -> String {
    let mut new = page.to_string();
    for line in lines(page) {
        if let Some(mut row) = Row::read(line) {
            let test = row.test();
            row.marked = passed.each_ref().map(|passed| passed.contains(&test));
            new = new.replacen(line, &row.line(), 1);
        }
    }
    new
}
