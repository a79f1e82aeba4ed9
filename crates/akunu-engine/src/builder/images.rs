//! Rows of images: features in the place of embeddings, and further ones after the first layers.

use akunu_arch::{Attention, RopeAxes};
use akunu_program::{Axes, Buffer, Op, Rope, Slice, op};

use super::turn::rope;
use super::{Builder, Vector};
use crate::weights::Weight;

/// Memory for the images of a step. Each row of the step has a place, and only rows of images use theirs.
#[derive(Clone, Debug)]
pub(crate) struct ImageMemory {
    /// (rows, dim), in the place of embeddings.
    pub features: Buffer,
    /// (rows, dim) for each of the first layers, added after it.
    pub deep: Vec<Buffer>,
    /// The axes of positions, if they have three, and the height and the width of each row, (rows, 2).
    pub axes: Option<(RopeAxes, Buffer)>,
}

/// Queries and keys that are turned already, and must not be turned or normalised again.
pub(super) struct Turned {
    /// Queries and keys.
    pub heads: [Slice; 2],
    /// The turn by no angle.
    pub rope: Rope,
    /// Their places, if they were normalised.
    _normed: Option<[Vector; 2]>,
}

impl ImageMemory {
    /// Those of features: the ones in the place of embeddings, then the deep ones.
    pub fn of_features(&self) -> impl Iterator<Item = Buffer> {
        [self.features].into_iter().chain(self.deep.iter().copied())
    }

    /// All buffers.
    pub fn buffers(&self) -> impl Iterator<Item = Buffer> {
        let places = self.axes.map(|(_, places)| places);
        self.of_features().chain(places)
    }
}

impl<'a> Builder<'a> {
    /// The same with images in this memory.
    pub fn with_images(self, images: Option<&'a ImageMemory>) -> Builder<'a> {
        Builder { images, ..self }
    }

    /// Features take the place of the embeddings of images.
    pub(super) fn place_images(&mut self) {
        if let Some(images) = self.images {
            self.place(images.features.into(), false);
        }
    }

    /// Features are added after a layer.
    pub(super) fn add_deep_images(&mut self, layer: usize) {
        if let Some(&deep) = self.images.and_then(|images| images.deep.get(layer)) {
            self.place(deep.into(), true);
        }
    }

    /// Queries and keys of a step with images, turned by the positions of their rows on three axes; `None` where these have one. The
    /// norms of heads come first.
    pub(super) fn turned_by_axes(
        &mut self,
        attention: &Attention<Weight, Slice>,
        heads: [Slice; 2],
        divisors: Slice,
    ) -> Option<Turned> {
        let (axes, places) = self.images.and_then(|images| images.axes)?;
        attention.rope?;
        let rope = rope(attention, divisors);
        let numbers = [attention.heads, attention.kv_heads];
        let norms = attention.qk_norm.as_ref();
        let normed = norms.map(|norms| self.normed_heads(attention, norms, heads));
        let heads = normed
            .as_ref()
            .map_or(heads, |normed| normed.each_ref().map(Vector::slice));
        for (x, n_heads) in heads.into_iter().zip(numbers) {
            self.ops.push(Op::RopeAxes(op::RopeAxes {
                x,
                n_heads,
                head_dim: attention.head_dim,
                rope,
                axes: Axes {
                    pairs: axes.pairs,
                    is_interleaved: axes.is_interleaved,
                },
                places: places.into(),
            }));
        }
        Some(Turned {
            heads,
            rope: Rope {
                freq_scale: 0.0,
                ..rope
            },
            _normed: normed,
        })
    }

    fn place(&mut self, features: Slice, add: bool) {
        self.ops.push(Op::Place(op::Place {
            features,
            x: self.stream.slice(),
            dim: self.dim,
            add,
        }));
    }
}
