//! The kernel table: one line for each kernel, or for a kernel in all weight formats.
//!
//! A [`KernelRow`] and the words that it is made of know no kernel; [`KernelId`] is the list of all of them.
//! Every kernel is chosen by some lowering: `tests/it/chosen.rs` compares the two.

mod args;
mod binding;
mod buffers;
mod family;
mod kernels;
mod launch;
mod row;

pub use self::args::Args;
pub use self::binding::{Access, Binding, Element};
pub use self::buffers::{
    BufferElement, BufferSet, Extent, Pool, Weight, binding, bytes_of, layout_of, numbered,
};
pub(crate) use self::buffers::{access, buffers, slice};
pub use self::family::Family;
pub use self::kernels::{KernelId, weight_formats};
pub use self::launch::Launch;
pub(crate) use self::launch::usual_threads;
pub use self::row::KernelRow;
