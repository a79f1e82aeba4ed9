//! Denormal numbers as zeros, which is how a GPU may treat them.

use std::arch::asm;

/// While it lives, denormal results of this host thread are zeros, and denormal operands count as zeros. Between two kernels
/// the executor computes with whole numbers only, so that nothing but kernels notices.
pub struct Flushed {
    before: u64,
}

impl Flushed {
    /// Begins to flush.
    pub fn begin() -> Flushed {
        let before = control();
        set_control(before | FLUSH);
        Flushed { before }
    }
}

impl Drop for Flushed {
    fn drop(&mut self) {
        set_control(self.before);
    }
}

/// MXCSR: results (bit 15) and operands (bit 6).
#[cfg(target_arch = "x86_64")]
const FLUSH: u64 = 1 << 15 | 1 << 6;

#[cfg(target_arch = "x86_64")]
fn control() -> u64 {
    let mut word = 0u32;
    // SAFETY: stores the control word in a variable of its size.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
    word.into()
}

#[cfg(target_arch = "x86_64")]
fn set_control(word: u64) {
    let word = word as u32;
    // SAFETY: loads a control word that `control` has read, with at most two bits more, none of which unmasks an exception.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, readonly)) };
}

/// FPCR: single and double precision (bit 24). Halves keep theirs, as on Apple's GPUs.
#[cfg(target_arch = "aarch64")]
const FLUSH: u64 = 1 << 24;

#[cfg(target_arch = "aarch64")]
fn control() -> u64 {
    let word: u64;
    // SAFETY: reads a register that every program may read.
    unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack, nomem)) };
    word
}

#[cfg(target_arch = "aarch64")]
fn set_control(word: u64) {
    // SAFETY: writes what `control` has read, with at most one bit more, which enables no exception.
    unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, nomem)) };
}
