//! Embedding: the rows of some tokens, in any format. Parts share the tokens. A table that is also the weight of
//! a product is read from its panels.

use akunu_kernels::kernel::embedding::embedding_lookup;

use crate::call::Call;
use crate::part::Part;

/// `y[t] = table[token[t]]`; an id beyond the table reads its last row.
pub(crate) fn lookup(call: &Call, part: &mut Part) {
    let (n_tokens, table) = embedding_lookup::lookup(&call.args);
    let embedding_lookup::Buffers {
        token: tokens,
        table: weights,
        y,
    } = call.buffers();
    let tokens = tokens.read::<u32>(n_tokens as usize);
    let weights = weights.read::<u8>(table.bytes());
    let panels = call
        .panels
        .find(call.slices[embedding_lookup::Buffers::PLACES.table]);
    let panels = panels.filter(|p| (p.shape.rows, p.shape.cols) == (table.rows, table.cols));
    for at in part.range(tokens.len()) {
        let row = (tokens[at] as usize).min(table.rows - 1);
        // SAFETY: `own`: each row of y belongs to one part.
        let y = unsafe { y.write::<f32>(at * table.cols, table.cols) };
        match panels {
            Some(panels) => panels.row(row, y),
            None => y.copy_from_slice(&table.row(weights, row)),
        }
    }
}
