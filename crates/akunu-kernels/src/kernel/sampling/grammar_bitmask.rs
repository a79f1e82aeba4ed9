//! `grammar_bitmask_f32`: of the rows of logits that have a mask, those whose bit is 0 become -inf, in place.
//!
//! ```text
//! logits[i][t] = -inf   if  mask_rows[i] < n_masks  and  bit t % 32 of masks[mask_rows[i]][t / 32] is 0
//! ```

use akunu_types::params::GrammarBitmaskParams;

use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: GrammarBitmaskParams at 3) {
        logits: change f32 = [p.n_rows, p.vocab_size],
        masks: read u32 = [p.n_masks, p.vocab_size.div_ceil(32)],
        mask_rows: read u32 = [p.n_rows],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("grammar_bitmask_f32", ""),
    family: Family::Sampling,
    source: "grammar_bitmask",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: GrammarBitmaskParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise(p.vocab_size, chip);
    Launch::new([grid[0], p.n_rows, 1], threads)
}

fn twin(t: &mut Twin) {
    let p: GrammarBitmaskParams = t.params();
    let Slices {
        logits,
        masks,
        mask_rows,
    } = Slices::of(t);
    let n_words = p.vocab_size.div_ceil(32) as usize;
    let rows = logits.chunks_exact_mut(p.vocab_size as usize);
    for (logits, &mask_row) in rows.zip(mask_rows) {
        if mask_row >= p.n_masks {
            continue;
        }
        let mask = &masks[mask_row as usize * n_words..][..n_words];
        for (token, logit) in logits.iter_mut().enumerate() {
            if mask[token / 32] >> (token % 32) & 1 == 0 {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use akunu_program::Masks;

    /// Logits stay or become -inf: exact.
    pub fn all() -> Vec<Case> {
        let case = |vocab_size: u32, mask_rows: &[u32]| {
            let mut rng = Rng::new(u64::from(vocab_size));
            let n_masks = 3u32;
            let n_rows = mask_rows.len() as u32;
            let logits = rng.floats((n_rows * vocab_size) as usize, 5.0);
            let words = n_masks * vocab_size.div_ceil(32);
            let masks: Vec<u32> = (0..words).map(|_| rng.bits() as u32).collect();
            let params = GrammarBitmaskParams {
                n_rows,
                vocab_size,
                n_masks,
                ..Default::default()
            };
            Case::new(format!("{n_rows} rows of {vocab_size}"), &params, 0.0)
                .bind(&logits)
                .bind(&masks)
                .bind(mask_rows)
        };
        vec![
            case(1, &[0]),
            case(31, &[1]),
            case(32, &[2, 0]),
            case(33, &[Masks::NONE, 1, 1]),
            case(1000, &[2, Masks::NONE, 0, 3, 1]),
        ]
    }
}
