//! Lowering: from the operations of a program to kernels of the table.
//!
//! [`Rules`] say how the operations of a program become kernels on one kind of device: [`PlainRules`] are the specification, one
//! kernel an operation, for any rows. The twin's device runs it, and the CPU device, which decides for itself how a kernel is
//! done. [`GpuRules`] and [`NvidiaRules`] choose among kernels by shape and chip, as pure functions of both. A GPU says which rules
//! are its own ([`Backend::rules`](crate::gpu::Backend::rules)).
//!
//! All params are for a full step; the fields that depend on the number of rows are listed with them.

mod adapter;
mod attention;
mod cache;
mod choice;
mod encoder;
mod experts;
mod gpu;
mod grouped;
mod input;
mod liveness;
mod lowering;
mod normed;
pub mod nvidia;
mod operation;
mod plain;
mod product;
mod rows;
mod state;

use akunu_program::{Buffer, Program};

pub use self::gpu::GpuRules;
pub use self::lowering::{ExpertKernels, Lowering, ProductShape, Rules};
pub use self::nvidia::NvidiaRules;
pub use self::plain::PlainRules;
use crate::plan::KernelCall;

/// One kernel an operation.
pub fn plain(program: &Program) -> Vec<KernelCall> {
    by_rules(program, &PlainRules, None)
}

/// The kernels of a program by these rules. What one kernel of an operation leaves for the next lies in `scratch`, which has
/// [`scratch_bytes`], at first zeros; without it no such kernels are chosen.
pub fn by_rules(program: &Program, rules: &dyn Rules, scratch: Option<Buffer>) -> Vec<KernelCall> {
    lowered(program, rules, scratch).calls()
}

/// Bytes of memory that [`by_rules`] wants for what kernels of one operation leave for each other. Programs that run one after
/// another can share it.
pub fn scratch_bytes(program: &Program, rules: &dyn Rules) -> usize {
    let any = Buffer {
        id: u32::MAX,
        generation: 0,
        len: usize::MAX,
        writable: true,
    };
    lowered(program, rules, Some(any)).scratch_bytes()
}

fn lowered<'a>(
    program: &'a Program,
    rules: &'a dyn Rules,
    scratch: Option<Buffer>,
) -> Lowering<'a> {
    let mut lowering = Lowering::new(program, rules, scratch);
    let mut ops = program.ops.as_slice();
    while let Some(op) = ops.first() {
        let fused = rules.fuse(&mut lowering, ops);
        let n_ops = fused
            .or_else(|| lowering.products_of_one_vector(ops))
            .unwrap_or_else(|| {
                lowering.op(op);
                1
            });
        ops = &ops[n_ops..];
    }
    lowering
}
