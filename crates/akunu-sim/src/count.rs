//! Kernels counted: what their launches do to memory, beside the least that the shape needs.
//!
//! A counting [`Simulator`] compiles kernels so that each load and store is reported; see [`Counts`] for what is made of
//! it. Every case of the table can be counted; [`akunu_kernels::case::SIZES`] are launches of the sizes of real models, for which the figures
//! mean something.

pub use crate::executor::count::Counts;

use akunu_kernels::case::Case;
use akunu_kernels::table::KernelRow;

use crate::simulator::Simulator;
use crate::table::{self, TableError};

/// What a launch did, and the least that it had to.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// What it did.
    pub counts: Counts,
    /// The bytes that have to move between the GPU and its memory: the weights of a product once for each group of rows
    /// that the kernel takes together, and all else once.
    pub least_bytes: u64,
}

impl Counted {
    /// Bytes moved for each that has to.
    pub fn excess(&self) -> f64 {
        self.counts.bytes() as f64 / self.least_bytes.max(1) as f64
    }
}

/// Counts one case.
///
/// # Errors
/// When the kernel cannot be run.
pub fn count_case(
    simulator: &Simulator,
    row: &KernelRow,
    case: &Case,
) -> Result<Counted, TableError> {
    let args = row.args(case.params.as_bytes(), &case.constants);
    let least = row.work(&args).cost();
    Ok(Counted {
        counts: table::count(simulator, row, case)?,
        least_bytes: least.bytes_read + least.bytes_written,
    })
}
