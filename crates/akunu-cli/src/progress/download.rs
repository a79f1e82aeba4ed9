//! Downloads: a line for each, and on a terminal a bar below it.

use super::{Counts, bar};
use crate::interrupt::Interrupt;
use crate::terminal::line;
use akunu_fetch::{Watch, megabytes};
use indicatif::ProgressBar;
use std::cell::RefCell;

/// Shows how far a download is, and stops it at Ctrl-C.
pub fn download() -> impl Watch {
    Download {
        interrupt: Interrupt::listen(),
        bar: RefCell::default(),
    }
}

struct Download {
    interrupt: Interrupt,
    /// Of the download under way.
    bar: RefCell<Option<ProgressBar>>,
}

impl Watch for Download {
    fn begin(&self, what: &str, bytes: u64) {
        line(&format!("{what} ({})", megabytes(bytes)));
        self.bar.replace(Some(bar(bytes, Counts::Bytes)));
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

    fn note(&self, text: &str) {
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(|| line(text)),
            None => line(text),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.interrupt.check().is_err()
    }
}
