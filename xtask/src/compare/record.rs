//! What was measured so far, in a folder: `performance.json` has every round; `performance.svg` and the
//! table in `performance.md`, if that page has a place for it, are made from it.

use super::Sizes;
use super::chart;
use super::summary::Summary;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Around the table in `performance.md`.
const BEGIN: &str = "<!-- written by cargo xtask compare -->\n";
const END: &str = "<!-- end of what it wrote -->\n";

/// The record of a folder.
pub struct Record {
    folder: PathBuf,
    pub summary: Summary,
}

impl Record {
    /// The record of a folder.
    pub fn read(folder: PathBuf) -> Result<Record, Failure> {
        let path = json_path(&folder);
        let text = std::fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
        let wrong = |error| {
            Failure::Found(format!(
                "{} is not a record of compare ({error}); move it away",
                path.display()
            ))
        };
        let summary = serde_json::from_str(&text).map_err(wrong)?;
        Ok(Record { folder, summary })
    }

    /// The same to add to; a new one where there is none. Figures of other sizes do not mix.
    pub fn open(folder: PathBuf, sizes: Sizes) -> Result<Record, Failure> {
        let path = json_path(&folder);
        if !path.exists() {
            let comparisons = Vec::new();
            let summary = Summary { sizes, comparisons };
            return Ok(Record { folder, summary });
        }
        let record = Record::read(folder)?;
        if record.summary.sizes == sizes {
            return Ok(record);
        }
        Err(Failure::Usage(format!(
            "{} has figures of other numbers of tokens; name another folder by --into",
            path.display()
        )))
    }

    /// Writes all files.
    pub fn write(&self) -> Result<(), Failure> {
        let folder = &self.folder;
        std::fs::create_dir_all(folder).map_err(|source| Failure::io(folder, source))?;
        write(&json_path(folder), &format!("{}\n", self.json()?))?;
        write(&folder.join("performance.svg"), &chart::draw(&self.summary))?;
        let page = folder.join("performance.md");
        match std::fs::read_to_string(&page) {
            Ok(text) => write(&page, &with_table(&text, &self.text())),
            Err(_) => Ok(()),
        }
    }

    /// The figures.
    pub fn json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(&self.summary).map_err(akunu_fetch::FetchError::from)?)
    }

    /// The table, and what is below the bar.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.summary.table(), self.summary.below_the_bar())
    }
}

fn json_path(folder: &Path) -> PathBuf {
    folder.join("performance.json")
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::io(path, source))
}

/// The page with this between the marks; the page as it is where it has none.
fn with_table(page: &str, table: &str) -> String {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    match parts {
        Some((before, after)) => format!("{before}{BEGIN}\n{table}\n{END}{after}"),
        None => page.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::summary::tests::comparison;
    use crate::compare::{FULL, QUICK};
    use crate::workspace;

    /// Fails if a later run of one cell loses what an earlier run has written.
    #[test]
    fn a_later_run_keeps_what_an_earlier_one_wrote() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let page = folder.path().join("performance.md");
        std::fs::write(&page, format!("before\n{BEGIN}old\n{END}after\n")).expect("written");
        for threads in [2, 1] {
            let mut record = Record::open(folder.path().into(), QUICK).expect("a record");
            record.summary.put(comparison("gemma", threads));
            record.write().expect("written");
        }
        let record = Record::read(folder.path().into()).expect("a record");
        let text = record.text();
        assert!(text.contains("| gemma | 1 |") && text.contains("| gemma | 2 |"));
        let page = std::fs::read_to_string(&page).expect("the page");
        assert_eq!(page, format!("before\n{BEGIN}\n{text}\n{END}after\n"));
        let chart =
            std::fs::read_to_string(folder.path().join("performance.svg")).expect("a chart");
        assert!(chart.contains("gemma, 1 thread<") && chart.contains("gemma, 2 threads<"));
    }

    #[test]
    fn figures_of_other_sizes_do_not_mix() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = Record::open(folder.path().into(), QUICK).expect("a record");
        record.write().expect("written");
        let refused = Record::open(folder.path().into(), FULL).err();
        assert!(matches!(&refused, Some(Failure::Usage(said)) if said.contains("--into")));
    }

    #[test]
    fn a_file_that_is_no_record_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(json_path(folder.path()), "{}").expect("written");
        let refused = Record::read(folder.path().into()).err();
        let said = refused.expect("an error").to_string();
        assert!(said.contains("performance.json is not a record"), "{said}");
    }

    /// Fails when docs/ has a chart or a table that is not of its figures.
    #[test]
    fn the_committed_chart_and_table_are_current() {
        let docs = workspace::root().join("docs");
        let record = Record::read(docs.clone()).expect("docs/performance.json");
        let file = |name| std::fs::read_to_string(docs.join(name)).expect("a committed file");
        let fix = "run `cargo xtask compare --table`";
        assert!(
            file("performance.svg") == chart::draw(&record.summary),
            "{fix}"
        );
        let page = file("performance.md");
        assert!(
            page.contains(BEGIN) && page == with_table(&page, &record.text()),
            "{fix}"
        );
    }
}
