//! The random choice among a few candidates. Parts share the rows.

use akunu_kernels::kernel::sampling::gumbel_topk;
use akunu_types::params::{GumbelTopKParams, SamplingRule};

use super::Choices;
use crate::call::Call;
use crate::part::Part;

/// Draws a token from the candidates of each row, by the rule of its sequence.
pub(crate) fn gumbel_topk(call: &Call, part: &mut Part) {
    let p: GumbelTopKParams = call.params();
    let [values, ids, tokens, history, outputs, rows, rules] = call.bindings();
    let (n_rows, k) = (p.n_rows as usize, p.k as usize);
    let (values, ids) = (values.read(n_rows * k), ids.read::<u32>(n_rows * k));
    let rules = rules.read::<SamplingRule>(p.n_sequences as usize);
    let choices = Choices {
        outputs: outputs.read(n_rows),
        rows: rows.read(p.row_capacity as usize),
        tokens,
        history,
        history_stride: p.history_stride as usize,
    };
    for at in part.range(n_rows) {
        let row = choices.row(at);
        let token = if row.is_active() {
            let (values, ids) = (&values[at * k..][..k], &ids[at * k..][..k]);
            ids[gumbel_topk::draw(&rules[row.sequence as usize], row.position, values, ids)]
        } else {
            0
        };
        // SAFETY: parts have different rows.
        unsafe { choices.store(at, token) };
    }
}
