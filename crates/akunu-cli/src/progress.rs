//! Progress on stderr: a bar on a terminal, a line or nothing elsewhere.

use crate::interrupt::Interrupt;
use akunu_engine::Reading;
use akunu_fetch::{Meter, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a person waits without a word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a line changes while nothing else does.
pub const TICK: Duration = Duration::from_millis(250);

/// A bar of `length` steps on a terminal, and nothing elsewhere. It disappears when it is dropped, so that
/// an error does not stand behind it.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let bar = bar.with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Runs `work`. If it takes longer than two seconds, a terminal says what is done and for how long.
pub fn wait<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let line = bar(0, "{spinner} {msg}, {elapsed}");
                line.set_elapsed(PATIENCE);
                line.set_message(what.to_string());
                line.enable_steady_tick(TICK);
                // An error is what ends it: the other side is dropped when the work is done.
                let _ = ended.recv();
                line.finish_and_clear();
            }
        });
        let done = work();
        drop(working);
        done
    })
}

/// Shows how far a download is, and stops it at Ctrl-C.
pub fn download() -> impl Watch {
    let interrupt = Interrupt::listen();
    let meter = Meter::new(io::stderr(), io::stderr().is_terminal());
    meter.until(move || interrupt.check().is_err())
}

/// How far the reading of a prompt is, once that takes longer than a moment. It is gone from the
/// terminal when the reading has ended.
pub struct ReadingBar {
    begin: Instant,
    bar: Option<ProgressBar>,
}

impl ReadingBar {
    /// The reading begins now.
    pub fn new() -> ReadingBar {
        ReadingBar {
            begin: Instant::now(),
            bar: None,
        }
    }

    /// Shows how far it is, if it is time to.
    pub fn show(&mut self, reading: Reading) {
        if self.begin.elapsed() < PATIENCE {
            return;
        }
        let template = "reading the prompt {bar:30} {pos}/{len} tokens, {eta} left";
        let make = || bar(reading.total as u64, template).with_elapsed(self.begin.elapsed());
        let bar = self.bar.get_or_insert_with(make);
        bar.set_position(reading.done as u64);
    }
}

impl Drop for ReadingBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
