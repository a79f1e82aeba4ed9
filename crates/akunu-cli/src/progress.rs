//! Progress on stderr: a bar on a terminal, a line or nothing elsewhere.

use crate::interrupt::Interrupt;
use akunu::Reading;
use akunu_fetch::{Meter, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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
    bar: ProgressBar,
    /// Dropped when the reading has ended, which the thread waits for.
    under_way: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadingBar {
    /// The reading begins now. A thread shows the bar in time, even in the middle of a long chunk.
    pub fn new() -> ReadingBar {
        let bar = ProgressBar::hidden();
        let template = "reading the prompt {bar:30} {pos}/{len} tokens";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        let (under_way, ended) = mpsc::channel();
        let late = bar.clone();
        let show = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                late.set_draw_target(ProgressDrawTarget::stderr());
                late.tick();
            }
        };
        let thread = io::stderr().is_terminal().then(|| std::thread::spawn(show));
        ReadingBar {
            bar,
            under_way: Some(under_way),
            thread,
        }
    }

    /// Tells how far it is.
    pub fn set(&self, reading: Reading) {
        self.bar.set_length(reading.total as u64);
        self.bar.set_position(reading.done as u64);
    }
}

impl Drop for ReadingBar {
    fn drop(&mut self) {
        drop(self.under_way.take());
        if let Some(thread) = self.thread.take() {
            // A bar that could not be shown is no reason to fail.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
