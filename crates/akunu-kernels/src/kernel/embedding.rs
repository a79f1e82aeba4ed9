//! Embedding tables in any format, their scale, and learned positions.

pub mod embedding_lookup;
pub mod embedding_scale;
pub mod pos_embed_add;
