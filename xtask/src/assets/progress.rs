//! Progress of a download: a bar on a terminal, a line elsewhere.

use akunu_fetch::Watch;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;

/// Shows how far a download is. The bar vanishes at its end.
#[derive(Default)]
pub struct Progress {
    bar: RefCell<Option<ProgressBar>>,
}

impl Watch for Progress {
    fn begin(&self, what: &str, bytes: u64) {
        if !std::io::stderr().is_terminal() {
            println!("{what} ({})", megabytes(bytes));
            return;
        }
        let bar = ProgressBar::new(bytes).with_message(what.to_string());
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        self.bar.replace(Some(bar));
    }

    fn at(&self, bytes: u64) {
        if let Some(bar) = &*self.bar.borrow() {
            bar.set_position(bytes);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A size for people, in decimal megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
