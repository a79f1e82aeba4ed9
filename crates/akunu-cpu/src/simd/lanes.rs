//! A vector of floats, and something to do with any of them.

/// A vector register of `N` floats.
///
/// # Safety
/// Of those that load and store, `reach`: the pointer points at as many elements. Nothing needs to be aligned.
pub(crate) trait Lanes: Copy {
    /// Number of floats.
    const N: usize;
    /// Number of registers: how many values a loop may keep.
    const REGISTERS: usize;

    /// The same value everywhere.
    fn splat(value: f32) -> Self;
    /// `N` floats.
    unsafe fn load(from: *const f32) -> Self;
    /// `n` floats, fewer than `N`; the others are 0.
    unsafe fn load_part(from: *const f32, n: usize) -> Self;
    /// `N` halves.
    unsafe fn load_halves(from: *const half::f16) -> Self;
    /// `N` whole numbers of 8 bits.
    unsafe fn load_bytes(from: *const i8) -> Self;
    /// `N` bf16 numbers.
    unsafe fn load_bf16(from: *const half::bf16) -> Self;
    /// Stores all.
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `n`, fewer than `N`.
    unsafe fn store_part(self, to: *mut f32, n: usize);
    /// Stores all as halves, rounded to the nearest.
    unsafe fn store_halves(self, to: *mut half::f16);

    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self - other`.
    fn sub(self, other: Self) -> Self;
    /// `self * other`.
    fn mul(self, other: Self) -> Self;
    /// `self / other`.
    fn div(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn fma(self, factor: Self, addend: Self) -> Self;
    /// The larger of each two; `other` where `self` is NaN.
    fn max(self, other: Self) -> Self;
    /// The smaller of each two; `other` where `self` is NaN.
    fn min(self, other: Self) -> Self;
    /// The nearest whole number.
    fn round(self) -> Self;
    /// `self * 2^n` for whole numbers `n` between -250 and 250.
    fn scale(self, n: Self) -> Self;
    /// `then` where `self < limit`, `otherwise` elsewhere.
    fn if_less(self, limit: Self, then: Self, otherwise: Self) -> Self;
    /// Neighbours exchanged: 1, 0, 3, 2, …
    fn swap_pairs(self) -> Self;

    /// The sum of all.
    fn sum(self) -> f32;
    /// The largest of all.
    fn largest(self) -> f32;
    /// The sum of each of four vectors.
    fn sums(four: [Self; 4]) -> [f32; 4];
}

/// Something to do, with any vectors.
pub(crate) trait WithLanes {
    /// What comes of it.
    type Output;

    /// Does it. Implementations are `#[inline(always)]`.
    fn run<L: Lanes>(self) -> Self::Output;
}
