//! The KV cache: (n_kv_heads, max_seq_len, head_dim) halves for k and as many for v.
//!
//! The slots of a head are a ring: position p lies in slot `p % max_seq_len`. In a cache for the whole
//! context nothing ever wraps; layers with a sliding window have a smaller ring.

pub mod kv_cache_shift;
pub mod kv_cache_write;
