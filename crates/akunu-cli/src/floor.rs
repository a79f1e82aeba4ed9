//! The floor of decoding: each weight is read once a token, so nothing is faster than the memory.

use akunu::Model;
use akunu_gguf::WeightStore;

/// Bytes of weights that one token reads: of experts, those that it uses. Of a token embedding that is not the output layer too, it
/// reads one row, which does not count.
pub fn weight_bytes(store: &WeightStore) -> u64 {
    let tied = store.has_tied_embeddings();
    let is_read = |name: &str| tied || name != "token_embedding.weight";
    let active = akunu_arch::Model::from_store(store)
        .ok()
        .and_then(|model| model.active_weights(store, is_read));
    if let Some(active) = active {
        return active.bytes;
    }
    let read = store.iter().filter(|weight| is_read(weight.name));
    read.map(|weight| weight.size() as u64).sum()
}

/// Bytes of keys and values that a token at this position reads, and of the state that it reads and writes.
pub fn cache_bytes(model: &Model, position: u32) -> u64 {
    let config = model.config();
    let keys_and_values = config.kv_bytes_read(position.max(1), model.kv_format());
    keys_and_values + 2 * config.state_bytes()
}
