//! Parameters of element-wise kernels and of those that move elements.

use crate::layout::shared_struct;

shared_struct! {
    /// A kernel that visits each element of a flat buffer once.
    pub struct ElementwiseParams = "ElementwiseParams", size = 16 {
        /// Number of elements.
        0 => count: u32,
        /// Unused, zero.
        4 => _pad0: u32,
        /// Unused, zero.
        8 => _pad1: u32,
        /// Unused, zero.
        12 => _pad2: u32,
    }
}

shared_struct! {
    /// A row-major matrix.
    pub struct MatrixParams = "MatrixParams", size = 16 {
        /// Number of rows.
        0 => rows: u32,
        /// Elements of a row.
        4 => cols: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// Rows of floats as halves with a factor for each row.
    pub struct HalfRowsParams = "HalfRowsParams", size = 32 {
        /// Number of rows.
        0 => rows: u32,
        /// Elements of a row.
        4 => cols: u32,
        /// Elements from one row of halves to the next; those behind `cols` are zeros.
        8 => stride: u32,
        /// 0: one row behind the other. 1 and 2: eight rows are a tile, in spans or in columns, and the stride is a multiple of 128.
        12 => order: u32,
        /// Added to the mean square before the root, where rows are normalised.
        16 => eps: f32,
        /// Unused, zero.
        20 => _pad0: u32,
        /// Unused, zero.
        24 => _pad1: u32,
        /// Unused, zero.
        28 => _pad2: u32,
    }
}

shared_struct! {
    /// Pieces of rows that are copied to other places of other rows.
    pub struct CopyPiecesParams = "CopyPiecesParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Pieces of a row.
        4 => pieces: u32,
        /// Elements of a piece.
        8 => width: u32,
        /// Elements from one row of x to the next.
        12 => x_row: u32,
        /// Elements from one piece of a row of x to the next; 0: all pieces are the same.
        16 => x_piece: u32,
        /// Elements from one row of y to the next.
        20 => y_row: u32,
        /// Elements from one piece of a row of y to the next, at least a piece.
        24 => y_piece: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
