//! The importances of a tensor's columns, and which of them belong to a block.

use super::QuantError;
use akunu_types::DType;

/// How much each column of a matrix matters: the mean square of what it is multiplied with.
///
/// A tensor of several matrices, such as the experts of a layer, has a set of importances for each.
#[derive(Clone, Copy, Debug)]
pub struct Importance<'a> {
    values: &'a [f32],
    cols: usize,
    /// Values of one matrix.
    matrix: usize,
}

impl<'a> Importance<'a> {
    /// Importances for `n` matrices of `rows` by `cols` values: `cols` for each matrix, finite and not
    /// negative.
    pub fn new(
        values: &'a [f32],
        [n, rows, cols]: [usize; 3],
    ) -> Result<Importance<'a>, QuantError> {
        let is_bad = |x: &f32| !(x.is_finite() && *x >= 0.0);
        if let Some(index) = values.iter().position(is_bad) {
            let value = values[index];
            return Err(QuantError::Importance { index, value });
        }
        let found = values.len();
        if cols == 0 || rows == 0 || n.checked_mul(cols) != Some(found) {
            return Err(QuantError::ImportanceCount { found, n, cols });
        }
        Ok(Importance {
            values,
            cols,
            matrix: rows.saturating_mul(cols),
        })
    }

    /// Refuses a type whose blocks would reach from one row into the next.
    pub(super) fn check(&self, dtype: DType) -> Result<(), QuantError> {
        if self.cols.is_multiple_of(dtype.block_len()) {
            Ok(())
        } else {
            let n = self.cols;
            Err(QuantError::PartialBlock { dtype, n })
        }
    }

    /// The importances of the `N` values from position `at` of the tensor on, which lie in one row.
    pub(super) fn block<const N: usize>(&self, at: usize) -> Option<&'a [f32; N]> {
        let first = at / self.matrix * self.cols + at % self.cols;
        self.values.get(first..)?.first_chunk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two matrices of two rows of four columns: the second matrix has its own importances.
    #[test]
    fn a_block_finds_its_columns() {
        let values: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let importance = Importance::new(&values, [2, 2, 4]).unwrap();
        let first_of = |at| importance.block::<2>(at).unwrap()[0];
        assert_eq!([0, 2, 4, 6, 8, 14].map(first_of), [0., 2., 0., 2., 4., 6.]);
        assert!(importance.block::<2>(16).is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = Importance::new(&[1.0, f32::NAN], [1, 1, 2]).unwrap_err();
        assert!(error.to_string().contains("number 1 is NaN"), "{error}");
        let error = Importance::new(&[1.0, -1.0], [1, 1, 2]).unwrap_err();
        assert!(error.to_string().contains("number 1 is -1"), "{error}");
        for shape in [
            [1, 2, 4],
            [2, 1, 2],
            [0, 1, 3],
            [usize::MAX, 1, 3],
            [1, 0, 3],
        ] {
            let error = Importance::new(&[1.0; 3], shape).unwrap_err();
            assert!(matches!(error, QuantError::ImportanceCount { .. }));
        }
        let importances = [1.0; 32];
        let importance = Importance::new(&importances, [1, 2, 32]).unwrap();
        importance.check(DType::Q4_0).unwrap();
        importance.check(DType::Q4_K).unwrap_err();
    }
}
