//! The kernel table against what Metal sees of a pipeline, in debug builds.
//!
//! On other machines the simulator compares the table with the sources; this compares it with what
//! Apple's compiler made of them.

use objc2::msg_send;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBinding, MTLBindingAccess, MTLBindingType, MTLComputePipelineReflection};

use crate::pipeline::PipelineKey;
use crate::table::KernelRow;

/// Compares each binding that Metal sees with the kernel's row.
pub(super) fn check(
    reflection: &MTLComputePipelineReflection,
    key: &PipelineKey,
) -> Result<(), String> {
    let row = key.kernel.row();
    for binding in &reflection.bindings() {
        // A binding that a constant switched off is there, but not used.
        if binding.r#type() == MTLBindingType::Buffer && binding.isUsed() {
            check_binding(&row, &binding)?;
        }
    }
    Ok(())
}

fn check_binding(row: &KernelRow, binding: &ProtocolObject<dyn MTLBinding>) -> Result<(), String> {
    let (name, index) = (binding.name(), binding.index());
    if index == usize::from(row.params_index) {
        // SAFETY: bindings of type buffer are `MTLBufferBinding`s, which have this property.
        let size: usize = unsafe { msg_send![binding, bufferDataSize] };
        if size == row.params.size {
            return Ok(());
        }
        let known = row.params.size;
        return Err(format!(
            "the params at buffer({index}) have {size} bytes, {known} in the table"
        ));
    }
    let at = u8::try_from(index)
        .ok()
        .and_then(|index| row.binding_at(index));
    let Some(at) = at else {
        return Err(format!("{name} at buffer({index}) is not in the table"));
    };
    let is_written = binding.access() != MTLBindingAccess::ReadOnly;
    if is_written && !row.bindings[at].access.writes() {
        return Err(format!(
            "{name} at buffer({index}) is written, the table says that it is only read"
        ));
    }
    Ok(())
}
