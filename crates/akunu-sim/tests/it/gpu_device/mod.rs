//! The device of a GPU over the simulator: what it tells the GPU, and what it does with the answers.

mod calls;
mod fewer_threads;
mod kept;
mod lifetime;
mod limits;
mod stopping;

use std::mem::offset_of;
use std::path::Path;

use akunu_kernels::kernel::activation::{gate, silu};
use akunu_kernels::plan::RowField;
use akunu_kernels::{ChipConfig, KernelCall, KernelDevice, KernelId, PipelineKey, lower};
use akunu_program::{
    Buffer, Count, Counts, Device, DeviceError, Op, PlanId, Program, Room, RowTable, Slice,
    StepMemory, Ticket,
};
use akunu_sim::{CallLog, Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::params::{ElementwiseParams, Row};

/// Rows that the bench's programs have room for, and one less than its table.
const ROWS: u32 = 2;
/// Elements of each row of a vector.
const COUNT: u32 = 8;
const BYTES: usize = 4 * (ROWS * COUNT) as usize;
/// Steps that are kept.
const SLOTS: u32 = 32;
/// What vector 1 begins with: rounds of [`Bench::plan`] make it 1.39, 2.0, 12, 2e4, 2e17.
const START: f32 = 1.3;

/// What vector 1 is after so many rounds, and what the last of them has kept.
fn after(rounds: u32) -> (f32, f32) {
    let gate = |x: f32| silu(x) * x;
    let round = |(x, _)| (gate(gate(x)), gate(x));
    (0..rounds).fold((START, 0.0), |last, _| round(last))
}

/// The exponential of a kernel and that of the host differ by some parts in ten million, which five rounds make a
/// thousand times as many; a round more or less is 7 parts in a hundred.
fn assert_near(found: f32, expected: f32) {
    let is_near = (found - expected).abs() <= 1e-3 * expected.abs();
    assert!(is_near, "{found} instead of {expected}");
}

fn simulator() -> Simulator {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"))
        .expect("clang is there: `apt-get install clang-19`")
}

/// A little model: vectors in one buffer, and a record that each step writes to. The token of a row is the number at
/// the beginning of vector 0, bit for bit.
struct Bench {
    device: SimDevice,
    log: CallLog,
    /// Its vectors are number 0 in the calls, its rows number 1, and the record is number 2.
    memory: StepMemory,
    table: RowTable,
}

impl Bench {
    /// A bench whose only row has made no step.
    fn new() -> Bench {
        Bench::over(SimBackend::new(simulator(), Schedule::Descending))
    }

    fn over(backend: SimBackend) -> Bench {
        let log = backend.log();
        let mut device = SimDevice::over(backend, ChipConfig::m1());
        let row_capacity = ROWS + 1;
        let mut allocate = |bytes| device.allocate(bytes, "test").expect("memory");
        let tokens = allocate(8 * BYTES);
        let rows = allocate(row_capacity as usize * size_of::<Row>());
        let chosen = allocate(4 * (SLOTS * row_capacity) as usize);
        let outputs = allocate(4 * row_capacity as usize);
        let memory = StepMemory {
            rows,
            tokens,
            outputs,
            // Nothing is chosen here.
            rules: outputs,
            history: outputs,
            chosen,
            row_capacity,
            n_sequences: 4,
            history_stride: 1,
            max_steps: SLOTS,
        };
        let mut bench = Bench {
            device,
            log,
            memory,
            table: RowTable::new(memory, &[]),
        };
        bench.start(1, 0);
        bench
    }

    /// As many rows, which have made so many steps.
    fn start(&mut self, n_rows: u32, step: u32) {
        self.table.clear_rows();
        for sequence in 0..n_rows {
            let row = Row {
                step,
                ..Row::at(sequence, 0)
            };
            self.table.push_single(row, 0);
        }
    }

    fn vector(&self, n: usize) -> Slice {
        Slice {
            buffer: self.memory.tokens,
            offset: n * BYTES,
        }
    }

    /// `vector[y] = silu(vector[a]) * vector[b]`, for these rows.
    fn gate_rows(&self, rows: Count, [a, b, y]: [usize; 3]) -> KernelCall {
        let count = RowField::times(offset_of!(ElementwiseParams, count), rows, COUNT);
        let [gate, up, y] = [a, b, y].map(|n| self.vector(n));
        let buffers = gate::Buffers { gate, up, y };
        let key = PipelineKey::plain(KernelId::SiluGate);
        let params = ElementwiseParams::default();
        KernelCall::new(key, &params, buffers, "gate").with_rows([count])
    }

    /// `vector[y] = silu(vector[a]) * vector[b]`.
    fn gate(&self, vectors: [usize; 3]) -> KernelCall {
        self.gate_rows(Count::Rows, vectors)
    }

    /// Moves the rows on.
    fn advance(&self) -> KernelCall {
        let program = Program {
            ops: vec![Op::Advance],
            step: Some(self.memory),
            room: Bench::counts(0),
        };
        lower::plain(&program).remove(0)
    }

    fn counts(run: u32) -> Counts {
        Counts {
            singles: ROWS,
            run,
            outputs: ROWS,
        }
    }

    /// Loads kernels for [`ROWS`] singles.
    fn load(&mut self, calls: Vec<KernelCall>) -> PlanId {
        self.load_with_run(calls, 0)
    }

    fn load_with_run(&mut self, calls: Vec<KernelCall>, run: u32) -> PlanId {
        let advances = |call: &KernelCall| call.key.kernel == KernelId::AdvanceRows;
        let room = Room {
            step: Some(self.memory),
            counts: Bench::counts(run),
            advances: calls.iter().any(advances),
            ..Room::default()
        };
        let plan = self.device.load_kernels(calls, room);
        plan.expect("it compiles and fits")
    }

    /// Makes of vector 1 what [`after`] says, by way of vectors 0 and 2, and keeps what vector 0 is.
    fn plan(&mut self) -> PlanId {
        let calls = vec![
            self.gate([1, 1, 0]),
            self.gate([1, 1, 2]),
            self.advance(),
            self.gate([0, 2, 1]),
        ];
        self.load(calls)
    }

    /// Submits as many rounds of a program that moves its rows on.
    fn submit(&mut self, plan: PlanId, rounds: u32) -> Result<Ticket, DeviceError> {
        let step = self.table.check(rounds)?;
        let ticket = self.device.submit(plan, Some(&step))?;
        self.table.submitted(rounds, true);
        Ok(ticket)
    }

    fn run(&mut self, plan: PlanId, rounds: u32) {
        let ticket = self.submit(plan, rounds).expect("submitted");
        self.device.wait(ticket).expect("runs");
    }

    fn set(&mut self, n: usize, value: f32) {
        let values = [value; (ROWS * COUNT) as usize];
        let Slice { buffer, offset } = self.vector(n);
        let bytes = bytemuck::cast_slice(&values);
        self.device.write(buffer, offset, bytes).expect("fits");
    }

    /// The first element of each row of a vector.
    fn get_rows(&self, n: usize) -> [f32; ROWS as usize] {
        let Slice { buffer, offset } = self.vector(n);
        let values: Vec<f32> = self.numbers(buffer, offset, (ROWS * COUNT) as usize);
        std::array::from_fn(|row| values[row * COUNT as usize])
    }

    fn get(&self, n: usize) -> f32 {
        self.get_rows(n)[0]
    }

    /// Checks what was kept of row 0: in each slot what so many rounds keep.
    fn assert_kept(&self, expected: &[(usize, u32)]) {
        let kept = self.kept();
        assert_eq!(kept.len(), expected.len(), "{kept:?}");
        for ((slot, value), &(expected_slot, rounds)) in kept.into_iter().zip(expected) {
            assert_eq!(slot, expected_slot);
            assert_near(value, after(rounds).1);
        }
    }

    /// What was kept of row 0, and in which slot.
    fn kept(&self) -> Vec<(usize, f32)> {
        let n = self.memory.chosen.len / 4;
        let values: Vec<f32> = self.numbers(self.memory.chosen, 0, n);
        let of_row = values
            .into_iter()
            .step_by(self.memory.row_capacity as usize);
        of_row
            .enumerate()
            .filter(|(_, value)| *value != 0.0)
            .collect()
    }

    fn numbers<T: bytemuck::Pod>(&self, buffer: Buffer, offset: usize, n: usize) -> Vec<T> {
        let mut values = vec![T::zeroed(); n];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        self.device.read(buffer, offset, bytes).expect("fits");
        values
    }
}
