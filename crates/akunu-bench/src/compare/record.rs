//! What was measured so far, in a folder: a JSON file has every round; a chart of the same name and a
//! table in `performance.md`, if that page has a place for it, are made from it.

use super::summary::{Row, Summary};
use akunu_repo::Failure;
use std::path::{Path, PathBuf};

/// A kind of record: what it is called, and how it is shown.
pub struct Kind<R: Row> {
    /// The name of the JSON file and of the chart.
    pub stem: &'static str,
    pub draw: fn(&Summary<R>) -> String,
    /// The table, and what is below it.
    pub text: fn(&Summary<R>) -> String,
    /// Before its table in `performance.md`.
    pub begin: &'static str,
}

/// After a table in `performance.md`.
const END: &str = "<!-- end of what it wrote -->\n";

/// The record of a folder.
pub struct Record<R: Row + 'static> {
    folder: PathBuf,
    kind: &'static Kind<R>,
    pub summary: Summary<R>,
}

impl<R: Row> Record<R> {
    /// Whether a folder has a record of this kind.
    pub fn is_in(folder: &Path, kind: &Kind<R>) -> bool {
        json_path(folder, kind).exists()
    }

    /// The record of a folder.
    pub fn read(folder: PathBuf, kind: &'static Kind<R>) -> Result<Record<R>, Failure> {
        let path = json_path(&folder, kind);
        let text = std::fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
        let wrong = |error| {
            Failure::Found(format!(
                "{} is not a record of compare ({error}); move it away",
                path.display()
            ))
        };
        let summary = serde_json::from_str(&text).map_err(wrong)?;
        Ok(Record {
            folder,
            kind,
            summary,
        })
    }

    /// The same to add to; a new one where there is none. Figures of other sizes do not mix.
    pub fn open(
        folder: PathBuf,
        sizes: R::Sizes,
        kind: &'static Kind<R>,
    ) -> Result<Record<R>, Failure> {
        let path = json_path(&folder, kind);
        if !Record::is_in(&folder, kind) {
            let comparisons = Vec::new();
            let summary = Summary { sizes, comparisons };
            return Ok(Record {
                folder,
                kind,
                summary,
            });
        }
        let record = Record::read(folder, kind)?;
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
        let (folder, kind) = (&self.folder, self.kind);
        std::fs::create_dir_all(folder).map_err(|source| Failure::io(folder, source))?;
        write(&json_path(folder, kind), &format!("{}\n", self.json()?))?;
        let chart = folder.join(format!("{}.svg", kind.stem));
        write(&chart, &(kind.draw)(&self.summary))?;
        let page = folder.join("performance.md");
        match std::fs::read_to_string(&page) {
            Ok(text) => write(&page, &with_table(&text, kind.begin, &self.text())),
            Err(_) => Ok(()),
        }
    }

    /// The figures.
    pub fn json(&self) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(&self.summary);
        text.map_err(|error| Failure::Found(format!("the record: {error}")))
    }

    /// The table, and what is below it.
    pub fn text(&self) -> String {
        (self.kind.text)(&self.summary)
    }
}

fn json_path<R: Row>(folder: &Path, kind: &Kind<R>) -> PathBuf {
    folder.join(format!("{}.json", kind.stem))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::io(path, source))
}

/// The page with this between the marks; the page as it is where it has none.
fn with_table(page: &str, begin: &str, table: &str) -> String {
    let parts = page.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    match parts {
        Some((before, after)) => format!("{before}{begin}\n{table}\n{END}{after}"),
        None => page.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::comparison::tests::comparison;
    use crate::compare::cpu::{FILES, FULL, QUICK};
    use crate::compare::gpu::NVIDIA;
    use crate::compare::read_all;
    use crate::compare::scaling::SCALING;
    use akunu_repo::workspace;

    /// Fails if a later run of one cell loses what an earlier run has written.
    #[test]
    fn a_later_run_keeps_what_an_earlier_one_wrote() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let page = folder.path().join("performance.md");
        std::fs::write(&page, format!("before\n{}old\n{END}after\n", FILES.begin))
            .expect("written");
        for threads in [2, 1] {
            let mut record = Record::open(folder.path().into(), QUICK, &FILES).expect("a record");
            record.summary.put(comparison("gemma", threads));
            record.write().expect("written");
        }
        let record = Record::read(folder.path().into(), &FILES).expect("a record");
        let text = record.text();
        assert!(text.contains("| gemma | 1 |") && text.contains("| gemma | 2 |"));
        let page = std::fs::read_to_string(&page).expect("the page");
        let begin = FILES.begin;
        assert_eq!(page, format!("before\n{begin}\n{text}\n{END}after\n"));
        let chart =
            std::fs::read_to_string(folder.path().join("performance.svg")).expect("a chart");
        assert!(chart.contains("gemma, 1 thread<") && chart.contains("gemma, 2 threads<"));
    }

    #[test]
    fn figures_of_other_sizes_do_not_mix() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = Record::open(folder.path().into(), QUICK, &FILES).expect("a record");
        record.write().expect("written");
        let refused = Record::open(folder.path().into(), FULL, &FILES).err();
        assert!(matches!(&refused, Some(Failure::Usage(said)) if said.contains("--into")));
    }

    #[test]
    fn a_file_that_is_no_record_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(json_path(folder.path(), &FILES), "{}").expect("written");
        let refused = Record::read(folder.path().into(), &FILES).err();
        let said = refused.expect("an error").to_string();
        assert!(said.contains("performance.json is not a record"), "{said}");
    }

    /// Fails when docs/ has a chart or a table that is not of its figures.
    #[test]
    fn the_committed_charts_and_tables_are_current() {
        let docs = workspace::root().join("docs");
        for record in read_all(&docs).expect("docs/performance.json") {
            assert_is_current(&record, "cargo measure compare --table");
        }
        // The GPU's are there once they were measured.
        if json_path(&docs, &NVIDIA).exists() {
            let record = Record::read(docs, &NVIDIA).expect("docs/nvidia.json");
            assert_is_current(&record, "cargo measure compare --device cuda --table");
        }
    }

    fn assert_is_current<R: Row>(record: &Record<R>, fix: &str) {
        let (folder, kind) = (&record.folder, record.kind);
        let file =
            |name: &str| std::fs::read_to_string(folder.join(name)).expect("a committed file");
        let chart = file(&format!("{}.svg", kind.stem));
        assert!(chart == (kind.draw)(&record.summary), "run `{fix}`");
        let page = file("performance.md");
        let expected = with_table(&page, kind.begin, &record.text());
        assert!(page.contains(kind.begin) && page == expected, "run `{fix}`");
    }

    /// Fails if the page has no place for the table of the GPU.
    #[test]
    fn the_page_has_a_place_for_every_table() {
        let page = workspace::root().join("docs/performance.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for begin in [FILES.begin, SCALING.begin, NVIDIA.begin] {
            assert_ne!(with_table(&page, begin, "a table"), page, "{begin}");
        }
    }

    /// Fails if the two kinds of records write over each other's files or tables.
    #[test]
    fn scaling_has_files_and_a_table_of_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let page = folder.path().join("performance.md");
        let places = [&FILES, &SCALING].map(|kind| format!("{}old\n{END}", kind.begin));
        std::fs::write(&page, places.concat()).expect("written");
        for kind in [&FILES, &SCALING] {
            let mut record = Record::open(folder.path().into(), QUICK, kind).expect("a record");
            record.summary.put(comparison("1B Q4_0", 1));
            record.write().expect("written");
        }
        let text = std::fs::read_to_string(&page).expect("the page");
        assert!(!text.contains("old"), "{text}");
        assert!(text.contains("![chart](scaling.svg)"), "{text}");
        let records = read_all(folder.path()).expect("both");
        assert_eq!(records.len(), 2);
    }
}
