//! The host knows where the device's rows are after a chain.

use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Buffer, Counts, Device, Op, Program, RowTable, StepMemory};
use akunu_types::params::{Row, SamplingRule};

const ROW_CAPACITY: u32 = 8;
const N_SEQUENCES: u32 = 3;
const MAX_STEPS: u32 = 4;

fn memory(device: &mut dyn Device) -> StepMemory {
    let mut allocate = |n: u32, bytes: usize| {
        let buffer = device.allocate(n as usize * bytes, "test");
        buffer.expect("host memory")
    };
    StepMemory {
        rows: allocate(ROW_CAPACITY, size_of::<Row>()),
        tokens: allocate(ROW_CAPACITY, 4),
        outputs: allocate(ROW_CAPACITY, 4),
        rules: allocate(N_SEQUENCES, size_of::<SamplingRule>()),
        history: allocate(N_SEQUENCES, 4),
        chosen: allocate(MAX_STEPS * ROW_CAPACITY, 4),
        row_capacity: ROW_CAPACITY,
        n_sequences: N_SEQUENCES,
        history_stride: 1,
        max_steps: MAX_STEPS,
    }
}

fn read<T: bytemuck::Pod>(device: &dyn Device, buffer: Buffer, n: usize) -> Vec<T> {
    let mut values = vec![T::zeroed(); n];
    let bytes = bytemuck::cast_slice_mut(&mut values);
    device.read(buffer, 0, bytes).expect("fits");
    values
}

/// A chain of three moves the singles on, on the device and on the host alike; an idle row and the run stay. The record
/// begins again after its last step.
#[test]
fn the_host_knows_where_the_devices_rows_are() {
    let mut device = TwinDevice::new();
    let memory = memory(&mut device);
    let program = Program {
        ops: vec![Op::Advance],
        step: Some(memory),
        room: Counts {
            singles: 3,
            run: 2,
            outputs: 3,
        },
    };
    let plan = device.load(&program).expect("sizes are right");
    let mut table = RowTable::new(memory, &[]);
    let late = Row {
        step: 3,
        ..Row::at(0, 40)
    };
    let idle = Row {
        flags: 0,
        ..Row::at(0, 1)
    };
    for (row, token) in [(late, 11), (idle, 12), (Row::at(1, 7), 13)] {
        table.push_single(row, token);
    }
    table.push_run(Row::at(2, 0), 14);
    table.push_run(Row::at(2, 1), 15);
    let before = table.rows().to_vec();
    for n in [3, 1] {
        let step = table.check(n).expect("no pages are needed");
        device.run(plan, Some(&step)).expect("runs");
        table.submitted(n, true);
        assert_eq!(read::<Row>(&device, memory.rows, 5), table.rows());
    }
    let moved = |row: Row| Row {
        position: row.position + 4,
        slot: row.slot + 4,
        length: row.length + 4,
        step: row.step + 4,
        ..row
    };
    let [late, idle, single, first, second] = before[..] else {
        panic!("five rows")
    };
    assert_eq!(
        table.rows(),
        [moved(late), idle, moved(single), first, second]
    );
    let chosen: Vec<u32> = read(&device, memory.chosen, memory.chosen.len / 4);
    for round in chosen.chunks(ROW_CAPACITY as usize) {
        assert_eq!(round[..3], [11, 0, 13], "four steps in four places");
        assert_eq!(round[3..], [0; 5]);
    }
}
