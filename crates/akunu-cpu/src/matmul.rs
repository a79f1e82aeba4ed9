//! The matrix products, and the weights as they read them.

use akunu_kernels::{Dispatch, KernelId};

use crate::call::{Kernel, Place};
use crate::isa::Isa;
use crate::pool::ThreadPool;

/// Weights that were laid out for the products.
#[derive(Default)]
pub(crate) struct Panels;

/// The fast form of a product, where there is one.
pub(crate) fn select(_: KernelId, _: Isa) -> Option<Kernel> {
    None
}

/// Lays out the weights of a dispatch, if it is a product that wants them in another order.
/// `places` is the memory of each binding.
pub(crate) fn prepare(
    _panels: &mut Panels,
    _dispatch: &Dispatch,
    _places: &[Place],
    _isa: Isa,
    _pool: &mut ThreadPool,
) {
}

impl Panels {
    /// Forgets what was made of a buffer that no longer exists.
    pub fn release(&mut self, _buffer: u32) {}
}
