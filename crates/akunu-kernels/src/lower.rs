//! Lowering: from the operations of a program to kernels of the table.
//!
//! [`plain`] is the specification: one kernel an operation, for any rows. The twin's device runs it, and the CPU device,
//! which decides for itself how a kernel is done. [`gpu`] chooses among kernels by shape and chip, as pure functions of
//! both. The activation of a single row is part of the product that reads it, on a Mac of the products that it gates.
//!
//! All params are for a full step; the fields that depend on the number of rows are listed with them.

mod adapter;
mod attention;
mod choice;
mod decode_attention;
mod encoder;
mod normed;
mod product;

use std::mem::offset_of;

use akunu_program::{
    Buffer, Count, GateFunction, Op, Pairing, Program, Rope, Rows, Slice, StepMemory, op,
};
use akunu_types::params::{
    AdvanceRowsParams, ElementwiseParams, EmbeddingParams, EmbeddingScaleParams, GatherRowsParams,
    GrammarBitmaskParams, KVShiftParams, LogitSoftcapParams, MLXParams, RMSNormParams,
    RopeStoreParams,
};

use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::kernel::convert::half_rows::Order;
use crate::kernel::pages::with_format;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
use crate::weight::mlx_constants;

/// One kernel an operation.
pub fn plain(program: &Program) -> Vec<KernelCall> {
    Lowering::new(program, None, None).run().calls
}

/// The kernels that suit the shapes and the chip. What one kernel of an operation leaves for the next lies in `scratch`,
/// which has [`scratch_bytes`], at first zeros; without it no such kernels are chosen.
pub fn gpu(program: &Program, chip: &ChipConfig, scratch: Option<Buffer>) -> Vec<KernelCall> {
    Lowering::new(program, Some(chip), scratch).run().calls
}

/// Bytes of memory that [`gpu`] wants for what kernels of one operation leave for each other. Programs that run one after
/// another can share it.
pub fn scratch_bytes(program: &Program, chip: &ChipConfig) -> usize {
    let any = Buffer {
        id: u32::MAX,
        generation: 0,
        len: usize::MAX,
        writable: true,
    };
    Lowering::new(program, Some(chip), Some(any))
        .run()
        .scratch_bytes
}

/// Bytes of counters at the beginning of the scratch memory: zeros, which every kernel that counts there leaves as zeros.
const COUNTERS: usize = 8192;

/// Rows that the scratch memory holds in halves, and how they lie.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Halved {
    rows: Rows,
    x: Slice,
    order: Order,
}

/// A program being lowered.
struct Lowering<'a> {
    program: &'a Program,
    /// The chip, where kernels are chosen by it.
    chip: Option<&'a ChipConfig>,
    calls: Vec<KernelCall>,
    /// Memory for what kernels of one operation leave for each other.
    scratch: Option<Buffer>,
    /// How much of it is used at once, at most.
    scratch_bytes: usize,
    /// What the scratch memory holds in halves: the products that follow can read it.
    halved: Option<Halved>,
}

impl<'a> Lowering<'a> {
    fn new(
        program: &'a Program,
        chip: Option<&'a ChipConfig>,
        scratch: Option<Buffer>,
    ) -> Lowering<'a> {
        Lowering {
            program,
            chip,
            calls: Vec::with_capacity(program.ops.len()),
            scratch,
            scratch_bytes: 0,
            halved: None,
        }
    }

    fn run(mut self) -> Lowering<'a> {
        let mut ops = self.program.ops.as_slice();
        while let Some((op, rest)) = ops.split_first() {
            if let Some(n_ops) = self
                .normed_products(ops)
                .or_else(|| self.normed_output(ops))
                .or_else(|| self.halved_result(ops))
                .or_else(|| self.biased_products(ops))
                .or_else(|| self.decode_attention(ops))
            {
                ops = &ops[n_ops..];
                continue;
            }
            let fused = self.gated_product(op, rest);
            if !fused {
                self.op(op);
            }
            ops = &rest[usize::from(fused)..];
        }
        self
    }

    /// Places for parts of these sizes in the scratch memory, if there is any.
    fn scratch<const N: usize>(&mut self, bytes: [usize; N]) -> Option<[Slice; N]> {
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
    fn counters(&self, bytes: usize) -> Option<Slice> {
        let buffer = self.scratch.filter(|_| bytes <= COUNTERS)?;
        Some(Slice { buffer, offset: 0 })
    }

    /// The buffers of the step, for operations that read rows.
    fn step(&self) -> &'a StepMemory {
        match &self.program.step {
            Some(step) => step,
            None => unreachable!("a program with rows says where they lie"),
        }
    }

    fn push(&mut self, call: KernelCall) {
        self.calls.push(call);
    }

    fn op(&mut self, op: &Op) {
        if !matches!(op, Op::Product(_)) {
            self.halved = None;
        }
        match op {
            Op::Embed(embed) => self.embed(embed),
            Op::Norm(norm) => self.norm(KernelId::RmsNorm, norm),
            Op::AddNorm(op::AddNorm {
                x,
                weight,
                to,
                dim,
                eps,
            }) => {
                let norm = op::Norm {
                    rows: Rows::All,
                    x: *x,
                    weight: *weight,
                    to: *to,
                    dim: *dim,
                    eps: *eps,
                };
                self.norm(KernelId::RmsNormResidual, &norm);
            }
            Op::LayerNorm(norm) => self.layer_norm(norm),
            Op::AddLearned(learned) => self.add_learned(learned),
            Op::Gelu(gelu) => self.gelu(gelu),
            Op::Halves(halves) => self.halves(halves),
            Op::Convolve(convolve) => self.convolve(convolve),
            Op::Rope(rope) => self.rope(rope),
            Op::AttendRows(attend) => self.attend_rows(attend),
            Op::Mean(mean) => self.mean(mean),
            Op::Product(_) => unreachable!("products are lowered with those after them"),
            Op::ScaleRows(scale) => self.scale_rows(scale),
            Op::Gate(gate) => self.gate(gate),
            Op::RopeStore(store) => self.rope_store(store),
            Op::Attend(attend) => self.attend(attend),
            Op::Gather(gather) => self.gather(gather),
            Op::Softcap(softcap) => self.softcap(softcap),
            Op::SpeechRules(rules) => self.speech_rules(rules),
            Op::Mask(mask) => self.mask(mask),
            Op::KeepLogits(keep) => self.keep_logits(keep),
            Op::Choose(choose) => self.choose(choose),
            Op::Score(score) => self.score(score),
            Op::Advance => self.advance(),
            Op::Shift(shift) => self.shift(shift),
        }
    }

    fn embed(
        &mut self,
        &op::Embed {
            ref table,
            scale,
            to,
        }: &op::Embed,
    ) {
        let bindings = vec![self.step().tokens.into(), table.place, to];
        let kernel = KernelId::EmbeddingLookup(table.dtype);
        let call = if table.dtype.is_mlx() {
            let params = product::mlx_params(table, 0.0);
            let field = RowField::new(offset_of!(MLXParams, M), Count::Rows);
            let key = PipelineKey {
                kernel,
                constants: mlx_constants(&table.mlx),
            };
            KernelCall::new(key, &params, bindings, "embedding").with_rows([field])
        } else {
            let params = EmbeddingParams {
                dim: table.cols,
                vocab_size: table.rows,
                ..Default::default()
            };
            let field = RowField::new(offset_of!(EmbeddingParams, num_tokens), Count::Rows);
            KernelCall::new(PipelineKey::plain(kernel), &params, bindings, "embedding")
                .with_rows([field])
        };
        self.push(call);
        let Some(factor) = scale else { return };
        let params = EmbeddingScaleParams {
            factor,
            ..Default::default()
        };
        let count = offset_of!(EmbeddingScaleParams, count);
        let key = PipelineKey::plain(KernelId::EmbeddingScale);
        self.push(
            KernelCall::new(key, &params, vec![to], "embedding scale")
                .with_rows([RowField::times(count, Count::Rows, table.cols)]),
        );
    }

    fn norm(&mut self, kernel: KernelId, norm: &op::Norm) {
        let params = RMSNormParams {
            dim: norm.dim,
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), norm.rows.count());
        let key = PipelineKey::plain(kernel);
        let bindings = vec![norm.x, norm.weight, norm.to];
        self.push(KernelCall::new(key, &params, bindings, "norm").with_rows([field]));
    }

    fn gate(&mut self, gate: &op::Gate) {
        let kernel = match gate.activation {
            GateFunction::Silu => KernelId::SiluGate,
            GateFunction::Gelu => KernelId::GeluGate,
            GateFunction::GeluErf => KernelId::GeluErfGate,
        };
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, Count::Rows, gate.width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(kernel);
        let bindings = vec![gate.gate, gate.up, gate.to];
        self.push(KernelCall::new(key, &params, bindings, "activation").with_rows([field]));
    }

    fn rope_store(&mut self, store: &op::RopeStore) {
        let &op::RopeStore {
            q,
            k,
            v,
            heads,
            rope,
            norms,
            centre,
            ref cache,
        } = store;
        let pages = &cache.pages;
        let params = RopeStoreParams {
            n_heads: heads.n_heads,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            eps: norms.map_or(0.0, |norms| norms.eps),
            ..Default::default()
        };
        let rows = self.step().rows.into();
        let (k_pages, v_pages) = (cache.k.into(), cache.v.into());
        let mut bindings = vec![
            q,
            k,
            v,
            k_pages,
            v_pages,
            rows,
            pages.table.into(),
            rope.divisors,
        ];
        match norms {
            Some(norms) => bindings.extend([norms.q, norms.k]),
            None => bindings.push(centre_or_any(centre, &rope)),
        }
        let kernel = match (norms, rope.pairing) {
            (Some(_), _) => KernelId::HeadNormRopeNeoxStore,
            (None, Pairing::Interleaved) => KernelId::RopeStore,
            (None, Pairing::Halves) => KernelId::RopeNeoxStore,
        };
        let field = RowField::new(offset_of!(RopeStoreParams, n_rows), Count::Rows);
        let key = PipelineKey {
            kernel,
            constants: with_centre(with_format(freq_table(), cache.format), centre),
        };
        self.push(KernelCall::new(key, &params, bindings, "rope and store").with_rows([field]));
    }

    fn gather(&mut self, &op::Gather { from, to, dim }: &op::Gather) {
        let step = self.step();
        let params = GatherRowsParams {
            dim,
            row_capacity: self.program.room.rows(),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatherRowsParams, n_rows), Count::Outputs);
        let bindings = vec![from, step.outputs.into(), to];
        let key = PipelineKey::plain(KernelId::GatherRows);
        self.push(KernelCall::new(key, &params, bindings, "outputs").with_rows([field]));
    }

    fn softcap(&mut self, &op::Softcap { x, width, cap }: &op::Softcap) {
        let params = LogitSoftcapParams {
            cap,
            ..Default::default()
        };
        let count = offset_of!(LogitSoftcapParams, count);
        let field = RowField::times(count, Count::Outputs, width);
        let key = PipelineKey::plain(KernelId::LogitSoftcap);
        self.push(KernelCall::new(key, &params, vec![x], "logit cap").with_rows([field]));
    }

    fn mask(&mut self, mask: &op::Mask) {
        let masks = &mask.masks;
        let params = GrammarBitmaskParams {
            vocab_size: mask.vocab_size,
            n_masks: masks.capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GrammarBitmaskParams, n_rows), Count::Outputs);
        let bindings = vec![mask.logits, masks.bits.into(), masks.rows.into()];
        let key = PipelineKey::plain(KernelId::GrammarBitmask);
        self.push(KernelCall::new(key, &params, bindings, "grammar mask").with_rows([field]));
    }

    fn advance(&mut self) {
        let step = self.step();
        let params = AdvanceRowsParams {
            chosen_stride: step.row_capacity,
            max_steps: step.max_steps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(AdvanceRowsParams, n_rows), Count::Singles);
        let bindings = vec![step.rows.into(), step.tokens.into(), step.chosen.into()];
        let key = PipelineKey::plain(KernelId::AdvanceRows);
        self.push(KernelCall::new(key, &params, bindings, "advance").with_rows([field]));
    }

    fn shift(&mut self, shift: &op::Shift) {
        let op::Shift {
            cache, rope, heads, ..
        } = shift;
        let pages = &cache.pages;
        let params = KVShiftParams {
            sequence: shift.sequence,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            keep: shift.keep,
            shift: shift.shift,
            new_len: shift.len,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
        };
        let kernel = match rope.pairing {
            Pairing::Interleaved => KernelId::KvShift,
            Pairing::Halves => KernelId::KvShiftNeox,
        };
        let (k, v) = (cache.k.into(), cache.v.into());
        let bindings = vec![
            k,
            v,
            pages.table.into(),
            rope.divisors,
            centre_or_any(shift.centre, rope),
        ];
        let key = PipelineKey {
            kernel,
            constants: with_centre(with_format(freq_table(), cache.format), shift.centre),
        };
        self.push(KernelCall::new(key, &params, bindings, "shift"));
    }
}

fn freq_table() -> Constants {
    Constants::none().with_bool(Constant::FreqTable, true)
}

/// The same constants for keys that are stored less a centre, if there is one.
fn with_centre(constants: Constants, centre: Option<Slice>) -> Constants {
    match centre {
        Some(_) => constants.with_bool(Constant::KeyCentre, true),
        None => constants,
    }
}

/// What is bound as the centre. Without one it is not touched.
fn centre_or_any(centre: Option<Slice>, rope: &Rope) -> Slice {
    centre.unwrap_or(rope.divisors)
}
