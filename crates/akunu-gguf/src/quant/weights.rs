//! How much the error of each value of a block counts.
//!
//! An importance is the mean square of the activations that a column of the matrix is multiplied with, so
//! `importance * error²` is what an error adds to the square of the output: where importances are known they are
//! the weights. A column that was never used still has a small weight, so that its values do not become
//! arbitrary.
//!
//! Without importances the perplexities of real models decide (`docs/quantize.md`). In the K formats with
//! minima the errors of large values count more: with `σ²`, the mean square of the block,
//!
//! ```text
//! weight = sqrt(σ² + x²)
//! ```
//!
//! In IQ4_NL and IQ4_XS the weight is `x²`, as in ggml. In those around zero all errors count the same. All weights are scaled to a mean of 1.

/// The smallest importance, as a share of the block's mean.
const LEAST: f32 = 1e-4;

/// The weights in a super-block with minima: Q2_K, Q4_K and Q5_K.
pub(super) fn weights_with_minima<const N: usize>(
    values: &[f32; N],
    importance: Option<&[f32; N]>,
) -> [f32; N] {
    importance.map_or_else(|| by_size(values), by_importance)
}

/// The weights in a super-block around zero: Q3_K and Q6_K.
pub(super) fn weights_around_zero<const N: usize>(importance: Option<&[f32; N]>) -> [f32; N] {
    importance.map_or([1.0; N], by_importance)
}

/// The weights of a format whose numbers lie far apart where they are large: IQ4_NL and IQ4_XS.
pub(super) fn by_square<const N: usize>(values: &[f32; N]) -> [f32; N] {
    scaled(values.map(|x| x * x))
}

/// The weights of columns with these importances, all of them finite and not negative.
pub(super) fn by_importance<const N: usize>(importance: &[f32; N]) -> [f32; N] {
    let least = LEAST * mean(importance);
    scaled(importance.map(|importance| importance.max(least)))
}

/// The weights that let the errors of large values count more.
fn by_size<const N: usize>(values: &[f32; N]) -> [f32; N] {
    let sigma2 = mean(&values.map(|x| x * x));
    scaled(values.map(|x| (sigma2 + x * x).sqrt()))
}

/// The weights with a mean of 1. Where all are zero, or beyond what f32 holds, all errors count the same.
fn scaled<const N: usize>(weights: [f32; N]) -> [f32; N] {
    let scale = mean(&weights);
    if !(scale > 0.0 && scale.is_finite()) {
        return [1.0; N];
    }
    weights.map(|weight| weight / scale)
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f32; 4] = [1.0, 1.0, 1.0, 7.0];

    #[test]
    fn weights_by_size_have_a_mean_of_one() {
        let found = by_size(&VALUES);
        assert!((mean(&found) - 1.0).abs() < 1e-6, "{found:?}");
        // σ² = 13: the root of 62 against the root of 14.
        let expected = (62f32 / 14.0).sqrt();
        assert!((found[3] / found[1] - expected).abs() < 1e-5, "{found:?}");
        assert_eq!(by_size(&[0.0; 4]), [1.0; 4]);
    }

    /// A weight of zero would let the search choose any step for a group of unused columns.
    #[test]
    fn unused_columns_count_a_little() {
        let found = by_importance(&[0.0, 1.0, 1.0, 1.0]);
        assert!(found[0] > 0.0 && found[0] < 1e-3, "{found:?}");
        assert_eq!(by_importance(&[0.0; 4]), [1.0; 4]);
        assert_eq!(by_importance(&[f32::MAX; 4]), [1.0; 4]);
    }

    #[test]
    fn importances_are_the_weights_and_without_them_only_minima_make_large_values_count_more() {
        assert_eq!(weights_with_minima(&VALUES, None), by_size(&VALUES));
        assert_eq!(weights_around_zero::<4>(None), [1.0; 4]);
        let importance = [2.0, 1.0, 1.0, 0.5];
        let expected = importance.map(|importance| importance / 1.125);
        assert_eq!(weights_with_minima(&VALUES, Some(&importance)), expected);
        assert_eq!(weights_around_zero(Some(&importance)), expected);
    }
}
