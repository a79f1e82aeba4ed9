//! Embedding tables in any format.

pub mod embedding_lookup;
