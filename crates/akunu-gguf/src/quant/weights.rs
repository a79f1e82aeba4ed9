//! How much the error of each value of a block counts.
//!
//! An importance is the mean square of the activations that a column of the matrix is multiplied with, so
//! `importance * error²` is what an error adds to the square of the output. Large values get more still:
//! with `σ²`, the mean square of the block,
//!
//! ```text
//! weight = importance * sqrt(σ² + x²)
//! ```
//!
//! The weights are then scaled to a mean of 1. A column that was never used still has a small weight, so
//! that its values do not become arbitrary.
//!
//! Without importances the perplexities of real models decide (`docs/quantize.md`). In the K formats with
//! minima the errors of large values count more, `weight = sqrt(σ² + x²)`. In those around zero all
//! errors count the same.

/// The smallest importance, as a share of the block's mean.
const LEAST: f32 = 1e-4;

/// The weights in a super-block with minima: Q2_K, Q4_K and Q5_K.
pub(super) fn weights_with_minima<const N: usize>(
    values: &[f32; N],
    importance: Option<&[f32; N]>,
) -> [f32; N] {
    weights(values, importance.unwrap_or(&[1.0; N]))
}

/// The weights in a super-block around zero: Q3_K and Q6_K.
pub(super) fn weights_around_zero<const N: usize>(
    values: &[f32; N],
    importance: Option<&[f32; N]>,
) -> [f32; N] {
    importance.map_or([1.0; N], |importance| weights(values, importance))
}

/// The weights of `values`, from their columns' importances, all of them finite and not negative.
pub(super) fn weights<const N: usize>(values: &[f32; N], importance: &[f32; N]) -> [f32; N] {
    let least = LEAST * mean(importance);
    let sigma2 = mean(&values.map(|x| x * x));
    let mut weights = *importance;
    for (weight, x) in weights.iter_mut().zip(values) {
        *weight = weight.max(least) * (sigma2 + x * x).sqrt();
    }
    let scale = mean(&weights);
    // All zero, or beyond what f32 holds: then nothing is known of the columns.
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

    #[test]
    fn weights_follow_importance_and_size_and_have_a_mean_of_one() {
        let values = [1.0, 1.0, 1.0, 7.0];
        let found = weights(&values, &[2.0, 1.0, 1.0, 1.0]);
        assert!((mean(&found) - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found[0] / found[1] - 2.0).abs() < 1e-6, "{found:?}");
        // σ² = 13: the root of 62 against the root of 14.
        let expected = (62f32 / 14.0).sqrt();
        assert!((found[3] / found[1] - expected).abs() < 1e-5, "{found:?}");
    }

    /// A weight of zero would let the search choose any step for a group of unused columns.
    #[test]
    fn unused_columns_count_a_little() {
        let found = weights(&[1.0; 4], &[0.0, 1.0, 1.0, 1.0]);
        assert!(found[0] > 0.0 && found[0] < 1e-3, "{found:?}");
        assert_eq!(weights(&[1.0; 4], &[0.0; 4]), [1.0; 4]);
        assert_eq!(weights(&[1.0; 4], &[f32::MAX; 4]), [1.0; 4]);
        assert_eq!(weights(&[0.0; 4], &[1.0; 4]), [1.0; 4]);
    }

    #[test]
    fn without_importances_only_minima_make_large_values_count_more() {
        let values = [1.0, 1.0, 1.0, 7.0];
        let by_size = weights(&values, &[1.0; 4]);
        assert!(by_size[3] > by_size[0], "{by_size:?}");
        assert_eq!(weights_with_minima(&values, None), by_size);
        assert_eq!(weights_around_zero(&values, None), [1.0; 4]);
        let importance = [2.0, 1.0, 1.0, 1.0];
        let expected = weights(&values, &importance);
        assert_eq!(weights_with_minima(&values, Some(&importance)), expected);
        assert_eq!(weights_around_zero(&values, Some(&importance)), expected);
    }
}
