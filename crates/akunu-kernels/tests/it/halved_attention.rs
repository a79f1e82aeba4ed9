//! Attention that leaves halves for the product after it: with the product, it computes what both operations compute one by one.

use akunu_kernels::case::Rng;
use akunu_kernels::lower;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, case};
use akunu_program::{
    Buffer, Counts, Device, Heads, LayerCache, Matrix, Op, PageMap, Pairing, Program, Rope,
    RowTable, Rows, Slice, StepMemory, Storage, op,
};
use akunu_types::params::{Row, SamplingRule};
use akunu_types::{DType, KvFormat};

use crate::chips::{nvidia, rules};

/// Half a block of 128 values is left for zeros.
const HEADS: Heads = Heads {
    n_heads: 3,
    n_kv_heads: 1,
    head_dim: 64,
};
const WIDTH: u32 = HEADS.n_heads * HEADS.head_dim;
const OUTPUTS: u32 = 24;
/// A tile of eight rows, and one that is not full.
const N_ROWS: u32 = 10;
const PAGE_SHIFT: u32 = 6;
const TABLE_STRIDE: u32 = 4;
const N_PAGES: u32 = N_ROWS * TABLE_STRIDE;

/// Memory of random numbers, the same on every device.
struct Memory {
    device: TwinDevice,
    rng: Rng,
}

impl Memory {
    fn filled(&mut self, bytes: &[u8]) -> Buffer {
        let buffer = self.device.allocate(bytes.len(), "test");
        let buffer = buffer.expect("host memory");
        self.device.write(buffer, 0, bytes).expect("it fits");
        buffer
    }

    fn zeros(&mut self, bytes: usize) -> Buffer {
        self.filled(&vec![0; bytes])
    }

    fn floats(&mut self, n: u32) -> Slice {
        let numbers = self.rng.floats(n as usize, 1.0);
        self.filled(bytemuck::cast_slice(&numbers)).into()
    }

    fn halves(&mut self, n: u32) -> Buffer {
        let numbers = self.rng.halves(n as usize, 1.0);
        self.filled(bytemuck::cast_slice(&numbers))
    }

    fn step(&mut self) -> StepMemory {
        let words = 4 * N_ROWS as usize;
        StepMemory {
            rows: self.zeros(N_ROWS as usize * size_of::<Row>()),
            tokens: self.zeros(words),
            outputs: self.zeros(words),
            rules: self.zeros(N_ROWS as usize * size_of::<SamplingRule>()),
            history: self.zeros(8 * words),
            chosen: self.zeros(words),
            row_capacity: N_ROWS,
            n_sequences: N_ROWS,
            history_stride: 8,
            max_steps: 1,
        }
    }
}

/// The output of the product, where these kernels are run for the program.
fn product_of_attention(lowered: impl Fn(&mut Memory, &Program) -> Vec<KernelCall>) -> Vec<f32> {
    let mut m = Memory {
        device: TwinDevice::new(),
        rng: Rng::new(3),
    };
    let step = m.step();
    let pages = PageMap {
        table: m.zeros(4 * N_PAGES as usize),
        table_stride: TABLE_STRIDE,
        page_shift: PAGE_SHIFT,
        n_pages: N_PAGES,
        n_sequences: N_ROWS,
        window: None,
    };
    let pool = (N_PAGES << PAGE_SHIFT) * HEADS.n_kv_heads * HEADS.head_dim;
    let cache = LayerCache {
        k: m.halves(pool),
        v: m.halves(pool),
        pages,
        format: KvFormat::F16,
    };
    let [q, attended] = [(); 2].map(|()| m.floats(N_ROWS * WIDTH));
    let [k, v] = [(); 2].map(|()| m.floats(N_ROWS * HEADS.n_kv_heads * HEADS.head_dim));
    let [to, gathered] = [(); 2].map(|()| m.floats(N_ROWS * OUTPUTS));
    let program = Program {
        ops: vec![
            Op::RopeStore(op::RopeStore {
                q,
                k,
                v,
                heads: HEADS,
                rope: Rope {
                    pairing: Pairing::Halves,
                    theta: 1e4,
                    freq_scale: 1.0,
                    turned_dim: HEADS.head_dim,
                    divisors: m.filled(bytemuck::cast_slice(&[1f32; 32])).into(),
                },
                centre: None,
                norms: None,
                cache,
            }),
            Op::Attend(op::Attend {
                q,
                to: attended,
                heads: HEADS,
                cache,
                scale: 0.125,
                softcap: None,
                sinks: None,
            }),
            Op::Product(op::Product {
                rows: Rows::All,
                weight: Matrix {
                    place: m.halves(OUTPUTS * WIDTH).into(),
                    dtype: DType::F16,
                    rows: OUTPUTS,
                    cols: WIDTH,
                    storage: Storage::Rows,
                },
                x: attended,
                to,
                add: false,
                bias: None,
                label: "product",
            }),
            Op::Gather(op::Gather {
                from: to,
                to: gathered,
                dim: OUTPUTS,
            }),
            Op::Advance,
        ],
        step: Some(step),
        room: Counts {
            singles: N_ROWS,
            run: 0,
            outputs: N_ROWS,
        },
    };
    let calls = lowered(&mut m, &program);
    let mut table = RowTable::new(step, &[pages]);
    for page in 0..N_PAGES {
        table.set_page(0, page / TABLE_STRIDE, page % TABLE_STRIDE, Some(page));
    }
    for sequence in 0..N_ROWS {
        // From one key to more than two threadgroups have tiles for.
        table.push_single(Row::at(sequence, sequence * 28), sequence);
    }
    let plan = m.device.load_kernels(calls, program.plan_room());
    let plan = plan.expect("sizes are right");
    let step = table.check(1).expect("within its pages");
    m.device.run(plan, Some(&step)).expect("runs");
    let mut found = vec![0f32; (N_ROWS * OUTPUTS) as usize];
    let bytes = bytemuck::cast_slice_mut(&mut found);
    m.device.read(gathered.buffer, 0, bytes).expect("it fits");
    found
}

/// Breaks when the product looks for halves or factors where attention has not left them, takes them for another order, or reads
/// behind the last head what is no zero.
#[test]
fn a_product_reads_the_halves_that_attention_has_left() {
    let chip = nvidia(90);
    let one_by_one = product_of_attention(|_, program| lower::plain(program));
    let together = product_of_attention(|m, program| {
        // NaNs, but for the counters: what is not written is seen.
        let mut bytes = vec![0xff; lower::scratch_bytes(program, &*rules(&chip))];
        bytes[..8192].fill(0);
        let scratch = m.filled(&bytes);
        let calls = lower::by_rules(program, &*rules(&chip), Some(scratch));
        let kernels: Vec<KernelId> = calls.iter().map(|call| call.key.kernel).collect();
        use KernelId::{AdvanceRows, DecodeAttentionNeox, DecodeGemm, GatherRows};
        let [DecodeAttentionNeox, DecodeGemm(_), GatherRows, AdvanceRows] = kernels[..] else {
            panic!("{kernels:?}")
        };
        calls
    });
    // Halves are rounded by 2⁻¹² of themselves, at most.
    let error = case::nmse(&together, &one_by_one);
    assert!(error < 6e-8, "{error:e}");
    assert!(error > 0.0, "they are the same kernels");
}
