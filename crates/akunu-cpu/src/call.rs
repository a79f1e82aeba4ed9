//! What a kernel is given: its params and constants, and the place of each binding.

use std::marker::PhantomData;

use akunu_kernels::KernelId;
use akunu_kernels::plan::Slice;
use akunu_kernels::table::Args;
use akunu_types::SharedStruct;
use bytemuck::{AnyBitPattern, NoUninit};

use crate::isa::Isa;
use crate::matmul::Panels;
use crate::part::Part;

/// A kernel of this device. Every thread calls it for every dispatch and does its part.
pub(crate) type Kernel = fn(&Call, &mut Part);

/// Most bindings of a kernel of the table.
pub(crate) const MAX_BINDINGS: usize = 10;

/// One dispatch at one position.
pub(crate) struct Call<'a> {
    /// Which kernel.
    pub kernel: KernelId,
    /// Weight format, patched params, constants.
    pub args: Args<'a>,
    /// The buffer and offset of each binding, in the order of the row's.
    pub slices: &'a [Slice],
    /// The memory of each binding, from the offset to the end of its buffer.
    pub places: &'a [Place<'a>],
    /// The instructions that may be used.
    pub isa: Isa,
    /// Weights that were laid out for the products.
    pub panels: &'a Panels,
}

impl<'a> Call<'a> {
    /// The params as their struct.
    pub fn params<P: SharedStruct>(&self) -> P {
        self.args.params()
    }

    /// The places of all bindings, in the order of the row's.
    pub fn bindings<const N: usize>(&self) -> [Place<'a>; N] {
        match self.places.try_into() {
            Ok(places) => places,
            Err(_) => unreachable!("the plan check compares the number of bindings"),
        }
    }
}

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
    /// Until the next barrier no part writes these elements.
    pub unsafe fn piece<T: AnyBitPattern>(self, start: usize, n: usize) -> &'a [T] {
        let first = self.elements::<T>(start.saturating_add(n));
        // SAFETY: as many elements are there and aligned; by the caller's promise nobody writes them.
        unsafe { std::slice::from_raw_parts(first.add(start), n) }
    }

    /// `n` elements from element `start` on of a binding that the kernel writes.
    ///
    /// # Safety
    /// Until the next barrier no other part reads or writes these elements, and this one not by other
    /// means.
    pub unsafe fn write<T: AnyBitPattern + NoUninit>(self, start: usize, n: usize) -> &'a mut [T] {
        let first = self.elements::<T>(start.saturating_add(n));
        // SAFETY: as many elements are there and aligned; by the caller's promise nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(first.add(start), n) }
    }

    /// The first of `n` elements of a binding that the kernel writes, for kernels that write blocks.
    #[cfg(target_arch = "x86_64")]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A binding that has no place would not be there for the kernel.
    #[test]
    fn every_binding_of_every_kernel_has_a_place() {
        let counts = KernelId::all()
            .into_iter()
            .map(|kernel| kernel.row().bindings.len());
        assert_eq!(counts.max(), Some(MAX_BINDINGS));
    }
}
