//! The buffers of a kernel.

use akunu_types::params::{Row, SamplingRule};

/// The element type of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float`.
    F32,
    /// `half`.
    F16,
    /// `uint`.
    U32,
    /// `ushort`.
    U16,
    /// Weights in the kernel's format: blocks, or plain numbers.
    Weight,
    /// [`akunu_types::params::Row`].
    Row,
    /// [`akunu_types::params::SamplingRule`].
    Rule,
}

impl Element {
    /// Size in bytes; of weights, that of the words they are made of.
    pub const fn size(self) -> usize {
        match self {
            Element::F32 | Element::U32 | Element::Weight => 4,
            Element::F16 | Element::U16 => 2,
            Element::Row => size_of::<Row>(),
            Element::Rule => size_of::<SamplingRule>(),
        }
    }

    /// What a binding's offset is a multiple of, in bytes. Kernels read ids one by one, everything else in vectors.
    pub const fn alignment(self) -> usize {
        match self {
            Element::F32 | Element::F16 | Element::Weight | Element::Row | Element::Rule => 16,
            Element::U32 => 4,
            Element::U16 => 2,
        }
    }
}

/// What a kernel does with a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads; `const` in MSL.
    Read,
    /// Writes every element that it requires, reads none.
    Write,
    /// Reads and writes, or leaves some elements as they were.
    ReadWrite,
}

impl Access {
    /// Whether the kernel changes the buffer.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::Read)
    }
}

/// One buffer of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Index, `[[buffer(index)]]`.
    pub index: u8,
    /// Name in MSL.
    pub name: &'static str,
    /// Element type.
    pub element: Element,
    /// Read or write.
    pub access: Access,
}
