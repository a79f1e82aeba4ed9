//! The dimensions of a tensor, in ggml's order.

/// Tensors have at most this many dimensions: four in GGUF, a few more in some safetensors.
pub const MAX_DIMS: usize = 6;

/// Dimensions in ggml's order: the length of a row first, then the number of rows, and so on. None is
/// zero and their product fits a `usize`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    sizes: [usize; MAX_DIMS],
    n_dims: usize,
}

impl Dims {
    /// Dimensions from sizes in ggml's order; `None` when there is none or too many of them, one is
    /// zero, or their product overflows.
    pub fn new(sizes: &[u64]) -> Option<Dims> {
        if sizes.is_empty() || sizes.len() > MAX_DIMS {
            return None;
        }
        let mut dims = Dims {
            sizes: [1; MAX_DIMS],
            n_dims: sizes.len(),
        };
        let mut product = 1usize;
        for (slot, &size) in dims.sizes.iter_mut().zip(sizes) {
            *slot = usize::try_from(size).ok().filter(|&n| n > 0)?;
            product = product.checked_mul(*slot)?;
        }
        Some(dims)
    }

    /// The sizes, a row's length first.
    pub fn as_slice(&self) -> &[usize] {
        &self.sizes[..self.n_dims]
    }

    /// The length of a row.
    pub fn cols(&self) -> usize {
        self.sizes[0]
    }

    /// How many rows there are, over all other dimensions. 1 for a vector.
    pub fn rows(&self) -> usize {
        self.sizes[1..].iter().product()
    }

    /// The product of the dimensions, which is the number of elements.
    pub fn n_elements(&self) -> usize {
        self.sizes.iter().product()
    }
}

impl core::fmt::Debug for Dims {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_cols_follow_ggml_order() {
        let dims = Dims::new(&[576, 1536]).unwrap();
        assert_eq!((dims.cols(), dims.rows()), (576, 1536));
        assert_eq!(Dims::new(&[7]).unwrap().rows(), 1);
        assert_eq!(Dims::new(&[2, 3, 4]).unwrap().rows(), 12);
    }

    #[test]
    fn impossible_dimensions_are_refused() {
        assert_eq!(Dims::new(&[]), None);
        assert_eq!(Dims::new(&[0, 4]), None);
        assert_eq!(Dims::new(&[1; MAX_DIMS + 1]), None);
        assert_eq!(Dims::new(&[1 << 32, 1 << 32]), None, "overflow");
    }
}
