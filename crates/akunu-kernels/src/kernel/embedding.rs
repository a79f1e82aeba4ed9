//! Embedding tables in any format, their scale, learned positions, and the features of images.

pub mod embedding_lookup;
pub mod embedding_scale;
pub mod place_rows;
pub mod pos_embed_add;
