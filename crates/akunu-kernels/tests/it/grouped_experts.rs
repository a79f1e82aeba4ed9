//! Experts of many rows, sorted and multiplied in groups: they leave what each row leaves by itself.

use akunu_kernels::case::{self, Rng};
use akunu_kernels::chip::ChipConfig;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelDevice, KernelId, lower};
use akunu_program::{
    Buffer, Counts, Device, ExpertMatrix, GateFunction, Matrix, Op, Program, RowTable, Rows, Slice,
    StepMemory, Storage, Weights, op,
};
use akunu_types::DType;
use akunu_types::params::{Row, SamplingRule};

use crate::chips::{nvidia, rules};

const DIM: u32 = 40;
const WIDTH: u32 = 24;
const EXPERTS: [u32; 2] = [5, 2];

/// Memory of random numbers, the same for every lowering.
struct Memory {
    device: TwinDevice,
    rng: Rng,
}

impl Memory {
    fn filled<T: bytemuck::Pod>(&mut self, values: &[T]) -> Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = self.device.allocate(bytes.len(), "test");
        let buffer = buffer.expect("host memory");
        self.device.write(buffer, 0, bytes).expect("it fits");
        buffer
    }

    fn floats(&mut self, n: u32) -> Slice {
        let numbers = self.rng.floats(n as usize, 1.0);
        self.filled(&numbers).into()
    }

    /// Experts of this shape, with other rows between them, biases and scales.
    fn experts(&mut self, rows: u32, cols: u32) -> ExpertMatrix {
        let stride = rows + 3;
        let all = EXPERTS[0] * stride;
        let numbers = self.rng.halves((all * cols) as usize, 1.0);
        ExpertMatrix {
            matrix: Matrix {
                place: self.filled(&numbers).into(),
                dtype: DType::F16,
                rows: all,
                cols,
                storage: Storage::Rows,
            },
            rows,
            stride,
            bias: Some(self.floats(EXPERTS[0] * rows)),
            scale: Some(self.floats(EXPERTS[0])),
        }
    }

    fn step(&mut self, n_rows: u32) -> StepMemory {
        let words = vec![0u32; n_rows as usize];
        StepMemory {
            rows: self.filled(&vec![0u8; n_rows as usize * size_of::<Row>()]),
            tokens: self.filled(&words),
            outputs: self.filled(&words),
            rules: self.filled(&vec![0u8; n_rows as usize * size_of::<SamplingRule>()]),
            history: self.filled(&words.repeat(8)),
            chosen: self.filled(&words),
            row_capacity: n_rows,
            n_sequences: n_rows,
            history_stride: 8,
            max_steps: 1,
        }
    }
}

/// The kernels of a program with room for two rows more than there are, and the sums of its experts' results.
fn weighed(n_rows: u32, chip: Option<&ChipConfig>) -> (Vec<KernelId>, Vec<f32>) {
    let mut m = Memory {
        device: TwinDevice::new(),
        rng: Rng::new(46),
    };
    let room = n_rows + 2;
    let n_results = room * EXPERTS[1];
    let step = m.step(room);
    let ids: Vec<u32> = (0..n_results).map(|_| m.rng.below(EXPERTS[0])).collect();
    let ids = m.filled(&ids).into();
    let [x, weights, to] = [DIM, EXPERTS[1], DIM].map(|width| m.floats(room * width));
    let [activated, results] = [WIDTH, DIM].map(|width| m.floats(n_results * width));
    let program = Program {
        ops: vec![
            Op::ExpertGate(op::ExpertGate {
                activation: GateFunction::Silu,
                gate: m.experts(WIDTH, DIM),
                up: m.experts(WIDTH, DIM),
                experts: EXPERTS,
                x,
                ids,
                to: activated,
            }),
            Op::ExpertDown(op::ExpertDown {
                weight: m.experts(DIM, WIDTH),
                experts: EXPERTS,
                x: activated,
                ids,
                to: results,
            }),
            Op::Weigh(op::Weigh {
                rows: Rows::All,
                x: results,
                weights: Weights::Numbers(weights),
                n_used: EXPERTS[1],
                width: DIM,
                to,
                add: false,
            }),
        ],
        step: Some(step),
        room: Counts {
            singles: room,
            run: 0,
            outputs: room,
        },
    };
    let calls = match chip {
        None => lower::plain(&program),
        Some(chip) => {
            // NaNs, but for the counters: what is not written is seen.
            let mut bytes = vec![0xffu8; lower::scratch_bytes(&program, &*rules(chip))];
            bytes[..8192].fill(0);
            let scratch = m.filled(&bytes);
            lower::by_rules(&program, &*rules(chip), Some(scratch))
        }
    };
    let kernels = calls.iter().map(|call| call.key.kernel).collect();
    let mut table = RowTable::new(step, &[]);
    for sequence in 0..n_rows {
        table.push_single(Row::at(sequence, 0), sequence);
    }
    let plan = m.device.load_kernels(calls, program.plan_room());
    let plan = plan.expect("sizes are right");
    let step = table.check(1).expect("within its pages");
    m.device.run(plan, Some(&step)).expect("runs");
    let mut found = vec![0f32; (n_rows * DIM) as usize];
    let bytes = bytemuck::cast_slice_mut(&mut found);
    m.device.read(to.buffer, 0, bytes).expect("it fits");
    (kernels, found)
}

/// Breaks when results are sorted for tiles of another size than the products have, when halves of x are taken for those of the
/// activation, or when a result comes to another row.
#[test]
fn grouped_experts_leave_what_each_row_leaves_by_itself() {
    use KernelId::{
        ExpertGemm, ExpertGemmSmall, HalfRows, SortExperts, TensorExperts, TensorExpertsSmall,
        WeighRows,
    };
    let d = DType::F16;
    let general = |kernel: fn(DType) -> KernelId| [SortExperts, kernel(d), kernel(d), WeighRows];
    let tensor = |kernel: fn(DType) -> KernelId| {
        let product = [HalfRows, kernel(d)];
        [&[SortExperts][..], &product, &product, &[WeighRows]].concat()
    };
    let (apple, hopper) = (ChipConfig::m1(), nvidia(90));
    let table = [
        (9, &apple, general(ExpertGemmSmall).to_vec(), 1e-10),
        (70, &apple, general(ExpertGemm).to_vec(), 1e-10),
        (9, &hopper, tensor(TensorExpertsSmall), 1e-6),
        (70, &hopper, tensor(TensorExperts), 1e-6),
    ];
    for (n_rows, chip, expected, tolerance) in table {
        let (_, one_by_one) = weighed(n_rows, None);
        let (kernels, grouped) = weighed(n_rows, Some(chip));
        assert_eq!(kernels, expected, "{n_rows} rows on {}", chip.name);
        // Halves are rounded by 2⁻¹² of themselves, at most.
        let error = case::nmse(&grouped, &one_by_one);
        assert!(error < tolerance, "{kernels:?}: {error:e}");
    }
}
