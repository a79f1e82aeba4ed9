//! The step from one token to the next: a few numbers of each row.

use akunu_kernels::kernel::sampling::advance_rows;
use akunu_types::params::{AdvanceRowsParams, Row};

use crate::call::Call;
use crate::part::Part;

/// Records the token of each active row and moves the row on by one. Part 0 does it alone.
pub(crate) fn advance_rows(call: &Call, part: &mut Part) {
    if part.index != 0 {
        return;
    }
    let p: AdvanceRowsParams = call.params();
    let advance_rows::Buffers {
        rows,
        tokens,
        chosen,
    } = call.buffers();
    let (n_rows, stride) = (p.n_rows as usize, p.chosen_stride as usize);
    // SAFETY: `own`: part 0 alone touches rows and record.
    let (rows, chosen) = unsafe {
        let record = p.max_steps as usize * stride;
        (rows.write::<Row>(0, n_rows), chosen.write::<u32>(0, record))
    };
    let rows = rows.iter_mut().zip(tokens.read::<u32>(n_rows));
    for (at, (row, &token)) in rows.enumerate().filter(|(_, (row, _))| row.is_active()) {
        if let Some(round) = row.step.checked_rem(p.max_steps) {
            chosen[round as usize * stride + at] = token;
        }
        row.advance(1);
    }
}
