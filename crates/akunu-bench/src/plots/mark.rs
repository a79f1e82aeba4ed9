//! The comments that ask for a plot, and the tables below them.

/// A table as a chart: groups of bars with a name each.
#[derive(Debug, PartialEq)]
pub struct Chart {
    /// The name of the file.
    pub file: String,
    /// The words above the chart.
    pub title: String,
    /// What the bars of a group are called, in order.
    pub names: Vec<String>,
    /// The groups: a label, and a value for each name, `None` where the cell is empty.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

/// The charts that a page asks for, or what is wrong with one.
pub fn charts(page: &str) -> Result<Vec<Chart>, String> {
    let mut charts = Vec::new();
    let mut lines = page.lines();
    let mut marks = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(mark) = line.strip_prefix("<!-- plot ") {
            marks.push(mark.trim_end_matches("-->").trim());
        } else if line.starts_with('|') && !marks.is_empty() {
            let rows = lines.by_ref().skip(1);
            let rows: Vec<_> = rows.take_while(|row| row.starts_with('|')).collect();
            for mark in marks.drain(..) {
                charts.push(chart(mark, line, &rows).ok_or(format!("a plot of nothing: {mark}"))?);
            }
        }
    }
    match marks.first() {
        Some(mark) => Err(format!("no table follows the plot {mark}")),
        None => Ok(charts),
    }
}

/// Reads `FILE: TITLE; rows N, …; bars N, …`.
fn chart(mark: &str, header: &str, rows: &[&str]) -> Option<Chart> {
    let (file, rest) = mark.split_once(": ")?;
    let (rest, bars) = rest.rsplit_once("; bars ")?;
    let (title, labels) = rest.rsplit_once("; rows ")?;
    let (labels, bars) = (columns(labels)?, columns(bars)?);
    let group = |row: &&str| {
        let label = pick(row, &labels)?.join(" ");
        let values = pick(row, &bars)?.into_iter().map(first_number).collect();
        Some((label, values))
    };
    let groups: Option<Vec<(String, Vec<Option<f64>>)>> = rows.iter().map(group).collect();
    let names = pick(header, &bars)?.into_iter().map(str::to_string);
    Some(Chart {
        file: file.to_string(),
        title: title.to_string(),
        names: names.collect(),
        groups: groups.filter(|groups| !groups.is_empty())?,
    })
}

/// Some cells of a row.
fn pick<'a>(row: &'a str, columns: &[usize]) -> Option<Vec<&'a str>> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let chosen = columns.iter().map(|&column| cells.get(column).copied());
    chosen.collect()
}

/// Numbers of columns, counted from 1 in the text and from 0 in the result.
fn columns(text: &str) -> Option<Vec<usize>> {
    let numbers = text.split(',').map(|number| number.trim().parse().ok());
    numbers
        .map(|number: Option<usize>| number?.checked_sub(1))
        .collect()
}

/// The first number of a cell: 652 of `652, 864`, 1093 of `1,093 (2)`, 1.5 of `**1.5**`.
fn first_number(cell: &str) -> Option<f64> {
    let start = cell.find(|c: char| c.is_ascii_digit())?;
    let mut digits = String::new();
    let mut rest = cell[start..].chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '0'..='9' | '.' => digits.push(c),
            ',' if rest.peek().is_some_and(char::is_ascii_digit) => {}
            _ => break,
        }
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a column is taken for its neighbour, a table ends late, or an empty cell counts as 0.
    #[test]
    fn a_table_becomes_a_chart() {
        let page = "<!-- plot a.svg: Speed, tokens a second; rows 1, 2; bars 4, 3 -->\n\n| a | b | ours | peer |\n|---|---|---|---|\n\
                    | 1B | x | 652, 864 | **1,093** |\n| 8B | y | 2 (3) | |\n\n| 7 | 7 | 7 | 7 |\n";
        let charts = charts(page).expect("a chart");
        let chart = Chart {
            file: "a.svg".into(),
            title: "Speed, tokens a second".into(),
            names: vec!["peer".into(), "ours".into()],
            groups: vec![
                ("1B x".into(), vec![Some(1093.0), Some(652.0)]),
                ("8B y".into(), vec![None, Some(2.0)]),
            ],
        };
        assert_eq!(charts, vec![chart]);
    }

    /// Fails if a plot can be lost without a word: no table, a column that does not exist, column 0, no figures.
    #[test]
    fn a_mark_without_its_table_is_an_error() {
        let table = "\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        for mark in [
            "p.svg: T; rows 1; bars 3",
            "p.svg: T; rows 0; bars 1",
            "p.svg: T; rows 1",
        ] {
            let page = format!("<!-- plot {mark} -->\n{table}");
            assert!(charts(&page).is_err(), "{mark}");
        }
        assert!(charts("<!-- plot p.svg: T; rows 1; bars 2 -->\n").is_err());
    }
}
