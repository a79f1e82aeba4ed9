//! Progress on stderr: a bar on a terminal, a line or nothing elsewhere.

use crate::interrupt::Interrupt;
use akunu_fetch::{Meter, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};

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
pub fn download() -> impl Watch {
    let interrupt = Interrupt::listen();
    let meter = Meter::new(io::stderr(), io::stderr().is_terminal());
    meter.until(move || interrupt.check().is_err())
}
