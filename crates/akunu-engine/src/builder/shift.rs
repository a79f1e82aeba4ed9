//! Keys and values that move down in their sequence.

use akunu_program::{Op, Rope, op};

use super::turn::{heads, rope};
use super::{AttentionMemory, LayerMemory, SeenKeys};
use crate::weights::Bound;

/// What becomes of keys that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// They are turned back by as many positions: their tokens come earlier in the text than before.
    Turned,
    /// They stay as they are: they were turned to where they go.
    AsTheyAre,
}

/// Moves slots of a sequence down in every layer.
pub(crate) fn shift(
    model: &Bound,
    memory: &[LayerMemory],
    [sequence, keep, shift, len]: [u32; 4],
    keys: Keys,
) -> Vec<Op> {
    let memory = memory.iter().filter_map(|layer| layer.mixer.attention());
    let layers = model.attention().zip(memory);
    // The keys of a layer without its own move with those of the layer that has them.
    let layers = layers.filter(|(attention, _)| attention.keys_of.is_none());
    let of_layer = layers.filter_map(|(attention, memory): (_, &AttentionMemory)| {
        let SeenKeys::Pages { cache, centre } = memory.keys else {
            return None;
        };
        let rope = rope(attention, memory.divisors);
        // What is stored of a key that does not turn stays as it is.
        let (rope, centre) = match keys {
            Keys::Turned => (rope, centre),
            Keys::AsTheyAre => (
                Rope {
                    freq_scale: 0.0,
                    ..rope
                },
                None,
            ),
        };
        Some(Op::Shift(op::Shift {
            cache,
            heads: heads(attention),
            rope,
            centre,
            sequence,
            keep,
            shift,
            len,
        }))
    });
    of_layer.collect()
}
