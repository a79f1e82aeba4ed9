//! What a template may cost.
//!
//! `minijinja` counts instructions, but one instruction can do any amount of work: double a string,
//! compare two lists of lists, format a value that contains itself a million times over. So everything
//! that grows with the size of values pays for that size out of one budget.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Instructions that a render may execute. A conversation of a thousand messages takes about 200,000.
pub(super) const FUEL: u64 = 2_000_000;

/// Macros, blocks and loops that may be inside of each other.
pub(super) const RECURSION: usize = 64;

/// Bytes of text that may be made, and elements that may be looked at, in one render.
const BUDGET: u64 = 64 << 20;

/// Lists and maps that may be inside of each other.
const MAX_DEPTH: usize = 48;

/// Elements that one list or map may hold, counting those inside of its elements.
pub(super) const MAX_ELEMENTS: usize = 200_000;

/// What is left for one render.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            left: AtomicU64::new(BUDGET),
        }
    }
}

impl Budget {
    /// Pays for `cost` bytes or elements.
    pub fn pay(&self, cost: usize) -> Result<(), Error> {
        let cost = cost as u64;
        let left = self.left.load(Ordering::Relaxed);
        let rest = left.checked_sub(cost).ok_or_else(|| {
            refused("the template makes too much text or looks at too many values")
        })?;
        self.left.store(rest, Ordering::Relaxed);
        Ok(())
    }

    /// Pays for looking at a value's own characters or elements, not at those inside of them.
    pub fn pay_shallow(&self, value: &Value) -> Result<(), Error> {
        self.pay(
            1 + value
                .as_str()
                .map_or_else(|| value.len().unwrap_or(0), |text| text.len() / 16),
        )
    }

    /// Pays for looking at everything in a value several times.
    pub fn pay_rounds(&self, value: &Value, rounds: usize) -> Result<(), Error> {
        if let Some(text) = value.as_str() {
            return self.pay(text.len());
        }
        let before = self.left.load(Ordering::Relaxed);
        self.pay_deep(value)?;
        let once = before.saturating_sub(self.left.load(Ordering::Relaxed)) as usize;
        self.pay(once.saturating_mul(rounds.saturating_sub(1)))
    }

    /// Pays for looking at everything in a value, and refuses values that are too deep or too large.
    pub fn pay_deep(&self, value: &Value) -> Result<(), Error> {
        let mut elements = 0;
        let counted = count(value, MAX_DEPTH, &mut elements);
        self.pay(elements)?;
        counted
    }
}

fn count(value: &Value, depth_left: usize, elements: &mut usize) -> Result<(), Error> {
    *elements += 1;
    if *elements > MAX_ELEMENTS {
        return Err(refused(
            "the template makes a list or map that is too large",
        ));
    }
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(());
    }
    let depth_left = depth_left
        .checked_sub(1)
        .ok_or_else(|| refused("the template puts too many lists or maps into each other"))?;
    for item in value.try_iter()? {
        if kind == ValueKind::Map {
            count(&value.get_item(&item)?, depth_left, elements)?;
        }
        count(&item, depth_left, elements)?;
    }
    Ok(())
}

/// Text that is paid for as it is written.
pub(super) struct PaidText<'b> {
    budget: &'b Budget,
    pub text: String,
}

impl<'b> PaidText<'b> {
    pub fn new(budget: &'b Budget) -> PaidText<'b> {
        PaidText {
            budget,
            text: String::new(),
        }
    }
}

impl fmt::Write for PaidText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.budget.pay(text.len()).map_err(|_| fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

/// An error in our words.
pub(super) fn refused(words: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, words)
}
