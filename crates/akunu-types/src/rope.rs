//! The table that rotary position embedding is computed from.

/// The divisors `theta ^ (2d / head_dim) * factor`, one for each pair d of a head, computed in f64.
/// `factor` is called with d and the divisor without it.
pub fn divisors(theta: f64, head_dim: u32, factor: impl Fn(usize, f64) -> f64) -> Vec<f32> {
    let pair = |d: u32| {
        let divisor = theta.powf(f64::from(2 * d) / f64::from(head_dim));
        (divisor * factor(d as usize, divisor)) as f32
    };
    (0..head_dim / 2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table in halves of a turn would fail the first assert, one without the factor the second.
    #[test]
    fn divisors_are_powers_of_the_base_times_the_factors() {
        let plain = divisors(10000.0, 8, |_, _| 1.0);
        assert_eq!(plain, [1.0, 10.0, 100.0, 1000.0]);
        let squares = divisors(10000.0, 8, |d, divisor| d as f64 * divisor);
        assert_eq!(squares, [0.0, 100.0, 2e4, 3e6]);
    }
}
