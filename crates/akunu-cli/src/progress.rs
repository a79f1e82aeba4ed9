//! Progress on stderr: a bar on a terminal, a line or nothing elsewhere. All bars look alike:
//!
//! ```text
//! [=========>                    ] 123/400 texts  12s
//! ```

mod download;

pub use download::download;

use akunu::{Loading, Reading};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a person waits before progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a line changes while nothing else does.
const TICK: Duration = Duration::from_millis(250);

/// What a bar counts.
#[derive(Clone, Copy)]
pub enum Counts {
    /// Things of this name.
    Things(&'static str),
    /// Bytes, which have a speed.
    Bytes,
    /// Something without a unit: only its share is shown.
    Share,
}

impl Counts {
    /// The template, after a word about what is done. Without a known length there is no bar.
    fn style(self, before: &str, is_known: bool) -> ProgressStyle {
        let style = ProgressStyle::with_template(&format!("{before}{}", self.template(is_known)));
        // The tests prove that no template is wrong.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        style.progress_chars("=> ")
    }

    fn template(self, is_known: bool) -> String {
        match self {
            Counts::Things(name) if is_known => {
                format!("[{{bar:30}}] {{pos}}/{{len}} {name}  {{eta}}  {{msg}}")
            }
            Counts::Things(name) => format!("{{spinner}} {{pos}} {name}  {{msg}}"),
            Counts::Bytes => {
                "[{bar:30}] {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}  {eta}"
                    .to_string()
            }
            Counts::Share => "[{bar:30}] {percent} %  {eta}  {wide_msg}".to_string(),
        }
    }
}

/// A bar of `length` steps on a terminal, and nothing elsewhere; a length of 0 means unknown. It disappears when
/// it is dropped, so that an error does not stand behind it.
pub fn bar(length: u64, counts: Counts) -> ProgressBar {
    let is_terminal = io::stderr().is_terminal();
    let target = if is_terminal {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let bar = bar.with_finish(ProgressFinish::AndClear);
    bar.set_style(counts.style("", length > 0));
    if is_terminal {
        bar.enable_steady_tick(TICK);
    }
    bar
}

/// Runs `work`. If it takes longer than two seconds, a terminal says what is done and for how long.
pub fn wait<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let show = |ended: &Receiver<()>| {
        let line = spinner(what);
        // An error is what ends it: the other side is dropped when the work is done.
        let _ = ended.recv();
        line.finish_and_clear();
    };
    show_late(show, work)
}

/// Loads a model. If it takes longer than two seconds, a terminal shows how much of it the device has, or for how long it
/// has been under way where the device copies nothing.
pub fn loading<T>(load: impl FnOnce(&Loading) -> T) -> T {
    const WHAT: &str = "loading the model";
    let loading = Loading::default();
    let show = |ended: &Receiver<()>| {
        let line = spinner(WHAT);
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if loading.taken() == 0 {
                continue;
            }
            if line.length().is_none() {
                line.set_style(Counts::Bytes.style(&format!("{WHAT} "), true));
                line.set_length(loading.total());
            }
            line.set_position(loading.taken());
        }
        line.finish_and_clear();
    };
    show_late(show, || load(&loading))
}

/// Runs `work`; after two seconds `show` runs beside it on a terminal, until its receiver gets an error.
fn show_late<T>(show: impl FnOnce(&Receiver<()>) + Send, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                show(&ended);
            }
        });
        let done = work();
        drop(working);
        done
    })
}

/// A line that says what is done and for how long.
fn spinner(what: &str) -> ProgressBar {
    let line = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line.set_elapsed(PATIENCE);
    line.set_message(what.to_string());
    line.enable_steady_tick(TICK);
    line
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
        bar.set_style(Counts::Things("tokens").style("reading the prompt ", true));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a template cannot be read, which would show another bar, or when a kind looks otherwise than the others.
    #[test]
    fn all_bars_look_alike() {
        for counts in [Counts::Things("texts"), Counts::Bytes, Counts::Share] {
            let template = counts.template(true);
            assert!(template.starts_with("[{bar:30}] {"), "{template}");
            assert!(ProgressStyle::with_template(&template).is_ok());
        }
        let unknown = Counts::Things("s").template(false);
        assert!(!unknown.contains("bar") && ProgressStyle::with_template(&unknown).is_ok());
    }
}
