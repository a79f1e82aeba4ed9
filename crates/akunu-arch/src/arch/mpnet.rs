//! MPNet: BERT with relative positions besides the learned ones, and without token types.

use super::bert;
use crate::descriptor::ArchDescriptor;
use crate::relative::RelativePositions;

/// all-mpnet-base-v2 and its like. The first two entries of its positions are for padding. GGUF has no such architecture.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "mpnet",
    model_types: &["mpnet"],
    first_position: 2,
    relative: Some(RelativePositions {
        n_buckets: 32,
        max_distance: 128,
    }),
    ..bert::ARCH
};
