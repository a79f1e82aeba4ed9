//! The kinds of quantised cells as const parameters, so that each loop over cells is compiled for each kind.

use crate::panels::format::{Quant, Scales, Table};

/// [`Scales::Plain`] as a const parameter.
pub const PLAIN: u8 = 0;
/// [`Scales::WithMin`] as a const parameter.
pub const WITH_MIN: u8 = 1;
/// [`Scales::Grouped`] as a const parameter.
pub const GROUPED: u8 = 2;
/// [`Scales::Halves`] as a const parameter.
pub const HALVES: u8 = 3;
/// [`Scales::HalvesWithMin`] as a const parameter.
pub const HALVES_WITH_MIN: u8 = 4;

/// [`Scales::Plain`], of codes of 4 bits that are places in a table, as a const parameter.
pub const TABLE: u8 = 5;
/// [`Scales::Power`], of codes in a table, as a const parameter.
pub const TABLE_POWER: u8 = 6;
/// [`Scales::Signed`], of codes in a table, as a const parameter.
pub const TABLE_SIGNED: u8 = 7;
/// [`Scales::Halves`], of codes in a table, as a const parameter.
pub const TABLE_HALVES: u8 = 8;

/// Bytes ahead of the present cell that are fetched.
pub const AHEAD: usize = 8192;

/// What is compiled for each kind of cell that a weight format has.
pub trait ForCells {
    /// What it gives.
    type Out;

    /// The form for one kind, with the table of a format that has one.
    ///
    /// # Safety
    /// That of the implementation.
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) -> Self::Out;
}

/// Runs the form for the cells of a weight format: the one table of their kinds.
///
/// # Safety
/// That of the implementation.
#[inline]
pub unsafe fn for_cells<F: ForCells>(quant: Quant, form: F) -> F::Out {
    let table = quant.table;
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Plain) if table.is_some() => form.run::<4, TABLE>(table),
            (4, Scales::Power) => form.run::<4, TABLE_POWER>(table),
            (4, Scales::Signed) => form.run::<4, TABLE_SIGNED>(table),
            (4, Scales::Plain) => form.run::<4, PLAIN>(table),
            (4, Scales::WithMin) => form.run::<4, WITH_MIN>(table),
            (4, Scales::Grouped) => form.run::<4, GROUPED>(table),
            (4, Scales::Halves) if table.is_some() => form.run::<4, TABLE_HALVES>(table),
            (4, Scales::Halves) => form.run::<4, HALVES>(table),
            (4, Scales::HalvesWithMin) => form.run::<4, HALVES_WITH_MIN>(table),
            (5, Scales::Plain) => form.run::<5, PLAIN>(table),
            (5, Scales::WithMin) => form.run::<5, WITH_MIN>(table),
            (5, Scales::Grouped) => form.run::<5, GROUPED>(table),
            (6, Scales::WithMin) => form.run::<6, WITH_MIN>(table),
            (6, Scales::Halves) => form.run::<6, HALVES>(table),
            (8, Scales::Plain) => form.run::<8, PLAIN>(table),
            (8, Scales::WithMin) => form.run::<8, WITH_MIN>(table),
            other => unreachable!("Quant::of gives no cells of {other:?}"),
        }
    }
}

/// Whether the codes of such cells are places in a table.
pub const fn has_table(scales: u8) -> bool {
    matches!(scales, TABLE | TABLE_POWER | TABLE_SIGNED | TABLE_HALVES)
}

/// Whether such cells have a scale for each half of the columns: a small integer, so that both halves are still summed
/// as integers.
pub const fn has_halves(scales: u8) -> bool {
    matches!(scales, HALVES | HALVES_WITH_MIN | TABLE_HALVES)
}

/// Whether such cells have one minimum for all columns.
pub const fn has_min(scales: u8) -> bool {
    matches!(scales, WITH_MIN | GROUPED)
}

/// The layout of such cells; the offset and the table are left out.
pub const fn layout(bits: u32, scales: u8) -> Quant {
    let scales = match scales {
        PLAIN | TABLE => Scales::Plain,
        TABLE_POWER => Scales::Power,
        TABLE_SIGNED => Scales::Signed,
        WITH_MIN => Scales::WithMin,
        GROUPED => Scales::Grouped,
        HALVES | TABLE_HALVES => Scales::Halves,
        _ => Scales::HalvesWithMin,
    };
    Quant {
        bits,
        offset: 0,
        table: None,
        scales,
    }
}
