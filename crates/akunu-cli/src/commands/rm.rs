//! `rm NAME…`: removes models from the cache.

use super::Run;
use crate::failure::Failure;
use crate::models;
use akunu_fetch::megabytes;
use clap::Parser;
use std::io::Write;

/// Remove models from the cache, and say how much that freed
///
/// It does not ask for confirmation, because models can be pulled again. If one of the names is unknown, nothing is
/// removed.
#[derive(Parser)]
#[command(name = "rm")]
pub struct Remove {
    /// Names as `list` prints them
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

impl Run for Remove {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let stored = models::stored()?;
        let names = self.names.iter().map(|name| models::listed_as(name));
        let mut names: Vec<String> = names.collect::<Result<_, _>>()?;
        let is_unknown = |name: &&String| stored.iter().all(|model| model.name != **name);
        if let Some(name) = names.iter().find(is_unknown) {
            let mut here: Vec<&str> = stored.iter().map(|model| model.name.as_str()).collect();
            here.dedup();
            let here = if here.is_empty() {
                "the cache is empty".to_string()
            } else {
                format!("the cache holds {}", here.join(", "))
            };
            let name = name.clone();
            return Err(Failure::NotStored { name, here });
        }
        names.sort();
        names.dedup();
        for name in &names {
            let freed = models::remove(name)?;
            writeln!(out, "{name}: removed, {} freed", megabytes(freed))?;
        }
        Ok(())
    }
}
