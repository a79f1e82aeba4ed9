//! Tile instructions. A tile register holds 16 rows of 64 bytes; `tdpbf16ps` adds the product of a
//! 16 × 32 and a 32 × 16 tile of bf16 to a 16 × 16 tile of f32.
//!
//! Registers: 0 to 3 are a block of 32 × 32 sums, 4 and 5 the left factors, 6 and 7 the right ones. The compiler uses
//! none of them, so that they keep their contents from one function here to the next.

use std::arch::asm;

/// Bytes of a tile.
pub const TILE: usize = 1024;

/// All eight tiles with 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIG: Config = Config {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// The same for bytes of 32 columns: the left factors have lines of 32 bytes, the right ones eight lines.
static CONFIG_OF_BYTES: Config = Config {
    row_bytes: [64, 64, 64, 64, 32, 32, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0],
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
};

/// This thread's tiles, from here until it is dropped.
pub struct Tiles(());

impl Tiles {
    /// Configures the tile registers of this thread.
    ///
    /// # Safety
    /// `level`: AMX.
    pub unsafe fn configure() -> Tiles {
        // SAFETY: the configuration is a valid one of 64 bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
        Tiles(())
    }

    /// Configures them for [`Tiles::step_of_bytes`].
    ///
    /// # Safety
    /// That of [`Tiles::configure`].
    pub unsafe fn configure_bytes() -> Tiles {
        // SAFETY: the configuration is a valid one of 64 bytes.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG_OF_BYTES, options(nostack, readonly))
        };
        Tiles(())
    }

    /// One step of a pipeline of products of two tiles: stores at `sums` what the last step has multiplied, multiplies the factors
    /// that the last step has loaded, and loads those of the next product. So a product is stored two steps after its factors were
    /// loaded. Steps are even and odd in turn.
    ///
    /// # Safety
    /// `reach`: `a` and `b` point at a tile each, and `sums` at room for one.
    pub unsafe fn step_of_floats(
        &mut self,
        even: bool,
        (a, b): (*const u8, *const u8),
        sums: *mut u8,
    ) {
        // SAFETY: passes on `reach`.
        unsafe {
            if even {
                asm!(
                    "tileloadd tmm4, [{a} + {s}]",
                    "tileloadd tmm6, [{b} + {s}]",
                    "tilestored [{c} + {s}], tmm0",
                    "tilezero tmm1",
                    "tdpbf16ps tmm1, tmm5, tmm7",
                    a = in(reg) a, b = in(reg) b, c = in(reg) sums, s = in(reg) 64usize,
                    options(nostack)
                );
            } else {
                asm!(
                    "tileloadd tmm5, [{a} + {s}]",
                    "tileloadd tmm7, [{b} + {s}]",
                    "tilestored [{c} + {s}], tmm1",
                    "tilezero tmm0",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    a = in(reg) a, b = in(reg) b, c = in(reg) sums, s = in(reg) 64usize,
                    options(nostack)
                );
            }
        }
    }

    /// The same for the products of two digits with b, which are two tiles of integers at `sums`. A line of a has the first digit of 32
    /// columns and then the second, signed bytes; b are unsigned bytes, of which a line has four columns.
    ///
    /// # Safety
    /// `reach`: the tiles are [configured](Tiles::configure_bytes) for it. `a` points at a tile, `b` at half of one, and `sums`
    /// at room for two.
    pub unsafe fn step_of_bytes(
        &mut self,
        even: bool,
        (a, b): (*const u8, *const u8),
        sums: *mut u8,
    ) {
        // SAFETY: passes on `reach`.
        unsafe {
            if even {
                asm!(
                    "tilestored [{c} + {s}], tmm0",
                    "tilestored [{c} + {s} + 1024], tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "tdpbsud tmm2, tmm4, tmm7",
                    "tdpbsud tmm3, tmm5, tmm7",
                    "tileloadd tmm6, [{b} + {s}]",
                    "tileloadd tmm4, [{a} + {s}]",
                    "tileloadd tmm5, [{a} + {s} + 32]",
                    a = in(reg) a, b = in(reg) b, c = in(reg) sums, s = in(reg) 64usize,
                    options(nostack)
                );
            } else {
                asm!(
                    "tilestored [{c} + {s}], tmm2",
                    "tilestored [{c} + {s} + 1024], tmm3",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tdpbsud tmm0, tmm4, tmm6",
                    "tdpbsud tmm1, tmm5, tmm6",
                    "tileloadd tmm7, [{b} + {s}]",
                    "tileloadd tmm4, [{a} + {s}]",
                    "tileloadd tmm5, [{a} + {s} + 32]",
                    a = in(reg) a, b = in(reg) b, c = in(reg) sums, s = in(reg) 64usize,
                    options(nostack)
                );
            }
        }
    }

    /// Sets all sums to zero.
    pub fn zero(&mut self) {
        // SAFETY: the tiles are configured.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nostack, nomem)
            )
        };
    }

    /// Loads the sums of rows 0–15 and, when `both`, of rows 16–31.
    ///
    /// # Safety
    /// `reach`: `at` points at 16 or 32 rows of 32 floats that are `stride` bytes apart.
    pub unsafe fn load(&mut self, at: *const f32, stride: usize, both: bool) {
        // SAFETY: passes on `reach`.
        unsafe {
            asm!(
                "tileloadd tmm0, [{c} + {s}]",
                "tileloadd tmm1, [{c} + {s} + 64]",
                c = in(reg) at, s = in(reg) stride,
                options(nostack, readonly)
            );
            if both {
                asm!(
                    "tileloadd tmm2, [{c} + {s}]",
                    "tileloadd tmm3, [{c} + {s} + 64]",
                    c = in(reg) at.byte_add(16 * stride), s = in(reg) stride,
                    options(nostack, readonly)
                );
            }
        }
    }

    /// Stores the sums; the reverse of [`Tiles::load`].
    ///
    /// # Safety
    /// `reach`: that of [`Tiles::load`]. `own`: nobody else reads or writes these rows.
    pub unsafe fn store(&mut self, at: *mut f32, stride: usize, both: bool) {
        // SAFETY: passes on `reach` and `own`.
        unsafe {
            asm!(
                "tilestored [{c} + {s}], tmm0",
                "tilestored [{c} + {s} + 64], tmm1",
                c = in(reg) at, s = in(reg) stride,
                options(nostack)
            );
            if both {
                asm!(
                    "tilestored [{c} + {s}], tmm2",
                    "tilestored [{c} + {s} + 64], tmm3",
                    c = in(reg) at.byte_add(16 * stride), s = in(reg) stride,
                    options(nostack)
                );
            }
        }
    }

    /// Adds `Σ a[t] · b[t]` over `count` tiles: one row of activation tiles and two of weight tiles.
    ///
    /// # Safety
    /// `reach`: `a` and both `b` point at `count` tiles each.
    pub unsafe fn multiply_one(&mut self, a: *const u8, b: [*const u8; 2], count: usize) {
        // SAFETY: passes on `reach`.
        unsafe {
            asm!(
                "2:",
                "tileloadd tmm4, [{a} + {s}]",
                "tileloadd tmm6, [{b0} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "add {a}, 1024",
                "add {b0}, 1024",
                "add {b1}, 1024",
                "dec {n}",
                "jnz 2b",
                a = inout(reg) a => _, b0 = inout(reg) b[0] => _, b1 = inout(reg) b[1] => _,
                n = inout(reg) count.max(1) => _, s = in(reg) 64usize,
                options(nostack, readonly)
            );
        }
    }

    /// The same for two rows of activation tiles.
    ///
    /// # Safety
    /// `reach`: `a` and `b` point at `count` tiles each.
    pub unsafe fn multiply_two(&mut self, a: [*const u8; 2], b: [*const u8; 2], count: usize) {
        // SAFETY: passes on `reach`.
        unsafe {
            asm!(
                "2:",
                "tileloadd tmm6, [{b0} + {s}]",
                "tileloadd tmm4, [{a0} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {s}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 1024",
                "add {a1}, 1024",
                "add {b0}, 1024",
                "add {b1}, 1024",
                "dec {n}",
                "jnz 2b",
                a0 = inout(reg) a[0] => _, a1 = inout(reg) a[1] => _,
                b0 = inout(reg) b[0] => _, b1 = inout(reg) b[1] => _,
                n = inout(reg) count.max(1) => _, s = in(reg) 64usize,
                options(nostack, readonly)
            );
        }
    }

    /// Adds `Σ a[t] · (b₁[t] + b₂[t])` over `count` pairs of tiles in which both parts of b follow one another.
    ///
    /// # Safety
    /// `reach`: `a` points at `count` tiles each, `b` at `2 count`.
    pub unsafe fn multiply_by_sums(&mut self, a: [*const u8; 2], b: [*const u8; 2], count: usize) {
        // SAFETY: passes on `reach`.
        unsafe {
            asm!(
                "2:",
                "tileloadd tmm4, [{a0} + {s}]",
                "tileloadd tmm6, [{b0} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {s}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm6, [{b0} + {s} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 1024",
                "add {a1}, 1024",
                "add {b0}, 2048",
                "add {b1}, 2048",
                "dec {n}",
                "jnz 2b",
                a0 = inout(reg) a[0] => _, a1 = inout(reg) a[1] => _,
                b0 = inout(reg) b[0] => _, b1 = inout(reg) b[1] => _,
                n = inout(reg) count.max(1) => _, s = in(reg) 64usize,
                options(nostack, readonly)
            );
        }
    }

    /// Adds `Σ a₁ · b₁ + a₁ · b₂ + a₂ · b₁` over `count` pairs of tiles in which both parts of a, and of b, follow one
    /// another.
    ///
    /// # Safety
    /// `reach`: `a` and `b` point at `2 count` tiles each.
    pub unsafe fn multiply_sums(&mut self, a: [*const u8; 2], b: [*const u8; 2], count: usize) {
        // SAFETY: passes on `reach`.
        unsafe {
            asm!(
                "2:",
                "tileloadd tmm4, [{a0} + {s}]",
                "tileloadd tmm6, [{b0} + {s} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {s}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm6, [{b0} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {s}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm4, [{a0} + {s} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {s} + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 2048",
                "add {a1}, 2048",
                "add {b0}, 2048",
                "add {b1}, 2048",
                "dec {n}",
                "jnz 2b",
                a0 = inout(reg) a[0] => _, a1 = inout(reg) a[1] => _,
                b0 = inout(reg) b[0] => _, b1 = inout(reg) b[1] => _,
                n = inout(reg) count.max(1) => _, s = in(reg) 64usize,
                options(nostack, readonly)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: back to the initial state, which is always allowed once AMX is.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
