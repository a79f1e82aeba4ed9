//! Where a plan needs barriers.
//!
//! Dispatches of a plan may run at the same time as long as none touches bytes that another one
//! writes. Walking through the plan, the ranges that were read and written since the last barrier are
//! remembered; a dispatch that reads what was written, or writes what was read or written, needs a
//! barrier before it, after which nothing needs to be remembered. A repeated plan begins again after
//! its own last dispatch, so the first dispatch always has a barrier.

use std::ops::Range;

use crate::plan::Dispatch;
use crate::table::Access;

/// For each dispatch, whether a barrier must stand before it.
pub(crate) fn barriers(dispatches: &[Dispatch]) -> Vec<bool> {
    let mut since = Touched::default();
    let mut barriers = Vec::with_capacity(dispatches.len());
    for (index, dispatch) in dispatches.iter().enumerate() {
        let own = Touched::by(dispatch);
        let barrier = index == 0 || since.collides(&own);
        if barrier {
            since = own;
        } else {
            since.extend(own);
        }
        barriers.push(barrier);
    }
    barriers
}

/// Whether two ranges have a byte in common.
pub(crate) fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Bytes of one buffer.
struct Span {
    buffer: u32,
    bytes: Range<usize>,
}

impl Span {
    fn meets(&self, other: &Span) -> bool {
        self.buffer == other.buffer && overlap(&self.bytes, &other.bytes)
    }
}

/// What some dispatches read and write.
#[derive(Default)]
struct Touched {
    read: Vec<Span>,
    written: Vec<Span>,
}

impl Touched {
    /// What one dispatch touches at most.
    fn by(dispatch: &Dispatch) -> Touched {
        let mut touched = Touched::default();
        let extents = dispatch.extents().into_iter();
        let slices = dispatch.bindings.iter().zip(extents);
        for ((slice, bytes), binding) in slices.zip(dispatch.kernel.row().bindings) {
            let buffer = slice.buffer.id;
            let list = match binding.access {
                Access::Read => &mut touched.read,
                // What is written may meet nothing, so that it does not matter whether it is read too.
                Access::Write | Access::ReadWrite => &mut touched.written,
            };
            list.push(Span { buffer, bytes });
        }
        touched
    }

    /// Whether one writes what the other touches.
    fn collides(&self, other: &Touched) -> bool {
        let meet = |a: &[Span], b: &[Span]| a.iter().any(|a| b.iter().any(|b| a.meets(b)));
        meet(&self.written, &other.read)
            || meet(&self.read, &other.written)
            || meet(&self.written, &other.written)
    }

    fn extend(&mut self, other: Touched) {
        self.read.extend(other.read);
        self.written.extend(other.written);
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::activation::gate;
    use crate::kernel::matmul::product;
    use akunu_types::DType;
    use akunu_types::params::{ElementwiseParams, GEMMParams};

    use crate::pipeline::HostPipelines;
    use crate::{KernelCall, KernelId, PipelineKey, Plan};
    use akunu_program::{Buffer, Room, Slice};

    /// Elements of each vector of the tests.
    const COUNT: u32 = 8;
    const BYTES: usize = 4 * COUNT as usize;

    /// One of the vectors, which lie one after another in one buffer, so that only their ranges tell them apart.
    fn vector(n: usize) -> Slice {
        let memory = Buffer {
            id: 0,
            generation: 0,
            len: 64 * BYTES,
            writable: true,
        };
        Slice {
            buffer: memory,
            offset: n * BYTES,
        }
    }

    /// `vector[y] = vector[a] + vector[b]`.
    fn add([a, b, y]: [usize; 3]) -> KernelCall {
        let params = ElementwiseParams {
            count: COUNT,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::SiluGate);
        let [gate, up, y] = [a, b, y].map(vector);
        KernelCall::new(key, &params, gate::Buffers { gate, up, y }, "add")
    }

    /// `vector[y] = matrix · vector[x]`.
    fn product(matrix: usize, x: usize, y: usize) -> KernelCall {
        let params = GEMMParams {
            M: 1,
            N: COUNT,
            K: COUNT,
            lda: COUNT,
            ldb: COUNT,
            ldc: COUNT,
            alpha: 1.0,
            beta: 0.0,
        };
        let key = PipelineKey::plain(KernelId::Gemv(DType::F32));
        let [x, weight, y] = [x, matrix, y].map(vector);
        KernelCall::new(key, &params, product::Buffers { x, weight, y }, "product")
    }

    fn barriers(calls: Vec<KernelCall>) -> Vec<bool> {
        let n = calls.len();
        let plan = Plan::make(calls, Room::default(), &mut HostPipelines::default()).unwrap();
        (0..n).map(|index| plan.barrier_before(index)).collect()
    }

    #[test]
    fn each_kind_of_hazard_has_a_barrier() {
        let hazards = [
            ("read after write", [0, 1, 2], [2, 3, 4]),
            ("write after read", [0, 1, 2], [3, 4, 0]),
            ("write after write", [0, 1, 2], [3, 4, 2]),
        ];
        for (kind, first, second) in hazards {
            let calls = vec![add(first), add(second)];
            assert_eq!(barriers(calls), [true, true], "{kind}");
        }
    }

    #[test]
    fn what_only_reads_the_same_or_writes_beside_needs_none() {
        let calls = vec![add([0, 1, 2]), add([0, 1, 3])];
        assert_eq!(barriers(calls), [true, false]);
    }

    /// A hazard with a dispatch that is not the last one; and one that the barrier has settled.
    #[test]
    fn all_since_the_last_barrier_count_and_none_before_it() {
        let calls = vec![
            add([0, 1, 2]),
            add([0, 1, 3]),
            add([2, 1, 4]),
            add([3, 1, 5]),
        ];
        assert_eq!(barriers(calls), [true, false, true, false]);
    }

    /// The three products read one vector and write three that lie side by side; then one reads them.
    #[test]
    fn queries_keys_and_values_are_computed_at_once() {
        let n = COUNT as usize;
        let mut calls: Vec<KernelCall> = (0..3).map(|at| product(8 + n * at, 0, 1 + at)).collect();
        calls.push(add([1, 2, 4]));
        assert_eq!(barriers(calls), [true, false, false, true]);
    }
}
