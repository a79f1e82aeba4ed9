//! What operations are lowered to.

use akunu_program::Slice;
use akunu_types::SharedStruct;

use super::params::{Params, RowField};
use crate::pipeline::PipelineKey;
use crate::table::BufferSet;

/// A kernel of the table with all that it is given: what operations are lowered to.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// The kernel and its constants.
    pub key: PipelineKey,
    /// The params, for as many rows as the program has room for.
    pub params: Params,
    /// A place for each binding of the kernel's row, in that order.
    pub bindings: Vec<Slice>,
    /// The fields of the params that depend on the number of rows.
    pub row_fields: Vec<RowField>,
    /// What it does in the model, for traces and errors.
    pub label: &'static str,
}

impl KernelCall {
    /// A call whose params do not depend on the rows of a step. The buffers are those that the kernel declares.
    pub fn new<P: SharedStruct, B: BufferSet<Item = Slice>>(
        key: PipelineKey,
        params: &P,
        buffers: B,
        label: &'static str,
    ) -> KernelCall {
        debug_assert_eq!(
            key.kernel.row().bindings,
            B::BINDINGS,
            "the buffers of another kernel"
        );
        KernelCall {
            key,
            params: Params::of(params),
            bindings: buffers.in_order(),
            row_fields: Vec::new(),
            label,
        }
    }

    /// The same with fields that depend on the rows.
    pub fn with_rows(self, row_fields: impl Into<Vec<RowField>>) -> KernelCall {
        KernelCall {
            row_fields: row_fields.into(),
            ..self
        }
    }
}
