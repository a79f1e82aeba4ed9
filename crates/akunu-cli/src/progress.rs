//! Progress on stderr: a bar on a terminal, a line or nothing elsewhere.

use crate::interrupt::Interrupt;
use akunu_fetch::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

/// A bar of `length` steps on a terminal, and nothing elsewhere.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Shows how far a download is, and stops it at Ctrl-C.
pub struct Download {
    bar: RefCell<Option<ProgressBar>>,
    interrupt: Interrupt,
}

impl Download {
    /// Nothing is under way yet.
    pub fn new(interrupt: Interrupt) -> Download {
        Download {
            bar: RefCell::new(None),
            interrupt,
        }
    }
}

impl Watch for Download {
    fn begin(&self, what: &str, bytes: u64) {
        if !io::stderr().is_terminal() {
            let megabytes = bytes as f64 / 1e6;
            // Whoever closed stderr does not want to know.
            let _ = writeln!(io::stderr(), "{what} ({megabytes:.1} MB)");
        }
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        let bar = bar(bytes, template).with_message(what.to_string());
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

    fn is_cancelled(&self) -> bool {
        self.interrupt.check().is_err()
    }
}
