//! The threadgroup memory of one threadgroup.
//!
//! Variables and bindings lie one behind the other with a guard between them. Everything is filled with
//! 0xff bytes (a NaN in every float format) before a threadgroup starts, so that a read of memory that
//! nobody wrote shows in the result.

use super::abi::MAX_BINDINGS;
use std::ffi::c_void;

/// What Apple GPUs have.
pub const LIMIT: usize = 32 * 1024;
/// What an NVIDIA GPU of compute capability 9.0 gives a kernel that asks for it. (The kernels for others are held to less by a
/// test of the kernel table.)
pub const NVIDIA_LIMIT: usize = 227 * 1024;

const GUARD: usize = 64;
const POISON: u8 = 0xff;
const ALIGN: usize = 16;

/// Threadgroup memory and what lies in it.
pub struct Arena {
    memory: Vec<u128>,
    /// (id, offset, size) of each variable that a thread has reached.
    variables: Vec<(u32, usize, usize)>,
    /// (offset, size) of each binding.
    bindings: Vec<(usize, usize)>,
    /// Bytes that may be used.
    limit: usize,
    /// Bytes that count against the limit.
    used: usize,
    /// Where the next block begins.
    top: usize,
}

impl Arena {
    pub fn new() -> Self {
        Arena {
            // Room for the guards of many small variables.
            memory: vec![0; (NVIDIA_LIMIT + 32 * 1024) / size_of::<u128>()],
            variables: Vec::new(),
            bindings: Vec::new(),
            limit: LIMIT,
            used: 0,
            top: 0,
        }
    }

    /// Forgets the last threadgroup and lays out the bindings of the next.
    pub fn reset(&mut self, sizes: &[(u32, usize)], limit: usize) -> [*mut c_void; MAX_BINDINGS] {
        self.limit = limit;
        let base = self.memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the range is the vector's own memory.
        unsafe { base.write_bytes(POISON, self.memory.len() * size_of::<u128>()) };
        self.variables.clear();
        self.bindings.clear();
        self.used = 0;
        self.top = GUARD;
        let mut pointers = [std::ptr::null_mut(); MAX_BINDINGS];
        for &(index, size) in sizes {
            if let Some(offset) = self.place(size, ALIGN) {
                self.bindings.push((offset, size));
                pointers[index as usize] = self.at(offset);
            }
        }
        pointers
    }

    /// The address of a variable; `None` when the limit is passed.
    pub fn variable(&mut self, id: u32, size: usize, align: usize) -> Option<*mut c_void> {
        if let Some(&(_, offset, _)) = self.variables.iter().find(|(known, ..)| *known == id) {
            return Some(self.at(offset));
        }
        let offset = self.place(size, align)?;
        self.variables.push((id, offset, size));
        Some(self.at(offset))
    }

    fn place(&mut self, size: usize, align: usize) -> Option<usize> {
        let offset = self.top.next_multiple_of(align.max(ALIGN));
        self.used = self.used.checked_add(size)?;
        self.top = offset.checked_add(size)?.checked_add(GUARD)?;
        let fits = self.used <= self.limit && self.top <= self.memory.len() * size_of::<u128>();
        fits.then_some(offset)
    }

    fn at(&mut self, offset: usize) -> *mut c_void {
        // SAFETY: `place` keeps offsets inside the vector's memory.
        unsafe { self.memory.as_mut_ptr().cast::<u8>().add(offset).cast() }
    }

    /// From which address to which its memory lies.
    pub fn addresses(&self) -> (usize, usize) {
        let start = self.memory.as_ptr() as usize;
        (start, start + size_of_val(&*self.memory))
    }

    /// Bytes in use, guards not counted; above the limit when a variable found no room.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether some guard between the blocks was written.
    pub fn guards_broken(&self) -> bool {
        // SAFETY: the range is the vector's own memory, initialised, read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                self.memory.as_ptr().cast::<u8>(),
                self.memory.len() * size_of::<u128>(),
            )
        };
        let mut blocks: Vec<(usize, usize)> = self.bindings.clone();
        blocks.extend(
            self.variables
                .iter()
                .map(|&(_, offset, size)| (offset, size)),
        );
        blocks.sort_unstable();
        let mut start = 0;
        for (offset, size) in blocks {
            if bytes[start..offset].iter().any(|&byte| byte != POISON) {
                return true;
            }
            start = offset + size;
        }
        let end = (start + GUARD).min(bytes.len());
        bytes[start..end].iter().any(|&byte| byte != POISON)
    }
}
