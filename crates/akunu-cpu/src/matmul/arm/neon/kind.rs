//! The kinds of quantised cells, so that each loop over cells is compiled for each kind.

use super::cell::{
    Grouped, Halves, HalvesTable, HalvesWithMin, Layout, Plain, PlainTable, PowerTable,
    SignedTable, WithMin,
};
use crate::panels::format::{Quant, Scales, Table};

/// What is compiled for each kind of cell that a weight format has.
pub trait ForCells {
    /// What it gives.
    type Out;

    /// The form for one kind.
    ///
    /// # Safety
    /// That of the implementation.
    unsafe fn run<S: Layout, const BITS: u32>(self, table: Table) -> Self::Out;
}

/// Runs the form for the cells of a weight format: the one table of their kinds.
///
/// # Safety
/// That of the implementation.
pub unsafe fn for_cells<F: ForCells>(quant: Quant, form: F) -> F::Out {
    let table = quant.table;
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Plain) if table.is_some() => form.run::<PlainTable, 8>(table),
            (4, Scales::Power) => form.run::<PowerTable, 8>(table),
            (4, Scales::Signed) => form.run::<SignedTable, 8>(table),
            (4, Scales::Plain) => form.run::<Plain, 4>(table),
            (4, Scales::WithMin) => form.run::<WithMin, 4>(table),
            (4, Scales::Grouped) => form.run::<Grouped, 4>(table),
            (4, Scales::Halves) if table.is_some() => form.run::<HalvesTable, 8>(table),
            (4, Scales::Halves) => form.run::<Halves, 4>(table),
            (4, Scales::HalvesWithMin) => form.run::<HalvesWithMin, 4>(table),
            (5, Scales::Plain) => form.run::<Plain, 5>(table),
            (5, Scales::WithMin) => form.run::<WithMin, 5>(table),
            (5, Scales::Grouped) => form.run::<Grouped, 5>(table),
            (6, Scales::WithMin) => form.run::<WithMin, 6>(table),
            (6, Scales::Halves) => form.run::<Halves, 6>(table),
            (8, Scales::Plain) => form.run::<Plain, 8>(table),
            (8, Scales::WithMin) => form.run::<WithMin, 8>(table),
            other => unreachable!("Quant::of gives no cells of {other:?}"),
        }
    }
}
