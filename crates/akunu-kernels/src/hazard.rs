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

/// For each dispatch, whether a barrier must stand before it at positions `0 ..= max_position`.
pub(crate) fn barriers(dispatches: &[Dispatch], max_position: u32) -> Vec<bool> {
    let mut since = Touched::default();
    let mut barriers = Vec::with_capacity(dispatches.len());
    for (index, dispatch) in dispatches.iter().enumerate() {
        let own = Touched::by(dispatch, max_position);
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
    fn by(dispatch: &Dispatch, max_position: u32) -> Touched {
        let mut touched = Touched::default();
        let extents = dispatch.extents(max_position).into_iter();
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
    use akunu_types::DType;
    use akunu_types::params::{ElementwiseParams, GEMMParams};

    use crate::plan::Slice;
    use crate::twin_device::TwinDevice;
    use crate::{Buffer, ChipConfig, Device, Dispatch, KernelId, PipelineKey, Plan};

    /// Elements of each vector of the tests.
    const COUNT: u32 = 8;
    const BYTES: usize = 4 * COUNT as usize;

    /// Vectors one after another in one buffer, so that only their ranges tell them apart.
    struct Bench {
        device: TwinDevice,
        memory: Buffer,
    }

    impl Bench {
        fn new() -> Bench {
            let mut device = TwinDevice::new(ChipConfig::m1());
            let memory = device.allocate(64 * BYTES, "test").unwrap();
            Bench { device, memory }
        }

        fn vector(&self, n: usize) -> Slice {
            Slice {
                buffer: self.memory,
                offset: n * BYTES,
            }
        }

        /// `vector[y] = vector[a] + vector[b]`.
        fn add(&mut self, [a, b, y]: [usize; 3]) -> Dispatch {
            let params = ElementwiseParams {
                count: COUNT,
                ..Default::default()
            };
            let bindings = [a, b, y].map(|n| self.vector(n)).to_vec();
            let key = PipelineKey::plain(KernelId::VectorAdd);
            Dispatch::new(&mut self.device, key, &params, bindings, "add").unwrap()
        }

        /// `vector[y] = matrix · vector[x]`.
        fn product(&mut self, matrix: usize, x: usize, y: usize) -> Dispatch {
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
            let bindings = [x, matrix, y].map(|n| self.vector(n)).to_vec();
            let key = PipelineKey::plain(KernelId::Gemv(DType::F32));
            Dispatch::new(&mut self.device, key, &params, bindings, "product").unwrap()
        }
    }

    fn barriers(dispatches: Vec<Dispatch>) -> Vec<bool> {
        let n = dispatches.len();
        let plan = Plan::check(dispatches, 0).unwrap();
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
            let mut bench = Bench::new();
            let dispatches = vec![bench.add(first), bench.add(second)];
            assert_eq!(barriers(dispatches), [true, true], "{kind}");
        }
    }

    #[test]
    fn what_only_reads_the_same_or_writes_beside_needs_none() {
        let mut bench = Bench::new();
        let dispatches = vec![bench.add([0, 1, 2]), bench.add([0, 1, 3])];
        assert_eq!(barriers(dispatches), [true, false]);
    }

    /// A hazard with a dispatch that is not the last one; and one that the barrier has settled.
    #[test]
    fn all_since_the_last_barrier_count_and_none_before_it() {
        let mut bench = Bench::new();
        let dispatches = vec![
            bench.add([0, 1, 2]),
            bench.add([0, 1, 3]),
            bench.add([2, 1, 4]),
            bench.add([3, 1, 5]),
        ];
        assert_eq!(barriers(dispatches), [true, false, true, false]);
    }

    /// The three products read one vector and write three that lie side by side; then one reads them.
    #[test]
    fn queries_keys_and_values_are_computed_at_once() {
        let mut bench = Bench::new();
        let n = COUNT as usize;
        let mut dispatches: Vec<Dispatch> = (0..3)
            .map(|at| bench.product(8 + n * at, 0, 1 + at))
            .collect();
        dispatches.push(bench.add([1, 2, 4]));
        assert_eq!(barriers(dispatches), [true, false, false, true]);
    }
}
