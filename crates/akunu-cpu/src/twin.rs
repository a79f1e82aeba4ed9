//! A kernel that has no fast form runs its twin, in one thread.

use crate::call::Call;
use crate::part::Part;

/// Runs the row's twin as part 0; the other parts do nothing.
pub(crate) fn run(call: &Call, part: &mut Part) {
    if part.index != 0 {
        return;
    }
    let row = call.kernel.row();
    let required = (row.required)(&call.args);
    let whole: Vec<&[u8]> = (call.places.iter().zip(&required))
        .map(|(place, &len)| place.read(len))
        .collect();
    // The twin changes copies of what it writes.
    let written = match row.run_twin(call.args, &whole) {
        Ok(written) => written,
        Err(short) => unreachable!("{}: the plan was checked: {short}", row.name()),
    };
    for (at, bytes) in written {
        let bytes = bytes.as_ref();
        // SAFETY: only this part touches the binding, and the twin, which had it to read, has ended.
        unsafe { call.places[at].write::<u8>(0, bytes.len()) }.copy_from_slice(bytes);
    }
}
