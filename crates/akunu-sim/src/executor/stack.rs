//! The stacks of GPU threads.
//!
//! A thousand stacks that all begin at the same offset of a page would compete for the same few cache
//! lines. Each therefore begins a little lower than the last.

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Bytes of a thread's stack: its private arrays and spilled registers.
const BYTES: usize = 128 * 1024;
/// Stacks begin at one of this many offsets …
const COLOURS: usize = 64;
/// … this many bytes apart: a few cache lines, which is what a waiting thread keeps warm.
const STEP: usize = 448;

/// A stack that begins below its memory's top.
pub struct ThreadStack {
    memory: DefaultStack,
    base: StackPointer,
}

impl ThreadStack {
    /// The `number`th stack of a worker.
    pub fn new(number: usize) -> std::io::Result<ThreadStack> {
        let memory = DefaultStack::new(BYTES)?;
        let top = memory.base();
        let base = StackPointer::new(top.get() - number % COLOURS * STEP).unwrap_or(top);
        Ok(ThreadStack { memory, base })
    }
}

// SAFETY: the memory is a valid stack, and `base` lies inside it, a multiple of 16 below its top, so that
// more than a page is left.
unsafe impl Stack for ThreadStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }
}
