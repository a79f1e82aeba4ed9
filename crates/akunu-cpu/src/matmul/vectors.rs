//! The vectors that a product multiplies.

/// Vectors of the same length: the rows of a matrix, or those that some results are computed from.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    numbers: &'a [f32],
    count: usize,
    len: usize,
    /// Floats from one row to the next.
    stride: usize,
    chosen: Option<Chosen<'a>>,
}

/// Results in any order, of which `share` in a row have the same vector.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    results: &'a [usize],
    share: usize,
}

/// Where all rows of a matrix lie: the address of the first number, how many rows there are, how long they are, and floats from one
/// to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin([usize; 4]);

impl<'a> Vectors<'a> {
    /// `count` rows of `len` numbers, `stride` apart.
    pub fn rows(numbers: &'a [f32], count: usize, len: usize, stride: usize) -> Vectors<'a> {
        Vectors {
            numbers,
            count,
            len,
            stride,
            chosen: None,
        }
    }

    /// The vectors of results; row `r / share` of `numbers` is that of result `r`.
    pub fn of_results(
        numbers: &'a [f32],
        len: usize,
        results: &'a [usize],
        share: usize,
    ) -> Vectors<'a> {
        Vectors {
            numbers,
            count: results.len(),
            len,
            stride: len,
            chosen: Some(Chosen { results, share }),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of each.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The row of a vector.
    pub fn row(&self, at: usize) -> usize {
        self.chosen
            .map_or(at, |chosen| chosen.results[at] / chosen.share)
    }

    /// One of them.
    pub fn get(&self, at: usize) -> &'a [f32] {
        &self.numbers[self.row(at) * self.stride..][..self.len]
    }

    /// Where they lie, all rows of a matrix.
    pub fn origin(&self) -> Origin {
        let first = self.numbers.as_ptr().addr();
        Origin([first, self.count, self.len, self.stride])
    }
}
