//! A [`Watch`] that people can read: a line for each download, and on a terminal a bar below it, which
//! vanishes at the end. The bar stays far below 80 columns: what wraps could not be cleared.

use crate::watch::Watch;
use std::cell::RefCell;
use std::io::Write;
use std::time::Instant;

/// Characters of the bar.
const WIDTH: u64 = 30;
/// Goes back to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// Tells of downloads in words, wherever the caller wants them.
pub struct Meter<'a, W> {
    out: RefCell<W>,
    is_terminal: bool,
    is_cancelled: Box<dyn Fn() -> bool + 'a>,
    current: RefCell<Option<Current>>,
}

/// The download under way.
struct Current {
    bytes: u64,
    begin: Instant,
}

impl<'a, W: Write> Meter<'a, W> {
    /// Writes to `out`; only a terminal is shown how far a download is.
    pub fn new(out: W, is_terminal: bool) -> Meter<'a, W> {
        Meter {
            out: RefCell::new(out),
            is_terminal,
            is_cancelled: Box::new(|| false),
            current: RefCell::new(None),
        }
    }

    /// The same, and downloads are given up when this is true.
    pub fn until(self, is_cancelled: impl Fn() -> bool + 'a) -> Meter<'a, W> {
        Meter {
            is_cancelled: Box::new(is_cancelled),
            ..self
        }
    }

    fn write(&self, text: &str) {
        let mut out = self.out.borrow_mut();
        // Whoever closed the output does not want to know.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl<W: Write> Watch for Meter<'_, W> {
    fn begin(&self, what: &str, bytes: u64) {
        self.write(&format!("{what} ({})\n", megabytes(bytes)));
        let begin = Instant::now();
        let current = self.is_terminal.then_some(Current { bytes, begin });
        self.current.replace(current);
        self.at(0);
    }

    fn at(&self, bytes: u64) {
        if let Some(current) = &*self.current.borrow() {
            self.write(&format!("{CLEAR}{}", current.line(bytes)));
        }
    }

    fn end(&self) {
        if self.current.take().is_some() {
            self.write(CLEAR);
        }
    }

    fn note(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }
}

impl Current {
    /// `[=======>                       ] 45.0 MB, 12.0 MB/s`.
    fn line(&self, bytes: u64) -> String {
        let done = (bytes.saturating_mul(WIDTH) / self.bytes.max(1)).min(WIDTH) as usize;
        let bar = format!("{}>", "=".repeat(done));
        let speed = bytes as f64 / self.begin.elapsed().as_secs_f64().max(0.1);
        let width = WIDTH as usize + 1;
        let (bytes, speed) = (megabytes(bytes), megabytes(speed as u64));
        format!("[{bar:<width$}] {bytes}, {speed}/s")
    }
}

/// A size for people, in decimal megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written for a download of 8 MB that comes in two parts.
    fn written(is_terminal: bool) -> String {
        let meter = Meter::new(Vec::new(), is_terminal);
        meter.begin("model", 8_000_000);
        meter.at(4_000_000);
        meter.at(8_000_000);
        meter.end();
        String::from_utf8(meter.out.into_inner()).expect("text")
    }

    #[test]
    fn a_file_gets_one_line() {
        assert_eq!(written(false), "model (8.0 MB)\n");
    }

    /// Fails if the bar does not grow, or if it stays behind.
    #[test]
    fn a_terminal_gets_a_bar_too_that_grows_and_vanishes() {
        let text = written(true);
        let lines: Vec<&str> = text.split(CLEAR).collect();
        let bar = |n: usize| format!("[{}>{}] ", "=".repeat(n), " ".repeat(30 - n));
        assert_eq!(lines[0], "model (8.0 MB)\n");
        assert!(lines[1].starts_with(&bar(0)), "{text}");
        assert!(lines[2].starts_with(&(bar(15) + "4.0 MB, ")), "{text}");
        assert!(lines[3].starts_with(&bar(30)), "{text}");
        assert_eq!(lines[4..], [""], "cleared");
    }

    /// A registry that says less than it sends, or nothing.
    #[test]
    fn more_than_was_promised_does_not_leave_the_bar() {
        let meter = Meter::new(Vec::new(), true);
        meter.begin("model", 0);
        meter.at(u64::MAX);
        let text = String::from_utf8(meter.out.into_inner()).expect("text");
        assert!(text.contains(&format!("[{}>]", "=".repeat(30))), "{text}");
    }

    #[test]
    fn it_is_cancelled_when_the_caller_says_so() {
        let meter = Meter::new(Vec::new(), false);
        assert!(!meter.is_cancelled());
        assert!(meter.until(|| true).is_cancelled());
    }
}
