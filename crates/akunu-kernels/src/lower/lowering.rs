//! Rules, and a program that is being lowered by them.

use akunu_program::{Buffer, Op, Program, Rows, Slice, StepMemory, op};
use akunu_types::DType;

use crate::kernel::convert::half_rows::Order;
use crate::plan::KernelCall;
use crate::table::KernelId;

/// How operations become kernels on one kind of device: pure functions of the operations, their shapes and the chip.
pub trait Rules: Send + Sync {
    /// Lowers operations at the beginning of `ops` in a way of their own, several as one kernel for example; how many. `None`
    /// where the first one is to be lowered by itself.
    fn fuse(&self, lowering: &mut Lowering, ops: &[Op]) -> Option<usize>;

    /// Lowers products at the beginning of `products`, all of one vector, in a way of their own, without their biases; how
    /// many.
    fn products(&self, lowering: &mut Lowering, products: &[&op::Product]) -> Option<usize> {
        let _ = (lowering, products);
        None
    }

    /// The kernel of a product of floats.
    fn product_kernel(&self, shape: &ProductShape) -> KernelId;

    /// The kernels of gate and up and of the last product of experts, where each result reads the weights itself.
    fn expert_kernels(&self, dtype: DType) -> ExpertKernels {
        ExpertKernels {
            gate: KernelId::ExpertGate(dtype),
            down: KernelId::ExpertDown(dtype),
        }
    }

    /// Lowers attention over pages.
    fn attend(&self, lowering: &mut Lowering, attend: &op::Attend);
}

/// The kernels of the products of experts with weights of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertKernels {
    /// Gate and up.
    pub gate: KernelId,
    /// The last product.
    pub down: KernelId,
}

/// What the kernel of a product depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// The format of the weight.
    pub dtype: DType,
    /// Rows of x.
    pub rows: u32,
    /// Outputs.
    pub outputs: u32,
    /// Where x begins in its buffer, in bytes.
    pub x_offset: usize,
}

/// Bytes of counters at the beginning of the scratch memory: zeros, which every kernel that counts there leaves as zeros.
const COUNTERS: usize = 8192;

/// Rows that the scratch memory holds in halves, and how they lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Halved {
    pub rows: Rows,
    pub x: Slice,
    pub order: Order,
}

/// A program being lowered.
pub struct Lowering<'a> {
    pub(super) program: &'a Program,
    pub(super) rules: &'a dyn Rules,
    calls: Vec<KernelCall>,
    /// Memory for what kernels of one operation leave for each other.
    scratch: Option<Buffer>,
    /// How much of it is used at once, at most.
    scratch_bytes: usize,
    /// What the scratch memory holds in halves: the products that follow can read it.
    pub(super) halved: Option<Halved>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        program: &'a Program,
        rules: &'a dyn Rules,
        scratch: Option<Buffer>,
    ) -> Lowering<'a> {
        Lowering {
            program,
            rules,
            calls: Vec::with_capacity(program.ops.len()),
            scratch,
            scratch_bytes: 0,
            halved: None,
        }
    }

    pub(super) fn calls(self) -> Vec<KernelCall> {
        self.calls
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Places for parts of these sizes in the scratch memory, if there is any.
    pub(super) fn scratch<const N: usize>(&mut self, bytes: [usize; N]) -> Option<[Slice; N]> {
        /// Where a part begins: at least what every binding asks for.
        const ALIGNMENT: usize = 256;
        let buffer = self.scratch?;
        let mut end = COUNTERS;
        let places = bytes.map(|bytes| {
            let offset = end;
            end += bytes.next_multiple_of(ALIGNMENT);
            Slice { buffer, offset }
        });
        self.scratch_bytes = self.scratch_bytes.max(end);
        Some(places)
    }

    /// As many bytes of counters, if there is scratch memory and it has so many.
    pub(super) fn counters(&self, bytes: usize) -> Option<Slice> {
        let buffer = self.scratch.filter(|_| bytes <= COUNTERS)?;
        Some(Slice { buffer, offset: 0 })
    }

    /// The buffers of the step, for operations that read rows.
    pub(super) fn step(&self) -> &'a StepMemory {
        match &self.program.step {
            Some(step) => step,
            None => unreachable!("a program with rows says where they lie"),
        }
    }

    /// Adds a kernel behind the others.
    pub(super) fn push(&mut self, call: KernelCall) {
        self.calls.push(call);
    }
}
