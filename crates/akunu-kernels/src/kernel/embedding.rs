//! Embedding tables in any format, and learned positions.

pub mod embedding_lookup;
pub mod pos_embed_add;
