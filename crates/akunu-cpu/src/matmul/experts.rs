//! The products of experts: each result of a row is multiplied with the matrices of one expert.
//!
//! Results of the same expert lie anywhere, so they are counted and brought together first; then parts share the groups of
//! sixteen outputs of all experts that are used. A part quantises the vectors of an expert when it begins with it, and up to
//! [`BATCH`] of them share a reading of the weights. With one row, each of its experts has one vector; a prompt
//! reads the weights of an expert once for every [`BATCH`] rows that use it.

use akunu_kernels::KernelId;
use akunu_kernels::kernel::experts::{Experts, expert_down, expert_gate, gate, gate_code};
use akunu_kernels::weight::WeightLayout;
use akunu_program::{GateFunction, Slice, Storage, row_bytes};

use super::activation::Activations;
use super::batch::{BATCH, Dots};
use super::float_gemv::Rows;
use super::gemv::Gemv;
use super::weight::Weight;
use crate::body::Body;
use crate::call::Call;
use crate::kernel::elementwise::{Gelu, GeluErf, Silu, gated};
use crate::panels::format::ROWS;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;
use crate::twin;

/// Whether a kernel multiplies with the matrices of experts.
pub(super) fn is_of_experts(kernel: KernelId) -> bool {
    matches!(kernel, KernelId::ExpertGate(_) | KernelId::ExpertDown(_))
}

/// Where an expert's matrix of a stack begins, and its layout from there on.
pub(super) fn of_expert(
    experts: &Experts,
    stack: WeightLayout,
    expert: u32,
) -> (usize, WeightLayout) {
    let first_row = experts.row(expert as usize, 0);
    let before = first_row * row_bytes(stack.dtype, stack.cols);
    let rows = experts.params.N as usize;
    match stack.storage {
        Storage::Rows => (before, WeightLayout { rows, ..stack }),
        Storage::Mlx(mlx) => {
            let groups = stack.cols / mlx.group_len();
            let scales = (first_row * groups * mlx.scale_type.bytes()) as u32;
            let packed_at = mlx.packed_at + before as u32;
            let at = [packed_at, mlx.scales_at + scales, mlx.biases_at + scales];
            let storage = Storage::Mlx(mlx.at(at));
            let layout = WeightLayout {
                rows,
                storage,
                ..stack
            };
            (0, layout)
        }
    }
}

/// Results in the order of their experts.
#[derive(Default)]
struct Sorted {
    results: Vec<usize>,
    /// The experts that are used, and how many results come before those of each.
    used: Vec<(u32, usize)>,
    counts: Vec<usize>,
}

impl Sorted {
    fn sort(&mut self, experts: &Experts, ids: &[u32]) {
        self.counts.clear();
        self.counts.resize(experts.params.n_experts as usize, 0);
        for result in 0..ids.len() {
            self.counts[experts.expert(ids, result)] += 1;
        }
        self.used.clear();
        let mut before = 0;
        for (count, expert) in self.counts.iter_mut().zip(0..) {
            if *count > 0 {
                self.used.push((expert, before));
            }
            before += std::mem::replace(count, before);
        }
        self.results.resize(ids.len(), 0);
        for result in 0..ids.len() {
            let next = &mut self.counts[experts.expert(ids, result)];
            self.results[*next] = result;
            *next += 1;
        }
    }

    /// The results of the expert at this place of the used ones.
    fn of(&self, at: usize) -> &[usize] {
        let end = self
            .used
            .get(at + 1)
            .map_or(self.results.len(), |next| next.1);
        &self.results[self.used[at].1..end]
    }
}

/// The results in the order of their experts and the quantised vectors of one expert, which a thread keeps.
#[derive(Default)]
struct Inputs {
    sorted: Sorted,
    activations: Vec<Activations>,
}

/// A dispatch on its way: its sizes, and vectors of `stride` numbers, one for each `share` results.
struct Job<'a, 'c> {
    call: &'a Call<'c>,
    experts: Experts,
    gemv: Gemv,
    x: &'a [f32],
    share: usize,
}

impl<'c> Job<'_, 'c> {
    fn vector(&self, result: usize) -> &[f32] {
        let len = self.experts.params.K as usize;
        &self.x[result / self.share * len..][..len]
    }

    /// The matrix of an expert at a binding; `None` if it cannot be read here.
    fn weight(&self, at: usize, stack: WeightLayout, expert: u32) -> Option<Weight<'c>> {
        let slice: Slice = self.call.slices[at];
        if let Some(matrix) = self.call.panels.find_expert(slice, expert) {
            return Some(Weight::Panels(matrix));
        }
        let (first, layout) = of_expert(&self.experts, stack, expert);
        let bytes = self.call.places[at].read::<u8>(first + layout.bytes());
        Rows::of(&layout, &bytes[first..]).map(Weight::Rows)
    }

    /// Quantises the vectors of some results, if the weight asks for it.
    fn quantise(&self, weight: &Weight, results: &[usize], into: &mut Vec<Activations>) {
        let Some(quant) = weight.quant() else { return };
        if into.len() < results.len() {
            into.resize_with(results.len(), Default::default);
        }
        for (into, &result) in into.iter_mut().zip(results) {
            self.gemv.quantise(into, self.vector(result), quant);
        }
    }

    /// Products of a group of outputs with up to [`BATCH`] vectors.
    fn dots(&self, weight: &Weight, group: usize, results: &[usize], x: &[Activations]) -> Dots {
        match weight {
            Weight::Panels(matrix) => {
                let (quant, cells) = (matrix.shape.quant, matrix.shape.cells);
                let x = &x[..results.len()];
                self.gemv.panel(quant, matrix.panel(group), cells, x)
            }
            Weight::Rows(rows) => {
                let mut batch = [&[][..]; BATCH];
                for (vector, &result) in batch.iter_mut().zip(results) {
                    *vector = self.vector(result);
                }
                self.gemv.rows(rows, group, &batch[..results.len()])
            }
        }
    }

    /// Multiplies the vectors of all results with their experts' matrices, N of them at the same time, and gives the products
    /// of a result with a group of outputs to `store`: the expert, the result, the group, the products.
    fn multiply<const N: usize>(
        &self,
        part: &mut Part,
        stacks: [(usize, WeightLayout); N],
        ids: &[u32],
        mut store: impl FnMut(usize, usize, usize, [[f32; ROWS]; N]),
    ) {
        let groups = (self.experts.params.N as usize).div_ceil(ROWS);
        let mut inputs = std::mem::take(part.kept.get::<Inputs>());
        let Inputs {
            sorted,
            activations,
        } = &mut inputs;
        sorted.sort(&self.experts, ids);
        let mut pieces = part.divide(sorted.used.len() * groups);
        // The expert that is ready, and its weights.
        let mut ready: Option<(usize, [Option<Weight>; N])> = None;
        while let Some(range) = part.take(&mut pieces) {
            for item in range {
                let (at, group) = (item / groups, item % groups);
                let (expert, _) = sorted.used[at];
                let results = sorted.of(at);
                let (_, weights) = match ready.take() {
                    Some(is_ready) if is_ready.0 == at => ready.insert(is_ready),
                    _ => {
                        let weights = stacks.map(|(at, stack)| self.weight(at, stack, expert));
                        if let Some(weight) = &weights[0] {
                            self.quantise(weight, results, activations);
                        }
                        ready.insert((at, weights))
                    }
                };
                for (batch, results) in results.chunks(BATCH).enumerate() {
                    let x = activations.get(batch * BATCH..).unwrap_or_default();
                    let dots = weights.each_ref().map(|weight| match weight {
                        Some(weight) => self.dots(weight, group, results, x),
                        None => unreachable!("the first expert's matrix was read"),
                    });
                    for (m, &result) in results.iter().enumerate() {
                        store(expert as usize, result, group, dots.map(|dots| dots[m]));
                    }
                }
            }
        }
        *part.kept.get() = inputs;
    }
}

/// The products of a group with their scale and biases.
fn finish(
    experts: &Experts,
    (expert, group): (usize, usize),
    dots: &mut [f32],
    [bias, scale]: [&[f32]; 2],
) {
    for (i, dot) in dots.iter_mut().enumerate() {
        *dot = experts.finished(*dot, [expert, ROWS * group + i], bias, scale);
    }
}

/// `y = gate(Wgate x, Wup x)`.
pub(crate) struct ExpertGate;

impl Body for ExpertGate {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let experts = Experts::of(&call.args);
        let p = experts.params;
        let n_results = experts.n_results() as usize;
        let b: expert_gate::Buffers<Place> = call.buffers();
        let ids = b.ids.read::<u32>(n_results);
        let Some(gemv) = Gemv::of(call.level) else {
            return twin::run(call, part);
        };
        let job = Job {
            call,
            experts,
            gemv,
            x: b.x.read((p.n_rows * p.K) as usize),
            share: p.n_used as usize,
        };
        let places = expert_gate::Buffers::PLACES;
        let stacks = [(places.gate, experts.first), (places.up, experts.second)];
        let can_read = |&(at, stack)| job.weight(at, stack, 0).is_some();
        if !stacks.iter().all(can_read) {
            return twin::run(call, part);
        }
        let (biases, scales) = (experts.bias_len(), experts.scale_len());
        let factors = [[b.gate_bias, b.gate_scale], [b.up_bias, b.up_scale]]
            .map(|[bias, scale]| [bias.read(biases), scale.read(scales)]);
        let n = p.N as usize;
        job.multiply(
            part,
            stacks,
            ids,
            |expert, result, group, [mut gates, mut ups]| {
                let count = ROWS.min(n - ROWS * group);
                finish(&experts, (expert, group), &mut gates[..count], factors[0]);
                finish(&experts, (expert, group), &mut ups[..count], factors[1]);
                // SAFETY: `own`: a group of outputs of a result belongs to one part.
                let y = unsafe { b.y.write::<f32>(result * n + ROWS * group, count) };
                activate::<L>(p.activation, &gates[..count], &ups[..count], y);
            },
        );
    }
}

#[inline(always)]
fn activate<L: Lanes>(code: u32, gates: &[f32], ups: &[f32], y: &mut [f32]) {
    match code {
        code if code == gate_code(GateFunction::Silu) => gated::<L, Silu>(gates, ups, y),
        code if code == gate_code(GateFunction::Gelu) => gated::<L, Gelu>(gates, ups, y),
        code if code == gate_code(GateFunction::GeluErf) => gated::<L, GeluErf>(gates, ups, y),
        code => {
            let gate = gate(code);
            for (y, (&g, &u)) in y.iter_mut().zip(gates.iter().zip(ups)) {
                *y = gate(g, u);
            }
        }
    }
}

/// `y = W x`.
pub(crate) fn down(call: &Call, part: &mut Part) {
    let experts = Experts::of(&call.args);
    let p = experts.params;
    let n_results = experts.n_results() as usize;
    let b: expert_down::Buffers<Place> = call.buffers();
    let ids = b.ids.read::<u32>(n_results);
    let Some(gemv) = Gemv::of(call.level) else {
        return twin::run(call, part);
    };
    let job = Job {
        call,
        experts,
        gemv,
        x: b.x.read(n_results * p.K as usize),
        share: 1,
    };
    let stack = (expert_down::Buffers::PLACES.weight, experts.first);
    if job.weight(stack.0, stack.1, 0).is_none() {
        return twin::run(call, part);
    }
    let factors = [
        b.bias.read(experts.bias_len()),
        b.scale.read(experts.scale_len()),
    ];
    let n = p.N as usize;
    job.multiply(part, [stack], ids, |expert, result, group, [mut dots]| {
        let count = ROWS.min(n - ROWS * group);
        finish(&experts, (expert, group), &mut dots[..count], factors);
        // SAFETY: `own`: a group of outputs of a result belongs to one part.
        let y = unsafe { b.y.write::<f32>(result * n + ROWS * group, count) };
        y.copy_from_slice(&dots[..count]);
    });
}
