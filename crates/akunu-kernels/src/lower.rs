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

use akunu_types::params::{
    AdvanceRowsParams, ElementwiseParams, EmbeddingParams, EmbeddingScaleParams, GatherRowsParams,
    GrammarBitmaskParams, KVShiftParams, LogitSoftcapParams, MLXParams, RMSNormParams,
    RopeStoreParams,
};

pub(crate) use self::choice::candidates;
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::device::Buffer;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::pages::with_format;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, Room, RowField, Slice};
use crate::program::{
    GateFunction, HeadNorms, Heads, LayerCache, Masks, Op, Pairing, Program, Rope, Rows,
};
use crate::step::{Count, StepMemory};
use crate::table::KernelId;
use crate::weight::Storage;

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

impl Program {
    /// What a plan of it must have room for.
    pub fn plan_room(&self) -> Room {
        Room {
            step: self.step,
            counts: self.room,
            advances: self.advances(),
            pages: self.pages(),
            moved: self.moved_slots(),
            reads_texts: self.reads_texts(),
        }
    }
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
        if !matches!(op, Op::Product { .. }) {
            self.halved = None;
        }
        match *op {
            Op::Embed { table, scale, to } => self.embed(&table, scale, to),
            Op::Norm {
                rows,
                x,
                weight,
                to,
                dim,
                eps,
            } => {
                self.norm(KernelId::RmsNorm, rows, [x, weight, to], (dim, eps));
            }
            Op::AddNorm {
                x,
                weight,
                to,
                dim,
                eps,
            } => {
                self.norm(
                    KernelId::RmsNormResidual,
                    Rows::All,
                    [x, weight, to],
                    (dim, eps),
                );
            }
            Op::LayerNorm {
                rows,
                x,
                weight,
                bias,
                to,
                dim,
                eps,
            } => self.layer_norm(rows, [x, weight, bias, to], (dim, eps)),
            Op::AddLearned {
                by,
                table,
                n_entries,
                x,
                dim,
            } => self.add_learned(by, [x, table], n_entries, dim),
            Op::Gelu { rows, x, width } => self.gelu(rows, x, width),
            Op::Halves { rows, x, to, width } => self.halves(rows, [x, to], width),
            Op::Convolve {
                ref weight,
                bias,
                x,
                windows,
                to,
            } => self.convolve(weight, [x, bias, to], windows),
            Op::Rope {
                x,
                n_heads,
                head_dim,
                rope,
            } => self.rope(x, n_heads, head_dim, rope),
            Op::AttendRows {
                q,
                k,
                v,
                to,
                heads,
                keys,
                scale,
                bias,
            } => self.attend_rows([q, k, v, to], heads, keys, (scale, bias)),
            Op::Mean { from, to, dim } => self.mean(from, to, dim),
            Op::Product { .. } => unreachable!("products are lowered with those after them"),
            Op::ScaleRows {
                rows,
                x,
                width,
                factors,
            } => self.scale_rows(rows, x, width, factors),
            Op::Gate {
                activation,
                gate,
                up,
                to,
                width,
            } => {
                self.gate(activation, [gate, up, to], width);
            }
            Op::RopeStore {
                q,
                k,
                v,
                heads,
                rope,
                norms,
                centre,
                cache,
            } => {
                self.rope_store([q, k, v], heads, (rope, centre), norms, &cache);
            }
            Op::Attend {
                q,
                to,
                heads,
                ref cache,
                scale,
                softcap,
            } => {
                self.attend([q, to], heads, cache, (scale, softcap));
            }
            Op::Gather { from, to, dim } => self.gather(from, to, dim),
            Op::Softcap { x, width, cap } => self.softcap(x, width, cap),
            Op::SpeechRules {
                logits,
                vocab_size,
                masks,
                tokens,
            } => self.speech_rules([logits, masks], vocab_size, tokens),
            Op::Mask {
                logits,
                vocab_size,
                masks,
            } => self.mask(logits, vocab_size, masks),
            Op::KeepLogits {
                logits,
                to,
                vocab_size,
            } => self.keep_logits(logits, to, vocab_size),
            Op::Choose {
                how,
                logits,
                vocab_size,
                ref memory,
            } => {
                self.choose(how, logits, vocab_size, memory);
            }
            Op::Score {
                ref memory,
                vocab_size,
            } => self.score(memory, vocab_size),
            Op::Advance => self.advance(),
            Op::Shift {
                cache,
                heads,
                rope,
                centre,
                sequence,
                keep,
                shift,
                len,
            } => {
                self.shift(&cache, heads, (rope, centre), [sequence, keep, shift, len]);
            }
            Op::Kernel(ref call) => self.push(call.clone()),
        }
    }

    fn embed(&mut self, table: &crate::program::Matrix, scale: Option<f32>, to: Slice) {
        let bindings = vec![self.step().tokens.into(), table.place, to];
        let kernel = KernelId::EmbeddingLookup(table.dtype);
        let key = PipelineKey {
            kernel,
            constants: table.storage.constants(),
        };
        let call = match table.storage {
            Storage::Mlx(mlx) => {
                let params = product::mlx_params(table, mlx, 0.0);
                let field = RowField::new(offset_of!(MLXParams, M), Count::Rows);
                KernelCall::new(key, &params, bindings, "embedding").with_rows([field])
            }
            Storage::Rows => {
                let params = EmbeddingParams {
                    dim: table.cols,
                    vocab_size: table.rows,
                    ..Default::default()
                };
                let field = RowField::new(offset_of!(EmbeddingParams, num_tokens), Count::Rows);
                KernelCall::new(key, &params, bindings, "embedding").with_rows([field])
            }
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

    fn norm(&mut self, kernel: KernelId, rows: Rows, bindings: [Slice; 3], (dim, eps): (u32, f32)) {
        let params = RMSNormParams {
            dim,
            eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), rows.count());
        let key = PipelineKey::plain(kernel);
        self.push(KernelCall::new(key, &params, bindings.to_vec(), "norm").with_rows([field]));
    }

    fn gate(&mut self, activation: GateFunction, bindings: [Slice; 3], width: u32) {
        let kernel = match activation {
            GateFunction::Silu => KernelId::SiluGate,
            GateFunction::Gelu => KernelId::GeluGate,
            GateFunction::GeluErf => KernelId::GeluErfGate,
        };
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, Count::Rows, width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(kernel);
        self.push(
            KernelCall::new(key, &params, bindings.to_vec(), "activation").with_rows([field]),
        );
    }

    fn rope_store(
        &mut self,
        [q, k, v]: [Slice; 3],
        heads: Heads,
        (rope, centre): (Rope, Option<Slice>),
        norms: Option<HeadNorms>,
        cache: &LayerCache,
    ) {
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

    fn gather(&mut self, from: Slice, to: Slice, dim: u32) {
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

    fn softcap(&mut self, x: Slice, width: u32, cap: f32) {
        let params = LogitSoftcapParams {
            cap,
            ..Default::default()
        };
        let count = offset_of!(LogitSoftcapParams, count);
        let field = RowField::times(count, Count::Outputs, width);
        let key = PipelineKey::plain(KernelId::LogitSoftcap);
        self.push(KernelCall::new(key, &params, vec![x], "logit cap").with_rows([field]));
    }

    fn mask(&mut self, logits: Slice, vocab_size: u32, masks: Masks) {
        let params = GrammarBitmaskParams {
            vocab_size,
            n_masks: masks.capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GrammarBitmaskParams, n_rows), Count::Outputs);
        let bindings = vec![logits, masks.bits.into(), masks.rows.into()];
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

    fn shift(
        &mut self,
        cache: &LayerCache,
        heads: Heads,
        (rope, centre): (Rope, Option<Slice>),
        [sequence, keep, shift, new_len]: [u32; 4],
    ) {
        let pages = &cache.pages;
        let params = KVShiftParams {
            sequence,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            keep,
            shift,
            new_len,
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
            centre_or_any(centre, &rope),
        ];
        let key = PipelineKey {
            kernel,
            constants: with_centre(with_format(freq_table(), cache.format), centre),
        };
        self.push(KernelCall::new(key, &params, bindings, "shift"));
    }
}

impl Rows {
    fn count(self) -> Count {
        match self {
            Rows::All => Count::Rows,
            Rows::Outputs => Count::Outputs,
        }
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
