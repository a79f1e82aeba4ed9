//! Where the embeddings of a token for each layer lie.

use akunu_program::Slice;

use super::scratch::Vector;

/// The embeddings of a token for all layers, one behind the other.
pub(super) struct OfLayers {
    pub all: Vector,
    /// Elements of one of them, and of all.
    pub width: u32,
    pub row: u32,
}

/// That for one layer.
#[derive(Clone, Copy)]
pub(super) struct LayerEmbedding {
    /// Where that of the first token begins.
    pub first: Slice,
    /// Elements from one token to the next.
    pub row: u32,
}

impl OfLayers {
    /// The embedding of `width` elements for a layer.
    pub fn of_layer(&self, at: usize) -> LayerEmbedding {
        let all = self.all.slice();
        LayerEmbedding {
            first: Slice {
                offset: all.offset + size_of::<f32>() * at * self.width as usize,
                ..all
            },
            row: self.row,
        }
    }
}
