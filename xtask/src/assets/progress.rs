//! Progress of a download: a bar on a terminal, a line elsewhere.

use super::catalogue::Archive;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far a download is. The bar vanishes at the end or on failure.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Says what is being downloaded.
    pub fn start(asset: &str, archive: &Archive) -> Progress {
        let message = format!("{asset}: downloading {archive}");
        if !std::io::stderr().is_terminal() {
            println!("{message} ({})", megabytes(archive.bytes));
            return Progress {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::new(archive.bytes).with_message(message);
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar }
    }

    /// This much has arrived.
    pub fn at(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Everything has arrived.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A size for people, in decimal megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
