//! That every operation can be run by itself, and that kernels of several operations compute the same.

use std::ops::Range;

use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelCall, KernelDevice, lower};
use akunu_program::{Buffer, Counts, Device, Op, Program, Room, RowTable, op};
use akunu_types::params::Row;

use super::model::{Model, N_SEQUENCES, TABLE_STRIDE, VOCAB};
use crate::chips::{nvidia, rules};

/// The kernels of a program, and what they have room for.
type Lowered = (Vec<KernelCall>, Room);

fn plain(program: &Program) -> Lowered {
    (lower::plain(program), program.plan_room())
}

/// Runs parts of the operations, on a device of its own, and returns what all memory holds afterwards.
fn run_parts(parts: &[Range<usize>], is_single: bool) -> Vec<Vec<u8>> {
    run_programs(is_single, |model, room| {
        let part = |part: &Range<usize>| plain(&model.program(&model.ops[part.clone()], room));
        parts.iter().map(part).collect()
    })
}

/// Runs programs, on a device of its own, and returns what all memory holds afterwards: two sequences go on, a third begins; or
/// only one goes on.
fn run_programs(
    is_single: bool,
    programs: impl FnOnce(&Model, [u32; 3]) -> Vec<Lowered>,
) -> Vec<Vec<u8>> {
    let mut device = TwinDevice::new();
    let model = Model::new(&mut device);
    let mut table = RowTable::new(model.step, &[model.pages]);
    for place in 0..N_SEQUENCES * TABLE_STRIDE {
        // In any order.
        let page = (5 * place + 2) % (N_SEQUENCES * TABLE_STRIDE);
        table.set_page(0, place / TABLE_STRIDE, place % TABLE_STRIDE, Some(page));
    }
    table.push_single(Row::at(1, 70), 9);
    if !is_single {
        table.push_single(Row::at(0, 3), 31);
        for position in 0..3 {
            table.push_run(Row::at(2, position), 40 + position);
        }
        table.push_output(4);
    }
    let Counts {
        singles,
        run,
        outputs,
    } = table.counts();
    for (calls, room) in programs(&model, [singles, run, outputs]) {
        let advances = room.advances;
        let plan = device.load_kernels(calls, room).expect("sizes are right");
        let step = table.check(1).expect("within its pages");
        device.run(plan, Some(&step)).expect("runs");
        // The device has the rows; what comes next must not have them written again.
        table.submitted(1, advances);
    }
    let bytes = |&buffer: &Buffer| {
        let mut bytes = vec![0; buffer.len];
        device.read(buffer, 0, &mut bytes).expect("it fits");
        bytes
    };
    let rows: &[u8] = bytemuck::cast_slice(table.rows());
    assert!(bytes(&model.step.rows).starts_with(rows));
    model.buffers.iter().map(bytes).collect()
}

/// Every operation is lowered by itself and leaves all that it gives in memory. So a program can be cut anywhere, and
/// its parts be run one after another, also by different devices: the first wrong operation of one is found so.
#[test]
fn a_program_can_be_cut_anywhere() {
    let n = Model::new(&mut TwinDevice::new()).ops.len();
    for is_single in [true, false] {
        let run = |parts: &[Range<usize>]| run_parts(parts, is_single);
        let whole = run(&[0..n, n..n]);
        for at in 0..n {
            assert!(run(&[0..at, at..n]) == whole, "cut before operation {at}");
            // Planted: an operation that is not run.
            assert!(run(&[0..at, at + 1..n]) != whole, "without operation {at}");
        }
        let each: Vec<Range<usize>> = (0..n).map(|at| at..at + 1).collect();
        assert!(run(&each) == whole, "operation by operation");
    }
}

/// What the kernels of an NVIDIA GPU compute together is what operations compute one by one: the logits, and the token that is
/// chosen. Breaks when one is given another's memory, or leaves out what somebody reads.
#[test]
fn kernels_of_several_operations_compute_the_same() {
    let chip = nvidia(90);
    let model = Model::new(&mut TwinDevice::new());
    let place = |wanted: Buffer| {
        let place = model.buffers.iter().position(|&buffer| buffer == wanted);
        place.expect("it is the model's")
    };
    let logits = model.ops.iter().find_map(|op| match op {
        Op::Choose(op::Choose { logits, .. }) => Some(place(logits.buffer)),
        _ => None,
    });
    let (logits, history) = (
        logits.expect("a token is chosen"),
        place(model.step.history),
    );
    let plain = run_programs(true, |model, room| {
        vec![self::plain(&model.program(&model.ops, room))]
    });
    let fused = run_programs(true, |model, room| {
        let program = model.program(&model.ops, room);
        let calls = lower::by_rules(&program, &*rules(&chip), None);
        vec![(calls, program.plan_room())]
    });
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.as_chunks().0.iter();
        words.map(|&word| f32::from_ne_bytes(word)).collect()
    };
    let (plain_logits, fused_logits) = (floats(&plain[logits]), floats(&fused[logits]));
    let mut largest = 0.0;
    for (plain, fused) in plain_logits.iter().zip(&fused_logits).take(VOCAB as usize) {
        assert!((plain - fused).abs() < 1e-5, "{plain} and {fused}");
        largest = plain.abs().max(largest);
    }
    assert!(largest > 0.1, "there are logits");
    assert_eq!(plain[history], fused[history]);
}
