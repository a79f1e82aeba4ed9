//! Where tests and benchmarks find real models, and what they say when one is not there.
//!
//! `cargo xtask assets NAME` puts the files of an asset into `target/assets/NAME/` of the workspace, which does
//! not follow `CARGO_TARGET_DIR`: several target folders share one copy. `cargo xtask test` fetches all that
//! tests open; plain `cargo test` on a fresh clone fails with one line that names that command.
//!
//! [`documented`] has the commands of the documentation, for tests of the programs that have these commands.
#![forbid(unsafe_code)]

mod documented;

pub use documented::{Documented, documented};

use std::path::{Path, PathBuf};

/// The folder of all assets.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/assets")
}

/// A file of an asset, or a folder of it.
///
/// # Panics
/// When it is not there, with the command that fetches it.
#[must_use]
#[track_caller]
pub fn path(asset: &str, file: &str) -> PathBuf {
    let path = folder().join(asset).join(file);
    assert!(path.exists(), "{}", missing(asset, file));
    path
}

/// What a test says that lacks a file: one line, with a command that can be typed.
fn missing(asset: &str, file: &str) -> String {
    format!(
        "target/assets/{asset}/{file} is missing: run `cargo xtask assets {asset}`, or \
         `cargo xtask test` for all that tests need"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when the message loses the file or the command, or runs over several lines.
    #[test]
    fn a_missing_file_is_one_line_with_the_command_that_fetches_it() {
        let panicked = std::panic::catch_unwind(|| path("no-such-asset", "model.gguf"));
        let said = panicked.expect_err("it is not there");
        let said = said.downcast_ref::<String>().expect("words");
        assert!(
            said.starts_with("target/assets/no-such-asset/model.gguf is missing")
                && said.contains("`cargo xtask assets no-such-asset`"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
}
