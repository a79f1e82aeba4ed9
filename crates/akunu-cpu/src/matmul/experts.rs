//! The products of experts: each result of a row is multiplied with the matrices of one expert.
//!
//! ```text
//! sort the results by their experts                              (every part for itself: they are a few thousand numbers)
//! lay out the vectors of experts that have many results          (all parts together, in a prompt; then a barrier)
//! for each expert that is used, for each piece of its outputs    (the parts take pieces)
//!     many results:  a gemm of all of them, as in a dense prompt
//!     a few:         their vectors, quantised; up to BATCH of them share a reading of the weights
//! ```
//!
//! With one row, each of its experts has one result. In a prompt an expert with more than
//! [`FEW`](super::batch::FEW) results is multiplied as a dense product of as many rows would be, so that its weights are widened
//! once for all of them.

mod few;
mod job;
mod many;
mod sorted;

use akunu_kernels::kernel::experts::{Experts, expert_down, expert_gate, gate_code};
use akunu_program::GateFunction;

use self::few::Few;
use self::job::{Job, Matrix, Outputs, Piece, Unpacked};
pub(super) use self::many::packed_bytes;
use self::sorted::Sorted;
use super::gemv::Gemv;
use super::weight::Weight;
use crate::call::Call;
use crate::kernel::elementwise::{Gelu, GeluErf, Silu, SwigluOai, gated};
use crate::panels::format::ROWS;
use crate::part::Part;
use crate::place::Place;
use crate::simd::{self, Lanes, WithLanes};
use crate::twin;

/// What a thread keeps from product to product.
#[derive(Default)]
struct Kept {
    sorted: Sorted,
    few: Few,
    /// The products of a piece of an expert with many results.
    products: Vec<f32>,
    unpacked: Unpacked,
}

impl<const N: usize> Job<'_, '_, N> {
    /// Multiplies the vectors of all results with their experts' matrices, and gives neighbouring outputs of a result to `store`,
    /// as products with each of the matrices. False if the matrices cannot be read here.
    fn multiply(&self, part: &mut Part, mut store: impl FnMut(Outputs, [&mut [f32]; N])) -> bool {
        if self.matrices(0).is_none() {
            return false;
        }
        let mut kept = std::mem::take(part.kept.get::<Kept>());
        let Kept {
            sorted,
            few,
            products,
            unpacked,
        } = &mut kept;
        few.forget();
        sorted.sort(&self.experts, self.ids);
        let packed = self.plan(part.count, sorted);
        if let Some(packed) = packed {
            self.pack(part, sorted, packed);
        }
        // The expert whose matrices were found last.
        let mut found: Option<(u32, [Matrix; N])> = None;
        let mut pieces = part.divide(sorted.n_items());
        while let Some(range) = part.take(&mut pieces) {
            for item in range {
                let (own, item) = sorted.find_item(item);
                let matrices = match &found {
                    Some((expert, matrices)) if *expert == own.expert => matrices,
                    _ => match self.matrices(own.expert) {
                        Some(matrices) => &found.insert((own.expert, matrices)).1,
                        None => unreachable!("the first expert's matrices were read"),
                    },
                };
                let outputs = match &own.many {
                    Some(many) => many.outputs(item, self.experts.params.N as usize),
                    None => ROWS * item..ROWS * (item + 1),
                };
                let end = outputs.end.min(self.experts.params.N as usize);
                let panels = outputs.start / ROWS..end.div_ceil(ROWS);
                let laid_out = unpacked.lay_out(matrices, panels);
                let weights = std::array::from_fn(|at| match (&matrices[at], &laid_out[at]) {
                    (Matrix::Ready(weight), _) => *weight,
                    (Matrix::InFile(..), Some(panels)) => Weight::Panels(panels),
                    (Matrix::InFile(..), None) => unreachable!("its panels have pages"),
                });
                let piece = Piece {
                    expert: own.expert,
                    outputs,
                    weights: &weights,
                    results: sorted.results(own),
                };
                match own.many.as_ref().zip(packed) {
                    Some(many) => self.many(part, many, &piece, products, &mut store),
                    None => self.few(&piece, few, &mut store),
                }
            }
        }
        *part.kept.get() = kept;
        true
    }
}

/// The products of neighbouring outputs of an expert, from `first` on, with their scale and biases.
fn finish(experts: &Experts, at: &Outputs, products: &mut [f32], [bias, scale]: [&[f32]; 2]) {
    if experts.params.flags == 0 {
        return;
    }
    for (n, product) in products.iter_mut().enumerate() {
        *product = experts.finished(*product, [at.expert, at.first + n], bias, scale);
    }
}

/// `y = gate(Wgate x, Wup x)`.
pub(crate) fn gate_and_up(call: &Call, part: &mut Part) {
    let experts = Experts::of(&call.args);
    let p = experts.params;
    let b: expert_gate::Buffers<Place> = call.buffers();
    let Some(gemv) = Gemv::of(call.level) else {
        return twin::run(call, part);
    };
    let places = expert_gate::Buffers::PLACES;
    let job = Job {
        call,
        experts,
        gemv,
        ids: b.ids.read(experts.n_results() as usize),
        x: b.x.read((p.n_rows * p.K) as usize),
        share: p.n_used as usize,
        stacks: [(places.gate, experts.first), (places.up, experts.second)],
    };
    let (biases, scales) = (experts.bias_len(), experts.scale_len());
    let [of_gate, of_up] = [[b.gate_bias, b.gate_scale], [b.up_bias, b.up_scale]]
        .map(|[bias, scale]| [bias.read(biases), scale.read(scales)]);
    let is_done = job.multiply(part, |at, [gates, ups]| {
        finish(&experts, &at, gates, of_gate);
        finish(&experts, &at, ups, of_up);
        // SAFETY: `own`: these outputs of a result belong to one part.
        let y = unsafe {
            b.y.write::<f32>(at.result * p.N as usize + at.first, gates.len())
        };
        let code = p.activation;
        simd::run(
            call.level,
            Activating {
                code,
                gates,
                ups,
                y,
            },
        );
    });
    if !is_done {
        twin::run(call, part);
    }
}

/// Gates, and what they are applied to.
struct Activating<'a> {
    code: u32,
    gates: &'a [f32],
    ups: &'a [f32],
    y: &'a mut [f32],
}

impl WithLanes for Activating<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Activating {
            code,
            gates,
            ups,
            y,
        } = self;
        match code {
            code if code == gate_code(GateFunction::Silu) => gated::<L, Silu>(gates, ups, y),
            code if code == gate_code(GateFunction::Gelu) => gated::<L, Gelu>(gates, ups, y),
            code if code == gate_code(GateFunction::GeluErf) => gated::<L, GeluErf>(gates, ups, y),
            _ => gated::<L, SwigluOai>(gates, ups, y),
        }
    }
}

/// `y = W x`.
pub(crate) fn down(call: &Call, part: &mut Part) {
    let experts = Experts::of(&call.args);
    let p = experts.params;
    let n_results = experts.n_results() as usize;
    let b: expert_down::Buffers<Place> = call.buffers();
    let Some(gemv) = Gemv::of(call.level) else {
        return twin::run(call, part);
    };
    let job = Job {
        call,
        experts,
        gemv,
        ids: b.ids.read(n_results),
        x: b.x.read(n_results * p.K as usize),
        share: 1,
        stacks: [(expert_down::Buffers::PLACES.weight, experts.first)],
    };
    let bias = b.bias.read(experts.bias_len());
    let scale = b.scale.read(experts.scale_len());
    let is_done = job.multiply(part, |at, [products]| {
        finish(&experts, &at, products, [bias, scale]);
        // SAFETY: `own`: these outputs of a result belong to one part.
        let y = unsafe {
            b.y.write::<f32>(at.result * p.N as usize + at.first, products.len())
        };
        y.copy_from_slice(products);
    });
    if !is_done {
        twin::run(call, part);
    }
}
