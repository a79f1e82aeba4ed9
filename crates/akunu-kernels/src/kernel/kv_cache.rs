//! Keys and values that stay: moved within the pages of a sequence.

pub mod kv_shift;
