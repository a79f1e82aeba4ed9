//! What a kernel is given: its params and constants, and the place of each binding.

use akunu_kernels::KernelId;
use akunu_kernels::table::{Args, BufferSet};
use akunu_program::Slice;
use akunu_types::SharedStruct;

use crate::isa::Level;
use crate::panels::Panels;
use crate::part::Part;
use crate::place::Place;

/// A kernel of this device. Every thread calls it for every dispatch and does its part.
pub(crate) type Kernel = fn(&Call, &mut Part);

/// Most bindings of a kernel of the table.
pub(crate) const MAX_BINDINGS: usize = 17;

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
    pub level: Level,
    /// Whether many vectors are multiplied as exactly as a few.
    pub exact: bool,
    /// Weights that were laid out for the products.
    pub panels: &'a Panels,
}

impl<'a> Call<'a> {
    /// The params as their struct.
    pub fn params<P: SharedStruct>(&self) -> P {
        self.args.params()
    }

    /// The places of all buffers, which the kernel declares.
    pub fn buffers<B: BufferSet<Item = Place<'a>>>(&self) -> B {
        debug_assert_eq!(
            self.kernel.row().bindings,
            B::BINDINGS,
            "the buffers of another kernel"
        );
        B::of(self.places)
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
