//! Weights as the products read them, and memory that all threads share.
//!
//! A weight matrix is cut into panels of sixteen rows ([`format`]), which are filled from a file ([`pack`]) and of which
//! one row can be read back ([`row`]). Who multiplies them is no business of this folder.

pub(crate) mod format;
pub(crate) mod matrix;
pub(crate) mod pack;
mod row;

use akunu_program::Slice;

use self::matrix::PackedMatrix;
use crate::matmul::in_file::InFile;
use crate::memory::Pages;

/// Weights that were laid out for the products, ordered by their place, and memory that all threads share in a
/// dispatch: the tiles of x in a product, the sums of runs of keys in attention.
#[derive(Default)]
pub(crate) struct Panels {
    pub(crate) matrices: Vec<(Key, PackedMatrix)>,
    pub(crate) tiles: Option<Pages>,
    pub(crate) sums: Option<Pages>,
    /// Experts that have no panels, because they do not fit.
    pub(crate) in_file: Option<InFile>,
}

/// How weights are ordered: their buffer, their place, and the expert of a stack of matrices.
pub(crate) type Key = (u32, usize, u32);

/// The key of a weight, or of an expert's matrix of a stack.
pub(crate) fn key(weight: Slice, expert: u32) -> Key {
    (weight.buffer.id, weight.offset, expert)
}

impl Panels {
    /// The panels of the weight at a place.
    pub fn find(&self, weight: Slice) -> Option<&PackedMatrix> {
        self.find_expert(weight, 0)
    }

    /// The panels of an expert's matrix of the stack at a place.
    pub fn find_expert(&self, weight: Slice, expert: u32) -> Option<&PackedMatrix> {
        let at = self
            .matrices
            .binary_search_by_key(&key(weight, expert), |(key, _)| *key);
        at.ok().map(|at| &self.matrices[at].1)
    }

    /// Memory for `bytes` bytes of tiles, if as many were prepared.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub fn tiles(&self, bytes: usize) -> Option<*mut u8> {
        let tiles = self.tiles.as_ref()?;
        (bytes <= tiles.bytes().len()).then(|| tiles.pointer())
    }

    /// Memory for `n` sums, if as many were prepared.
    pub fn sums(&self, n: usize) -> Option<*mut f32> {
        let sums = self.sums.as_ref()?;
        (n * size_of::<f32>() <= sums.bytes().len()).then(|| sums.pointer().cast())
    }

    /// Forgets what was made of a buffer that no longer exists.
    pub fn release(&mut self, buffer: u32) {
        self.matrices.retain(|((of, ..), _)| *of != buffer);
    }
}
