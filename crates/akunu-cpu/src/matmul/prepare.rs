//! Laying out the weights of a plan, when it is loaded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use akunu_kernels::kernel::experts::{Experts, expert_down, expert_gate};
use akunu_kernels::kernel::matmul::gemv_gated;
use akunu_kernels::kernel::matmul::product::{self, Product};
use akunu_kernels::table::Args;
use akunu_kernels::weight::WeightLayout;
use akunu_kernels::{KernelId, Plan};
use akunu_program::{DeviceError, Slice};

use super::expert_stack::{is_of_experts, of_expert};
use super::in_file::{InFile, Sizes};
use super::select;
use crate::isa::{Isa, Level};
use crate::kernel::attention;
use crate::memory::{Buffers, Pages, no_memory};
use crate::panels::matrix::{PackedMatrix, PackedShape};
use crate::panels::pack::Source;
use crate::panels::{Panels, key};
use crate::part::Part;
use crate::pool::ThreadPool;

/// Where the weights stand among the bindings of a product that reads panels.
fn weight_bindings(kernel: KernelId, isa: Isa) -> &'static [usize] {
    match kernel {
        _ if select(kernel, isa).is_none() => &[],
        KernelId::ExpertGate(_) => {
            const PLACES: expert_gate::Buffers<usize> = expert_gate::Buffers::PLACES;
            &[PLACES.gate, PLACES.up]
        }
        KernelId::ExpertDown(_) => &[expert_down::Buffers::PLACES.weight],
        KernelId::GemvSilu(_) | KernelId::GemvGelu(_) => &[gemv_gated::Buffers::PLACES.weight],
        _ => &[product::Buffers::PLACES.weight],
    }
}

/// The matrices at a binding: one, or that of each expert.
fn matrices(kernel: KernelId, at: usize, args: &Args) -> Vec<(usize, WeightLayout)> {
    match kernel {
        KernelId::ExpertGate(_) | KernelId::ExpertDown(_) => {
            let experts = Experts::of(args);
            let stack = if at == expert_gate::Buffers::PLACES.up {
                experts.second
            } else {
                experts.first
            };
            (0..experts.params.n_experts)
                .map(|expert| of_expert(&experts, stack, expert))
                .collect()
        }
        _ => vec![(0, Product::of(args).weight)],
    }
}

/// If a product is one of experts, how many of them a token uses, and of how many.
fn used(kernel: KernelId, args: &Args) -> Option<[u32; 2]> {
    is_of_experts(kernel).then(|| {
        let params = Experts::of(args).params;
        [params.n_used, params.n_experts.max(1)]
    })
}

/// Bytes of the panels of weights.
fn sizes(wanted: &[Wanted]) -> Sizes {
    let mut sizes = Sizes::default();
    for w in wanted {
        let bytes = w.shape.bytes() as u64;
        match w.used {
            None => sizes.others += bytes,
            Some([used, count]) => {
                sizes.experts += bytes;
                sizes.of_token += bytes * u64::from(used) / u64::from(count);
            }
        }
    }
    sizes
}

/// Bytes of the file that all parts together read between two times that they give pages back.
const BYTES_AT_ONCE: usize = 16 << 20;

/// A weight that has no panels yet.
struct Wanted<'a> {
    weight: Slice,
    /// Which matrix of a stack.
    expert: u32,
    /// Where it begins in the weight.
    first: usize,
    source: Source<'a>,
    shape: PackedShape,
    /// If it is an expert's: how many experts a token uses, and of how many.
    used: Option<[u32; 2]>,
}

/// Threads, memory and the way to stop while weights are laid out.
pub(crate) struct Means<'a> {
    pub pool: &'a mut ThreadPool,
    /// Bytes of memory that are free, where that is known.
    pub free: Option<u64>,
    /// Ends it early, with [`DeviceError::Stopped`]: a large model takes seconds.
    pub stop: Option<&'a AtomicBool>,
}

impl Panels {
    /// Lays out the weights of a plan's products that are not laid out yet, and makes room for tiles. Experts that do not fit into
    /// the free memory stay in the file, which [`Panels::in_file`] says from then on.
    pub fn prepare(
        &mut self,
        plan: &Plan,
        buffers: &Buffers,
        (level, exact): (Level, bool),
        means: Means,
    ) -> Result<(), DeviceError> {
        let mut wanted: Vec<Wanted> = Vec::new();
        let (mut tiles, mut sums) = (0, 0);
        for dispatch in plan.dispatches() {
            if attention::is_attention(dispatch.kernel) {
                let row = dispatch.kernel.row();
                let args = row.args(dispatch.params.as_bytes(), &dispatch.constants);
                sums = sums.max(attention::shared_len(&args) * size_of::<f32>());
            }
            let row = dispatch.kernel.row();
            let args = row.args(dispatch.params.as_bytes(), &dispatch.constants);
            for &at in weight_bindings(dispatch.kernel, level.isa()) {
                let slice = dispatch.bindings[at];
                tiles = tiles.max(packed_bytes((level, exact), dispatch.kernel, &args));
                let used = used(dispatch.kernel, &args);
                let known = self.find(slice).is_some()
                    || wanted.iter().any(|w| w.weight == slice)
                    || used.is_some() && self.in_file.is_some();
                if !known && !slice.buffer.writable {
                    let matrices = matrices(dispatch.kernel, at, &args).into_iter().zip(0..);
                    wanted.extend(matrices.filter_map(|(matrix, expert)| {
                        Wanted::of((slice, expert, used), matrix, buffers)
                    }));
                }
            }
        }
        if let Some(in_file) = InFile::decide(sizes(&wanted), means.free) {
            self.in_file = Some(in_file);
            wanted.retain(|w| w.used.is_none());
        }
        self.lay_out(&wanted, buffers, means)?;
        grow(&mut self.tiles, tiles, "tiles")?;
        grow(&mut self.sums, sums, "sums of attention")
    }

    /// Fills the panels of all weights that are wanted. Each part fills those that it will multiply, in memory beside
    /// its core if there are several, and gives the pages of the file back as it goes.
    fn lay_out(
        &mut self,
        wanted: &[Wanted],
        buffers: &Buffers,
        Means { pool, stop, .. }: Means,
    ) -> Result<(), DeviceError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let bytes = wanted.iter().map(|w| w.shape.bytes()).sum();
        let label = "weights in panels";
        let memory = Pages::large(bytes).ok_or_else(|| no_memory(bytes, label))?;
        let memory = Arc::new(memory);
        let mut first = 0;
        let mut matrices = Vec::with_capacity(wanted.len());
        for w in wanted {
            matrices.push(PackedMatrix::new(w.shape, Arc::clone(&memory), first));
            first += w.shape.bytes();
        }
        let is_stopped = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let was_stopped = AtomicBool::new(false);
        let job = |part: &mut Part| {
            for (w, matrix) in wanted.iter().zip(&matrices) {
                let at_once = (BYTES_AT_ONCE / part.count / w.source.panel_bytes()).max(1);
                let own = part.range(w.shape.count());
                for from in own.clone().step_by(at_once) {
                    if is_stopped() {
                        was_stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                    let range = from..own.end.min(from + at_once);
                    // SAFETY: each part has panels of its own, and nobody reads them before the job ends.
                    unsafe { matrix.fill(&w.source, range.clone()) };
                    let read = w.source.bytes_of_panels(range);
                    let first = w.weight.offset + w.first;
                    buffers.forget(w.weight.buffer, first + read.start, read.len());
                }
            }
        };
        pool.run(&job).map_err(|why| DeviceError::Dispatch {
            index: 0,
            kernel: "panels".into(),
            why,
        })?;
        if was_stopped.into_inner() {
            return Err(DeviceError::Stopped);
        }
        // What is left: scales, and pages that belong to two parts.
        for w in wanted {
            for part in w.source.weight.parts() {
                let first = w.weight.offset + w.first;
                buffers.forget(w.weight.buffer, first + part.start, part.len());
            }
        }
        self.matrices
            .extend((wanted.iter().map(|w| key(w.weight, w.expert))).zip(matrices));
        self.matrices.sort_by_key(|(key, _)| *key);
        Ok(())
    }
}

impl<'a> Wanted<'a> {
    /// A matrix that begins at a byte of a weight; `None` when it cannot be laid out in panels.
    fn of(
        (weight, expert, used): (Slice, u32, Option<[u32; 2]>),
        (first, layout): (usize, WeightLayout),
        buffers: &'a Buffers,
    ) -> Option<Wanted<'a>> {
        let place = buffers.place(weight.buffer, weight.offset);
        let bytes = &place.read::<u8>(first + layout.bytes())[first..];
        let source = Source::of(layout, bytes)?;
        let shape = PackedShape::of(&source)?;
        Some(Wanted {
            weight,
            expert,
            first,
            source,
            shape,
            used,
        })
    }
}

/// Bytes that x takes as a product lays it out.
fn packed_bytes(level: (Level, bool), kernel: KernelId, args: &Args) -> usize {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    match is_of_experts(kernel) {
        true => super::experts::packed_bytes(level, &Experts::of(args)),
        false => super::gemm::packed_bytes(level, &Product::of(args)),
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (level, kernel, args);
        0
    }
}

/// Makes room for `bytes` bytes, where there are fewer. Nothing that was there is kept.
fn grow(memory: &mut Option<Pages>, bytes: usize, label: &str) -> Result<(), DeviceError> {
    let has = memory.as_ref().map_or(0, |has| has.bytes().len());
    if has < bytes {
        let pages = Pages::zeroed(bytes).ok_or_else(|| no_memory(bytes, label))?;
        *memory = Some(pages);
    }
    Ok(())
}
