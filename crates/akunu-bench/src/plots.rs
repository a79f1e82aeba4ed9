//! `cargo measure plots`: the plots of the documentation, each drawn from a table of its page.
//!
//! A comment before a table asks for a plot of it; columns are counted from 1:
//!
//! ```text
//! <!-- plot decode-threads.svg: Decoding, tokens a second; rows 1; bars 5, 6 -->
//!
//! | threads | … |
//! ```
//!
//! `rows` are the columns that name a row, `bars` those with its figures. So each figure is in one place, the table, and a
//! test fails when a plot is older than it.

mod bars;
mod mark;

use akunu_repo::{Failure, workspace};
use std::path::{Path, PathBuf};

/// Arguments of `cargo measure plots`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only check that the files are what the tables say
    #[arg(long)]
    check: bool,
}

/// A plot: where its file lies, and what is in it.
struct Plot {
    path: PathBuf,
    svg: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    for plot in all()? {
        if args.check {
            check(&plot)?;
        } else {
            std::fs::write(&plot.path, &plot.svg).map_err(|e| Failure::io(&plot.path, e))?;
            println!("{}", plot.path.display());
        }
    }
    Ok(())
}

fn check(plot: &Plot) -> Result<(), Failure> {
    if std::fs::read_to_string(&plot.path).is_ok_and(|found| found == plot.svg) {
        return Ok(());
    }
    Err(Failure::Found(format!(
        "{} is not what its table says: run `cargo measure plots`",
        plot.path.display()
    )))
}

/// The plots of all pages.
fn all() -> Result<Vec<Plot>, Failure> {
    let docs = workspace::root().join("docs");
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| Failure::io(path, e));
    let mut plots = Vec::new();
    let entries = std::fs::read_dir(&docs).map_err(|e| Failure::io(&docs, e))?;
    for page in entries.flatten().map(|entry| entry.path()) {
        if page.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let wrong = |what| Failure::Found(format!("{}: {what}", page.display()));
        for chart in mark::charts(&read(&page)?).map_err(wrong)? {
            plots.push(Plot {
                path: docs.join("plots").join(&chart.file),
                svg: bars::draw(&chart),
            });
        }
    }
    Ok(plots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a table was changed and its plot was not drawn again, when a plot's comment cannot be read, and when the
    /// comments are gone.
    #[test]
    fn plots_are_what_their_tables_say() {
        let plots = all().expect("the pages can be read");
        assert!(plots.len() >= 4, "only {} plots", plots.len());
        for plot in &plots {
            check(plot).expect("current");
        }
    }
}
