//! Masks of grammars: most words of a mask forbid all of their tokens, which is a fill. Parts share the words of all rows.

use akunu_kernels::kernel::sampling::grammar_bitmask;
use akunu_types::params::GrammarBitmaskParams;

use crate::call::Call;
use crate::part::Part;

/// Logits whose bit is 0 become -inf, in the rows that have a mask.
pub(crate) fn grammar_bitmask(call: &Call, part: &mut Part) {
    let p: GrammarBitmaskParams = call.params();
    let grammar_bitmask::Buffers {
        logits,
        masks,
        mask_rows,
    } = call.buffers();
    let vocab_size = p.vocab_size as usize;
    let n_words = vocab_size.div_ceil(32);
    let masks = masks.read::<u32>(p.n_masks as usize * n_words);
    let mask_rows = mask_rows.read::<u32>(p.n_rows as usize);
    for at in part.range(mask_rows.len() * n_words) {
        let (row, word) = (at / n_words, at % n_words);
        if mask_rows[row] >= p.n_masks {
            continue;
        }
        let mask = masks[mask_rows[row] as usize * n_words + word];
        let (first, end) = (32 * word, vocab_size.min(32 * word + 32));
        // SAFETY: `own`: parts have different words.
        let logits = unsafe { logits.write::<f32>(row * vocab_size + first, end - first) };
        forbid(logits, mask);
    }
}

/// Forbids the tokens of one word.
pub(super) fn forbid(logits: &mut [f32], mask: u32) {
    match mask {
        0 => logits.fill(f32::NEG_INFINITY),
        u32::MAX => {}
        mask => {
            for (bit, logit) in logits.iter_mut().enumerate() {
                if mask >> bit & 1 == 0 {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
    }
}
