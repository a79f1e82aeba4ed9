//! Reading the quantised cells of a panel with NEON, four rows at a time: numbers as signed bytes, scales as floats.

use std::arch::aarch64::*;
use std::arch::asm;
use std::marker::PhantomData;

use crate::panels::format::{Quant, ROWS, Scales, Table};

/// Rows of a vector.
pub const LANES: usize = 4;

/// A [`Scales`] that is known when the loop is compiled.
pub trait Layout {
    const SCALES: Scales;
    /// Whether cells have codes of 4 bits that are places in a table of bytes.
    const HAS_TABLE: bool = false;
}

pub struct Plain;
pub struct PlainTable;
pub struct PowerTable;
pub struct SignedTable;
pub struct HalvesTable;
pub struct WithMin;
pub struct Grouped;
pub struct Halves;
pub struct HalvesWithMin;

impl Layout for Plain {
    const SCALES: Scales = Scales::Plain;
}
impl Layout for PlainTable {
    const SCALES: Scales = Scales::Plain;
    const HAS_TABLE: bool = true;
}
impl Layout for PowerTable {
    const SCALES: Scales = Scales::Power;
    const HAS_TABLE: bool = true;
}
impl Layout for SignedTable {
    const SCALES: Scales = Scales::Signed;
    const HAS_TABLE: bool = true;
}
impl Layout for HalvesTable {
    const SCALES: Scales = Scales::Halves;
    const HAS_TABLE: bool = true;
}
impl Layout for WithMin {
    const SCALES: Scales = Scales::WithMin;
}
impl Layout for Grouped {
    const SCALES: Scales = Scales::Grouped;
}
impl Layout for Halves {
    const SCALES: Scales = Scales::Halves;
}
impl Layout for HalvesWithMin {
    const SCALES: Scales = Scales::HalvesWithMin;
}

/// The scales and the minima of four rows in both halves of a cell.
#[derive(Clone, Copy)]
pub struct CellScales {
    pub scales: [float32x4_t; 2],
    pub mins: [float32x4_t; 2],
}

/// Where a cell and the scales of its super-block are. Its numbers have `BITS` bits when they are multiplied.
pub struct Cell<S, const BITS: u32> {
    numbers: *const u8,
    of_super: *const u8,
    table: Table,
    layout: PhantomData<S>,
}

impl<S: Layout, const BITS: u32> Cell<S, BITS> {
    const QUANT: Quant = Quant {
        bits: if S::HAS_TABLE { 4 } else { BITS },
        offset: 0,
        table: None,
        scales: S::SCALES,
    };

    /// Cell `c` of the panel.
    #[inline(always)]
    pub fn at(panel: *const u8, c: usize, table: Table) -> Self {
        Cell {
            numbers: panel.wrapping_add(Self::QUANT.cell_at(c)),
            of_super: panel.wrapping_add(Self::QUANT.super_at(c)),
            table,
            layout: PhantomData,
        }
    }

    /// The numbers of rows 4 `four` to 4 `four` + 3: byte 4 n + i of vector j is column 4 j + i of the n-th of them.
    /// Those of 8 bits are less by 128.
    ///
    /// # Safety
    /// `reach`: the panel has the cell.
    #[inline(always)]
    pub unsafe fn numbers(&self, four: usize) -> [int8x16_t; 8] {
        let stored_bits = Self::QUANT.bits;
        // SAFETY: `reach`: a cell of 8 bits has 8 times 64 bytes; a smaller one 4, and 64 for each bit beyond the fourth.
        unsafe {
            let mut numbers = [vdupq_n_s8(0); 8];
            for j in 0..if stored_bits == 8 { 8 } else { 4 } {
                let bytes = vld1q_u8(self.numbers.add(64 * j + 16 * four));
                if stored_bits == 8 {
                    numbers[j] = vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(128)));
                } else {
                    numbers[j] = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
                    numbers[4 + j] = vreinterpretq_s8_u8(vshrq_n_u8::<4>(bytes));
                }
            }
            if let Some(table) = self.table.filter(|_| S::HAS_TABLE) {
                let table = vld1q_s8(table.of_codes.as_ptr());
                return numbers.map(|codes| vqtbl1q_s8(table, vreinterpretq_u8_s8(codes)));
            }
            for (j, numbers) in numbers.iter_mut().enumerate() {
                let vector = |at: usize| vld1q_u8(self.numbers.add(64 * at + 16 * four));
                let high = match BITS {
                    5 => shifted(vector(4), 4 - j as i8, 0x10),
                    6 => shifted(vector(4 + j / 4), 4 - 2 * (j % 4) as i8, 0x30),
                    _ => continue,
                };
                *numbers = vorrq_s8(*numbers, vreinterpretq_s8_u8(high));
            }
            numbers
        }
    }

    /// The scale times what a number of a table counts.
    #[inline(always)]
    unsafe fn counted(&self, scale: float32x4_t) -> float32x4_t {
        match self.table.filter(|_| S::HAS_TABLE) {
            // SAFETY: NEON is there wherever the other functions of this type may be called.
            Some(table) => unsafe { vmulq_n_f32(scale, table.unit()) },
            None => scale,
        }
    }

    /// The scales and the minima of these rows.
    ///
    /// # Safety
    /// `reach`: the panel has the cell.
    #[inline(always)]
    pub unsafe fn scales(&self, four: usize) -> CellScales {
        // SAFETY: `reach`: the scales follow the numbers; those of the super-block stand before its first cell.
        let (scales, mins) = unsafe {
            let none = [vdupq_n_f32(0.0); 2];
            // Where these rows stand in an array of f16, and in one of bytes.
            let of_cell = self.numbers.add(Self::QUANT.cell_bytes());
            let (f16s, bytes) = (of_cell.add(2 * LANES * four), of_cell.add(LANES * four));
            let of_super = self.of_super.add(2 * LANES * four);
            match S::SCALES {
                Scales::Plain => ([halves(f16s); 2], none),
                Scales::Power => ([halves_of_powers(unsigned(bytes)); 2], none),
                Scales::Signed => (
                    [vmulq_f32(signed(bytes), self.counted(halves(of_super))); 2],
                    none,
                ),
                Scales::WithMin => ([halves(f16s); 2], [halves(f16s.add(2 * ROWS)); 2]),
                Scales::Grouped => {
                    let (scale, min) = (halves(of_super), halves(of_super.add(2 * ROWS)));
                    let scale = times(unsigned(bytes), scale);
                    let min = times(unsigned(bytes.add(ROWS)), vnegq_f32(min));
                    ([scale; 2], [min; 2])
                }
                Scales::Halves => {
                    let scale = self.counted(halves(of_super));
                    let low = vmulq_f32(signed(bytes), scale);
                    ([low, vmulq_f32(signed(bytes.add(ROWS)), scale)], none)
                }
                Scales::HalvesWithMin => {
                    let (scale, min) = (halves(of_super), halves(of_super.add(2 * ROWS)));
                    let min = vnegq_f32(min);
                    let (a, b) = (unsigned(bytes), unsigned(bytes.add(ROWS)));
                    let four_bits = vdupq_n_u32(15);
                    let low = |both| times(vandq_u32(both, four_bits), scale);
                    let high = |both| times(vshrq_n_u32::<4>(both), min);
                    ([low(a), low(b)], [high(a), high(b)])
                }
            }
        };
        CellScales { scales, mins }
    }
}

/// Bytes shifted to the left, or by less than zero to the right, and masked.
#[inline]
#[target_feature(enable = "neon")]
fn shifted(bytes: uint8x16_t, left: i8, mask: u8) -> uint8x16_t {
    vandq_u8(vshlq_u8(bytes, vdupq_n_s8(left)), vdupq_n_u8(mask))
}

/// Four f16 as f32.
///
/// # Safety
/// `reach`: `at` points at 8 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn halves(at: *const u8) -> float32x4_t {
    // SAFETY: passes on `reach`.
    let halves = unsafe { vld1_u8(at) };
    let floats: float32x4_t;
    // SAFETY: the instruction converts four halves and touches nothing else.
    unsafe {
        asm!("fcvtl {to:v}.4s, {from:v}.4h", to = out(vreg) floats, from = in(vreg) halves,
             options(pure, nomem, nostack));
    }
    floats
}

/// `2^(e - 128)`, as [`E8M0::half`](akunu_types::E8M0::half): below 2^-126 a single bit of the fraction.
#[inline]
#[target_feature(enable = "neon")]
fn halves_of_powers(e: uint32x4_t) -> float32x4_t {
    let e = vreinterpretq_s32_u32(e);
    let normal = vsubq_s32(vshlq_n_s32::<23>(e), vdupq_n_s32(1 << 23));
    let bit = vshlq_n_s32::<21>(vaddq_s32(e, vdupq_n_s32(1)));
    vreinterpretq_f32_s32(vmaxq_s32(normal, bit))
}

/// Four unsigned bytes.
///
/// # Safety
/// `reach`: `at` points at 4 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn unsigned(at: *const u8) -> uint32x4_t {
    // SAFETY: passes on `reach`.
    let word = unsafe { at.cast::<u32>().read_unaligned() };
    let wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)));
    vmovl_u16(vget_low_u16(wide))
}

/// The product as floats.
#[inline]
#[target_feature(enable = "neon")]
fn times(number: uint32x4_t, factor: float32x4_t) -> float32x4_t {
    vmulq_f32(vcvtq_f32_u32(number), factor)
}

/// Four signed bytes as f32.
///
/// # Safety
/// `reach`: `at` points at 4 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn signed(at: *const u8) -> float32x4_t {
    // SAFETY: passes on `reach`.
    let word = unsafe { at.cast::<u32>().read_unaligned() };
    let wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(word)));
    vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)))
}
