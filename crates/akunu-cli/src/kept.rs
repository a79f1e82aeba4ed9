//! Pages and states that outlive the program.

use crate::terminal::warn;
use akunu::{CacheOptions, Model};
use clap::Args;
use std::path::PathBuf;

/// Where what was read is kept.
#[derive(Args, Clone)]
pub struct KeptArgs {
    /// Keep what was read of conversations in this folder, and find it again after a restart
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Size of the folder: 500M, 20G or 1T; what was not used longest goes first
    #[arg(long, value_name = "SIZE", default_value = "20G", value_parser = size, requires = "cache")]
    cache_size: u64,
}

impl KeptArgs {
    /// Has the model keep its pages there, if a folder was named.
    pub fn keep(&self, model: &Model) {
        if let Some(folder) = &self.cache {
            model.use_cache(&CacheOptions {
                folder: folder.clone(),
                max_bytes: self.cache_size,
                ..CacheOptions::default()
            });
            tell(model);
        }
    }
}

/// Has what is new written, as much as may wait to be, while a person thinks.
pub fn save(model: &Model) {
    if let Err(error) = model.save_cache() {
        warn(&error.to_string());
    }
    tell(model);
}

/// Has all of it written.
pub fn finish(model: &Model) {
    if let Err(error) = model.finish_cache() {
        warn(&error.to_string());
    }
    tell(model);
}

fn tell(model: &Model) {
    if let Some(fault) = model.take_cache_fault() {
        warn(&fault);
    }
}

/// A number of bytes such as `20G`.
fn size(text: &str) -> Result<u64, String> {
    let units = [("M", 1 << 20), ("G", 1 << 30), ("T", 1u64 << 40)];
    let found = units.iter().find_map(|(unit, bytes)| {
        let n: u64 = text.strip_suffix(unit)?.parse().ok()?;
        n.checked_mul(*bytes)
    });
    let found = found.filter(|&bytes| bytes > 0);
    found.ok_or_else(|| "it must be a size such as 500M, 20G or 1T".into())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("20G"), Ok(20 << 30));
        assert_eq!(size("500M"), Ok(500 << 20));
        for wrong in ["", "G", "0G", "20", "-1G", "20GB", "99999999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
