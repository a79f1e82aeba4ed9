//! Sizes that come from params: products that saturate instead of overflowing.
//!
//! The plan check asks each row for the bytes of its bindings, with params from outside. A product
//! that does not fit becomes `usize::MAX`, which no buffer holds, so that the plan is refused.

/// The product of some counts.
pub fn product(counts: &[u32]) -> usize {
    let counts = counts.iter().map(|&n| n as usize);
    counts.fold(1, usize::saturating_mul)
}

/// Bytes of an array of `T` with these dimensions.
pub fn bytes<T>(dims: &[u32]) -> usize {
    product(dims).saturating_mul(size_of::<T>())
}

/// Elements from the first to the last of `n_rows` rows of `cols` elements that are `stride` apart.
pub fn strided(n_rows: u32, stride: u32, cols: u32) -> usize {
    match n_rows.checked_sub(1) {
        None => 0,
        Some(before_last) => product(&[before_last, stride]).saturating_add(cols as usize),
    }
}

/// The product of some counts as a thread or threadgroup count. What does not fit in 32 bits becomes
/// 0: an empty grid, which the plan check refuses.
pub fn count(counts: &[u32]) -> u32 {
    u32::try_from(product(counts)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrapping product would pass for a small buffer.
    #[test]
    fn products_saturate() {
        assert_eq!(bytes::<f32>(&[3, 5]), 60);
        assert_eq!(bytes::<f32>(&[u32::MAX, u32::MAX]), usize::MAX);
        assert_eq!(strided(3, 10, 4), 24);
        assert_eq!(strided(0, 10, 4), 0);
        assert_eq!(count(&[1 << 16, 1 << 16]), 0);
        assert_eq!(count(&[7, 0]), 0);
        assert_eq!(count(&[7, 6]), 42);
    }
}
