//! The shape of a model's attention, and the memory that its keys and values take.
//!
//! ```text
//! bytes = Σ over layers  kv_heads * (bytes of a key + bytes of a value) * tokens
//! ```
//!
//! where `tokens` is the context, or the window in a layer that sees no further.

use akunu_arch::{WindowPattern, arch};
use akunu_types::KvFormat;
use serde::Serialize;

/// How a model attends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// Heads that ask; the largest where layers differ.
    pub heads: u64,
    /// Heads that hold keys and values, for each layer.
    pub kv_heads: Vec<u64>,
    pub key_length: u64,
    pub value_length: u64,
    /// Whether a token sees only those before it. Without that, nothing is cached.
    pub causal: bool,
    /// How far back a token sees in the layers that have a window.
    pub window: Option<u64>,
    /// Which layers have the window. Empty when that is not known: then no layer is counted as smaller.
    pub windowed: Vec<bool>,
}

impl Attention {
    /// Bytes of the keys and values for this many tokens; `None` when nothing is cached, when the heads do not fit
    /// the format, or when the numbers are absurd.
    pub fn kv_bytes(&self, context: u64, format: KvFormat) -> Option<u64> {
        if !self.causal {
            return None;
        }
        let mut per_token_and_head = 0_u64;
        for length in [self.key_length, self.value_length] {
            // Larger heads than this are in no model, and twice as many still fit the number of bytes.
            let length = u32::try_from(length).ok().filter(|&n| n <= 1 << 20)?;
            if !format.takes(length) {
                return None;
            }
            per_token_and_head += format.bytes_per_slot(length) as u64;
        }
        let mut total = 0_u64;
        for (layer, &kv_heads) in self.kv_heads.iter().enumerate() {
            let layer = per_token_and_head
                .checked_mul(kv_heads)?
                .checked_mul(self.tokens_kept(layer, context))?;
            total = total.checked_add(layer)?;
        }
        Some(total)
    }

    fn tokens_kept(&self, layer: usize, context: u64) -> u64 {
        match (self.window, self.windowed.get(layer)) {
            (Some(window), Some(true)) => context.min(window),
            _ => context,
        }
    }
}

/// Which of `layers` layers have a window, when every `pattern`th layer has none.
pub fn every_nth_is_global(pattern: usize, layers: usize) -> Vec<bool> {
    (1..=layers)
        .map(|layer| pattern == 0 || layer % pattern != 0)
        .collect()
}

/// Which layers of this architecture have a window, as far as we know it. `architecture` is GGUF's name
/// or that of `config.json`.
pub fn known_windows(architecture: &str, layers: usize) -> Vec<bool> {
    let known = arch::by_gguf_name(architecture).or_else(|| arch::by_model_type(architecture));
    match known.map(|arch| arch.window) {
        Some(WindowPattern::AllButEvery { period }) => every_nth_is_global(period as usize, layers),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gemma3_270m() -> Attention {
        Attention {
            heads: 4,
            kv_heads: vec![1; 18],
            key_length: 256,
            value_length: 256,
            causal: true,
            window: Some(512),
            windowed: known_windows("gemma3", 18),
        }
    }

    /// 15 local layers keep 512 tokens, 3 global ones keep all; 1024 bytes a token and layer.
    #[test]
    fn windows_make_the_cache_smaller() {
        let attention = gemma3_270m();
        assert_eq!(
            attention.windowed.iter().filter(|&&local| local).count(),
            15
        );
        assert_eq!(
            attention.kv_bytes(4096, KvFormat::F16),
            Some(1024 * (15 * 512 + 3 * 4096))
        );
        assert_eq!(
            attention.kv_bytes(100, KvFormat::F16),
            Some(1024 * 18 * 100),
            "a short context fits any window"
        );
    }

    /// 256 numbers of a byte and 8 scales of two; a head of 80 is no whole number of blocks.
    #[test]
    fn eight_bits_are_for_heads_that_fit() {
        let attention = gemma3_270m();
        let per_token = attention.kv_bytes(1, KvFormat::Q8);
        assert_eq!(per_token, Some(2 * (256 + 16) * 18));
        let attention = Attention {
            key_length: 80,
            ..gemma3_270m()
        };
        assert_eq!(attention.kv_bytes(1, KvFormat::Q8), None);
    }

    #[test]
    fn a_window_of_unknown_layers_saves_nothing() {
        let attention = Attention {
            windowed: Vec::new(),
            ..gemma3_270m()
        };
        assert_eq!(
            attention.kv_bytes(4096, KvFormat::F16),
            Some(1024 * 18 * 4096)
        );
    }

    #[test]
    fn an_encoder_caches_nothing_and_absurd_numbers_do_not_overflow() {
        let encoder = Attention {
            causal: false,
            ..gemma3_270m()
        };
        assert_eq!(encoder.kv_bytes(512, KvFormat::F16), None);
        let absurd = Attention {
            key_length: u64::MAX / 2,
            ..gemma3_270m()
        };
        assert_eq!(absurd.kv_bytes(512, KvFormat::F16), None);
        let attention = Attention {
            window: None,
            ..gemma3_270m()
        };
        assert_eq!(attention.kv_bytes(u64::MAX, KvFormat::F16), None);
    }
}
