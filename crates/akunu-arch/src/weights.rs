//! The weights of a description: their names and shapes, and where they come from.

/// A matrix of a product, or some of its rows, by its canonical name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedMatrix {
    /// The name of the tensor.
    pub name: String,
    /// Rows of the tensor.
    pub tensor_rows: u32,
    /// The first row that counts.
    pub first: u32,
    /// Rows from there on: the outputs.
    pub rows: u32,
    /// Columns: the inputs.
    pub cols: u32,
    /// Taps of a convolution, whose tensor is (rows, channels, taps) and whose matrix is (rows, taps * channels); 1 for a
    /// product.
    pub taps: u32,
    /// Matrices that lie one behind the other in the tensor: those of experts; 1 for others.
    pub stack: u32,
    /// Rows of the tensor from one to the next: 2 where rows of two matrices alternate.
    pub step: u32,
    /// Whether the tensor has the columns of each matrix as its rows.
    pub is_transposed: bool,
    /// Whether a row of the tensor is two of these rows, one behind the other: the matrix is for half of its inputs.
    pub is_halved: bool,
    /// Rows of the tensor that are put together in this order, each piece as its first row and their number; empty for those
    /// from `first` on.
    pub pieces: Vec<[u32; 2]>,
    /// How the numbers of a row lie in the tensor, if it is the kernel of a convolution over patches.
    pub kernel: Option<PatchKernel>,
    /// Factors of its rows: how many rows have each, from the first row on; empty where rows are used as they are.
    pub factors: Vec<(u32, f32)>,
}

/// The kernel of a convolution whose stride is its size: a product of patches, whose tensor is (rows, channels, side, side).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchKernel {
    /// Numbers of a pixel.
    pub channels: u32,
    /// Pixels on a side.
    pub side: u32,
    /// The images that the convolution reads together.
    pub frames: Frames,
    /// Whether the tensor is (rows, side * side * channels) instead: the numbers of a pixel lie together.
    pub by_pixels: bool,
}

/// The images of a film that a convolution reads together. A still image is all of them, so that their kernels are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// A single image.
    One,
    /// So many, whose kernels lie within the tensor: (rows, channels, frames, side, side).
    Within(u32),
    /// So many, whose kernels are a tensor each: `name`, `name.1` and so on.
    Apart(u32),
}

impl NamedMatrix {
    /// A whole tensor.
    pub fn new(name: impl Into<String>, rows: u32, cols: u32) -> NamedMatrix {
        NamedMatrix {
            name: name.into(),
            tensor_rows: rows,
            first: 0,
            rows,
            cols,
            taps: 1,
            stack: 1,
            step: 1,
            is_transposed: false,
            is_halved: false,
            pieces: Vec::new(),
            kernel: None,
            factors: Vec::new(),
        }
    }

    /// The same matrix times a factor.
    pub fn times(self, factor: f32) -> NamedMatrix {
        let rows = self.rows;
        self.times_each(vec![(rows, factor)])
    }

    /// The same matrix with a factor for each piece of rows, of as many rows.
    pub fn times_each(self, factors: Vec<(u32, f32)>) -> NamedMatrix {
        let is_used = factors.iter().any(|(_, factor)| *factor != 1.0);
        NamedMatrix {
            factors: if is_used { factors } else { Vec::new() },
            ..self
        }
    }

    /// The matrices of the first and of the second half of the inputs of a tensor, (rows, 2 * cols).
    pub fn halves(name: impl Into<String>, rows: u32, cols: u32) -> [NamedMatrix; 2] {
        let whole = NamedMatrix {
            is_halved: true,
            ..NamedMatrix::new(name, 2 * rows, cols)
        };
        [0, 1].map(|first| whole.every(first, 2))
    }

    /// A tensor of as many matrices, (stack, rows, cols).
    pub fn stacked(name: impl Into<String>, stack: u32, [rows, cols]: [u32; 2]) -> NamedMatrix {
        NamedMatrix {
            stack,
            ..NamedMatrix::new(name, stack * rows, cols)
        }
    }

    /// The name of one matrix of a stack, in files that have a tensor for each.
    pub fn name_of_expert(&self, expert: u32) -> String {
        let within = format!(".experts.{expert}.");
        self.name.replacen(".experts.", &within, 1)
    }

    /// Every `step`th row of it, from `first` on.
    pub fn every(&self, first: u32, step: u32) -> NamedMatrix {
        NamedMatrix {
            first,
            rows: self.tensor_rows / step,
            step,
            ..self.clone()
        }
    }

    /// `len` rows of every `step`, from `first` on.
    pub fn runs(&self, [first, len, step]: [u32; 3]) -> NamedMatrix {
        let steps = 0..self.tensor_rows / step;
        self.gathered(steps.map(|at| [first + at * step, len]).collect())
    }

    /// The same of a tensor that has the columns of each matrix as its rows.
    pub fn transposed(self) -> NamedMatrix {
        NamedMatrix {
            is_transposed: true,
            ..self
        }
    }

    /// Whether its rows lie one behind the other in the tensor.
    pub fn is_contiguous(&self) -> bool {
        let is_whole = self.pieces.is_empty() && self.factors.is_empty() && self.kernel.is_none();
        self.step == 1 && !self.is_transposed && is_whole
    }

    /// These rows of it, each piece as its first row and their number.
    pub fn gathered(&self, pieces: Vec<[u32; 2]>) -> NamedMatrix {
        NamedMatrix {
            rows: pieces.iter().map(|[_, rows]| rows).sum(),
            pieces,
            ..self.clone()
        }
    }

    /// The names of all its tensors, for a weight that is not a stack.
    pub fn tensors(&self) -> Vec<String> {
        let apart = match self.kernel.map(|kernel| kernel.frames) {
            Some(Frames::Apart(n)) => n,
            Some(Frames::One | Frames::Within(_)) | None => 1,
        };
        let others = (1..apart).map(|frame| format!("{}.{frame}", self.name));
        [self.name.clone()].into_iter().chain(others).collect()
    }

    /// Rows and columns of the tensor. Rows are all dimensions but the innermost; with pieces of a transposed tensor, each piece is a
    /// matrix of the stack.
    pub fn tensor_shape(&self) -> [u32; 2] {
        if let Some(PatchKernel {
            side,
            frames,
            by_pixels: false,
            ..
        }) = self.kernel
        {
            let within = match frames {
                Frames::One | Frames::Apart(_) => 1,
                Frames::Within(n) => n,
            };
            return [within * self.tensor_rows * (self.cols / side), side];
        }
        match (self.is_transposed, self.is_halved) {
            (true, _) if !self.pieces.is_empty() => {
                [self.tensor_rows, self.rows / self.pieces.len() as u32]
            }
            (true, _) => [self.stack * self.cols, self.tensor_rows / self.stack],
            (false, true) => [self.tensor_rows / 2, 2 * self.cols],
            (false, false) => [self.tensor_rows, self.cols],
        }
    }

    /// Some rows of it.
    pub fn part(&self, first: u32, rows: u32) -> NamedMatrix {
        NamedMatrix {
            first,
            rows,
            ..self.clone()
        }
    }
}

/// Numbers that are added or multiplied one by one: a norm, a bias, learned positions.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedVector {
    /// The name of the tensor.
    pub name: String,
    /// 1, or the entries of a table.
    pub rows: u32,
    /// Elements of an entry.
    pub cols: u32,
    /// How the numbers that are used follow from those of the file.
    pub change: Change,
    /// The name of a vector that they are multiplied by.
    pub times: Option<String>,
    /// The first number of the tensor that counts, and how far it is to the next: 2 where those of two vectors lie in turn.
    pub every: [u32; 2],
    /// Numbers of an entry in the tensor, where some behind those that count belong to another vector.
    pub tensor_cols: Option<u32>,
    /// The value of all numbers of a vector that the file does not have.
    pub constant: Option<f32>,
}

impl NamedVector {
    /// A vector of the same numbers, which the file does not have.
    pub fn constant(number: f32, cols: u32) -> NamedVector {
        NamedVector {
            constant: Some(number),
            ..NamedVector::new("", 1, cols)
        }
    }

    /// A table of vectors; a vector has one row.
    pub fn new(name: impl Into<String>, rows: u32, cols: u32) -> NamedVector {
        NamedVector {
            name: name.into(),
            rows,
            cols,
            change: Change::None,
            times: None,
            every: [0, 1],
            tensor_cols: None,
            constant: None,
        }
    }

    /// `len` numbers of it, from `first` on.
    pub fn part(&self, first: u32, len: u32) -> NamedVector {
        NamedVector {
            cols: len,
            every: [first, 1],
            tensor_cols: Some(self.cols),
            ..self.clone()
        }
    }

    /// Whether it is a whole tensor.
    pub fn is_whole(&self) -> bool {
        self.every == [0, 1] && self.tensor_cols.is_none()
    }

    /// Rows and columns of the tensor.
    pub fn tensor_shape(&self) -> [u32; 2] {
        let [_, step] = self.every;
        [self.rows, self.tensor_cols.unwrap_or(step * self.cols)]
    }
}

/// How numbers follow from those of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// They are used as they are.
    None,
    /// This is added: 1 where the file has `w` and the model multiplies by `1 + w`.
    Plus(f32),
    /// They are multiplied by this.
    Times(f32),
    /// `-e^w`: rates of decay, of which folders have the logarithm.
    MinusExp,
}

impl Change {
    /// The number that is used.
    pub fn of(self, number: f32) -> f32 {
        match self {
            Change::None => number,
            Change::Plus(more) => number + more,
            Change::Times(factor) => number * factor,
            Change::MinusExp => -number.exp(),
        }
    }
}

/// Turns named weights into something else, such as places on a device.
pub trait Bind {
    /// What becomes of a matrix.
    type Matrix;
    /// What becomes of a vector.
    type Vector;
    /// Why it cannot.
    type Error;
    /// Called once for each matrix, in the order of use.
    fn matrix(&mut self, weight: &NamedMatrix) -> Result<Self::Matrix, Self::Error>;
    /// Called once for each vector, in the order of use.
    fn vector(&mut self, weight: &NamedVector) -> Result<Self::Vector, Self::Error>;
}
