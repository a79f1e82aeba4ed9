//! A vision tower as data: from the pixels of an image to the rows that a language model reads in the place of tokens.
//!
//! ```text
//! h = kernel · patch + bias + position          one row for each patch of the image
//! h = layers(h);  x = norm(h)
//! y = projector(squares of x)                   one row for each square of merge × merge patches
//! d = deep projector(squares of h)              after some of the layers
//! ```
//!
//! The rows of a square lie one behind the other, in reading order within the square, and squares in reading order. So a
//! square is `merge² * dim` numbers side by side, and no row has to move between the layers and the projector.

use crate::ffn::DenseActivation;
use crate::layer::{Layer, Norm};
use crate::linear::Linear;
use crate::weights::{Bind, NamedMatrix, NamedVector};

/// A vision tower and its projector.
#[derive(Clone, Debug, PartialEq)]
pub struct Vision<M = NamedMatrix, V = NamedVector> {
    /// The name of its family in GGUF's `clip.projector_type`.
    pub family: &'static str,
    /// The images that it reads.
    pub input: ImageInput,
    /// Width of the residual stream.
    pub dim: u32,
    /// Width of the rows that it gives: the residual stream of the language model.
    pub out_dim: u32,
    /// The product of a patch: (dim, numbers of a patch).
    pub patches: Linear<M, V>,
    /// Learned positions, added to the rows.
    pub positions: PatchPositions,
    /// Two-dimensional RoPE: queries and keys turn by the line and the column of their patch.
    pub turn: Option<PatchTurn>,
    /// The layers. A row sees all rows of its image.
    pub layers: Vec<Layer<M, V>>,
    /// The norm of the last layer's result, row by row.
    pub norm: Option<Norm<V>>,
    /// From squares of patches to the rows of the language model.
    pub projector: Projector<M, V>,
    /// Projectors whose rows are added to the residual stream of the language model, the first after its first layer and so on.
    pub deep: Vec<DeepProjector<M, V>>,
}

/// A projector of the residual stream after a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepProjector<M = NamedMatrix, V = NamedVector> {
    /// The layer that comes before it.
    pub layer: u32,
    /// From squares of patches to rows of the language model.
    pub projector: Projector<M, V>,
}

/// The images that a tower reads, already resized and normalised: what a preprocessor has to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageInput {
    /// Side of a patch in pixels.
    pub patch: u32,
    /// Side of the squares of patches that become one row.
    pub merge: u32,
    /// How many patches an image may have.
    pub grids: Grids,
    /// Subtracted from the red, green and blue of a pixel, which are from 0 to 1.
    pub mean: [f32; 3],
    /// Standard deviation: the difference is divided by this.
    pub std: [f32; 3],
}

/// The grids of patches that a tower reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grids {
    /// Squares of so many patches on a side.
    Square(u32),
    /// All whose sides are multiples of `merge`, up to [`MAX_PATCHES`](super::MAX_PATCHES).
    Any,
}

/// Learned positions of patches: a square table that is read by the host, which writes the rows for a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchPositions {
    /// (side * side, dim).
    pub weight: NamedVector,
    /// Patches on a side of the table.
    pub side: u32,
    /// How the table is resized for an image with another grid.
    pub resize: Resize,
}

/// How a table of positions is resized: bilinearly, with the value of an entry at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// The first entry is at the first patch, the last at the last patch.
    Corners,
    /// Entries and patches are squares that divide the same image, and a patch that is larger than an entry is a mean of several.
    Areas,
}

/// Turns of queries and keys by the place of their patch: the first quarter of a head's elements turns by the line and the
/// second by the column, each together with the element half a head behind it. Pair d of a quarter turns by
/// `place / theta ^ (4d / head_dim)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchTurn {
    /// Base of the frequencies.
    pub theta: f32,
    /// Elements of a head, a multiple of 4.
    pub head_dim: u32,
}

/// From squares of patches to the rows of the language model: products with an activation between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Projector<M = NamedMatrix, V = NamedVector> {
    /// How the rows of a square become one.
    pub join: Join,
    /// The norm of that.
    pub norm: Option<Norm<V>>,
    /// The products, the first of which reads the joined row.
    pub linears: Vec<Linear<M, V>>,
    /// The activation after each product but the last.
    pub activation: DenseActivation,
}

/// How the rows of a square become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// One behind the other: merge² times as many numbers.
    Concatenate,
    /// Their mean.
    Mean,
}

impl ImageInput {
    /// Numbers of a patch: red, green and blue of its pixels.
    pub fn patch_numbers(&self) -> u32 {
        CHANNELS * self.patch * self.patch
    }
}

/// Red, green and blue.
pub(super) const CHANNELS: u32 = 3;

impl Vision {
    /// The same tower with other weights. The positions stay with the host.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Vision<B::Matrix, B::Vector>, B::Error> {
        let patches = self.patches.bind(to)?;
        let layers = self.layers.iter().map(|layer| layer.bind(to));
        let layers = layers.collect::<Result<_, _>>()?;
        let norm = self.norm.as_ref().map(|norm| norm.bind(to)).transpose()?;
        let projector = self.projector.bind(to)?;
        let deep = self.deep.iter().map(|deep| {
            Ok(DeepProjector {
                layer: deep.layer,
                projector: deep.projector.bind(to)?,
            })
        });
        Ok(Vision {
            family: self.family,
            input: self.input,
            dim: self.dim,
            out_dim: self.out_dim,
            patches,
            positions: self.positions.clone(),
            turn: self.turn,
            layers,
            norm,
            projector,
            deep: deep.collect::<Result<_, _>>()?,
        })
    }
}

impl Projector {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Projector<B::Matrix, B::Vector>, B::Error> {
        let norm = self.norm.as_ref().map(|norm| norm.bind(to)).transpose()?;
        let linears = self.linears.iter().map(|linear| linear.bind(to));
        Ok(Projector {
            join: self.join,
            norm,
            linears: linears.collect::<Result<_, _>>()?,
            activation: self.activation,
        })
    }
}
