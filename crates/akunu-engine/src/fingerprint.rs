//! A hash that identifies a model: of the shape, and of a sample of each weight.
//!
//! Keys and values are useful only to the model that computed them. Reading all weights would
//! take seconds, so of each only the beginning counts, besides its name, type and size: two different
//! quantisations or training runs differ in the first bytes of some weight.

use akunu_arch::Model;
use akunu_gguf::{Data, WeightStore};
use sha2::{Digest, Sha256};

/// Bytes of each weight that count.
const SAMPLE: usize = 64;

pub(crate) fn of(store: &WeightStore, model: &Model) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(format!("{model:?}"));
    for weight in store.iter() {
        let bytes = match &weight.data {
            Data::Plain(span) => span.bytes,
            Data::Mlx(mlx) => mlx.packed.bytes,
            Data::Converted(converted) => converted.packed(),
        };
        hash.update(weight.name);
        hash.update(weight.dtype.to_string());
        hash.update((weight.size() as u64).to_le_bytes());
        hash.update(&bytes[..bytes.len().min(SAMPLE)]);
    }
    hash.finalize().into()
}
