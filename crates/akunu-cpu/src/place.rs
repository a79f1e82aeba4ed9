//! Memory that a kernel is given.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit};

/// Memory of a binding: from its offset to the end of its buffer, for as long as the buffers are borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    first: *mut u8,
    len: usize,
    buffer: PhantomData<&'a ()>,
}

impl<'a> Place<'a> {
    /// `len` bytes from `first` on, which are there as long as `'a` lasts.
    pub fn new(first: *mut u8, len: usize) -> Place<'a> {
        Place {
            first,
            len,
            buffer: PhantomData,
        }
    }

    /// The first `n` elements of a binding that the kernel only reads.
    pub fn read<T: AnyBitPattern>(self, n: usize) -> &'a [T] {
        let first = self.elements::<T>(n);
        // SAFETY: as many elements are there, aligned, and of a type that any bits are valid for. While
        // the kernel runs, no other dispatch writes to them (there would be a barrier between), nor
        // does this one (the plan check refuses a written binding that overlaps another).
        unsafe { std::slice::from_raw_parts(first, n) }
    }

    /// `n` elements from element `start` on of a binding that the kernel writes elsewhere.
    ///
    /// # Safety
    /// `own`: until the next barrier no part writes these elements.
    pub unsafe fn piece<T: AnyBitPattern>(self, start: usize, n: usize) -> &'a [T] {
        let first = self.elements::<T>(start.saturating_add(n));
        // SAFETY: as many elements are there and aligned; passes on `own`: nobody writes them.
        unsafe { std::slice::from_raw_parts(first.add(start), n) }
    }

    /// `n` elements from element `start` on of a binding that the kernel writes.
    ///
    /// # Safety
    /// `own`: until the next barrier no other part reads or writes these elements, and this one not by other means.
    pub unsafe fn write<T: AnyBitPattern + NoUninit>(self, start: usize, n: usize) -> &'a mut [T] {
        let first = self.elements::<T>(start.saturating_add(n));
        // SAFETY: as many elements are there and aligned; passes on `own`: nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(first.add(start), n) }
    }

    /// The first of `n` elements of a binding that the kernel writes, for kernels that write blocks.
    pub fn pointer<T: AnyBitPattern + NoUninit>(self, n: usize) -> *mut T {
        self.elements(n)
    }

    /// The first of `n` elements. The plan check has compared the sizes: a failure here is a kernel
    /// that touches more than its row requires.
    fn elements<T>(self, n: usize) -> *mut T {
        let bytes = n.saturating_mul(size_of::<T>());
        assert!(
            bytes <= self.len,
            "{bytes} bytes of a binding of {}",
            self.len
        );
        let first = self.first.cast::<T>();
        assert!(first.is_aligned(), "a binding is not aligned");
        first
    }
}
