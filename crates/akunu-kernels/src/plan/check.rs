//! The checks of one dispatch.

use super::call::KernelCall;
use super::dispatch::Dispatch;
use super::error::PlanError;
use crate::hazard::overlap;

pub(super) fn call(index: usize, call: &KernelCall) -> Result<(), PlanError> {
    let row = call.key.kernel.row();
    let kernel = || row.name();
    let (found, wanted) = (call.bindings.len(), row.bindings.len());
    if found != wanted {
        return Err(PlanError::BindingCount {
            index,
            kernel: kernel(),
            found,
            wanted,
        });
    }
    let (found, wanted) = (call.params.as_bytes().len(), row.params.size);
    if found != wanted {
        return Err(PlanError::ParamsSize {
            index,
            kernel: kernel(),
            found,
            wanted,
        });
    }
    let ends = call
        .row_fields
        .iter()
        .map(|field| usize::from(field.offset) + 4);
    let end = ends.max().unwrap_or(0);
    if end > row.params.size {
        return Err(PlanError::RowField {
            index,
            kernel: kernel(),
            end,
            size: row.params.size,
        });
    }
    if let Some((extra, _)) = call
        .key
        .constants
        .iter()
        .find(|(c, _)| !row.constants.contains(c))
    {
        let constant = extra.spec().name;
        return Err(PlanError::UnknownConstant {
            index,
            kernel: kernel(),
            constant,
        });
    }
    Ok(())
}

pub(super) fn launch(index: usize, dispatch: &Dispatch) -> Result<(), PlanError> {
    let launch = dispatch.launch;
    let threads = launch.n_threads();
    if launch.grid.contains(&0) || !(1..=1024).contains(&threads) {
        return Err(PlanError::Launch {
            index,
            kernel: dispatch.kernel.row().name(),
            launch,
        });
    }
    Ok(())
}

pub(super) fn bindings(index: usize, dispatch: &Dispatch) -> Result<(), PlanError> {
    let row = dispatch.kernel.row();
    let extents = dispatch.extents();
    for (at, (binding, slice)) in row.bindings.iter().zip(&dispatch.bindings).enumerate() {
        let (kernel, name) = (|| row.name(), binding.name);
        let offset = slice.offset;
        if extents[at].end > slice.buffer.len {
            return Err(PlanError::TooSmall {
                index,
                kernel: kernel(),
                binding: name,
                needed: extents[at].len(),
                offset,
                len: slice.buffer.len,
            });
        }
        if !offset.is_multiple_of(binding.element.alignment()) {
            return Err(PlanError::Misaligned {
                index,
                kernel: kernel(),
                binding: name,
                offset,
            });
        }
        if binding.access.writes() && !slice.buffer.writable {
            return Err(PlanError::ReadOnly {
                index,
                kernel: kernel(),
                binding: name,
            });
        }
        for (other, other_binding) in row.bindings.iter().enumerate().skip(at + 1) {
            let same = dispatch.bindings[other].buffer.id == slice.buffer.id;
            let written = binding.access.writes() || other_binding.access.writes();
            if same && written && overlap(&extents[at], &extents[other]) {
                let (a, b) = (name, other_binding.name);
                return Err(PlanError::Overlap {
                    index,
                    kernel: kernel(),
                    a,
                    b,
                });
            }
        }
    }
    Ok(())
}
