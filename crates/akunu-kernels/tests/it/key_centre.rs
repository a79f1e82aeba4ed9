//! What keys are stored less of reaches every kernel that stores keys or turns them.

use akunu_kernels::chip::ChipConfig;
use akunu_kernels::lower;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Constant, KernelCall, KernelId};
use akunu_program::{
    Counts, Device, Heads, LayerCache, Op, PageMap, Pairing, Program, Rope, Slice, StepMemory, op,
};
use akunu_types::KvFormat;

use crate::chips::{nvidia, rules};

/// RoPE with attention, and a shift, of one row. No kernel runs, so that all lie in the same memory.
fn program(centre: Option<Slice>, memory: Slice) -> Program {
    let heads = Heads {
        n_heads: 2,
        n_kv_heads: 1,
        head_dim: 64,
    };
    let buffer = memory.buffer;
    let cache = LayerCache {
        k: buffer,
        v: buffer,
        pages: PageMap {
            table: buffer,
            table_stride: 1,
            page_shift: 6,
            n_pages: 1,
            n_sequences: 1,
            window: None,
        },
        format: KvFormat::Q8,
    };
    let rope = Rope {
        pairing: Pairing::Halves,
        theta: 1e4,
        freq_scale: 1.0,
        turned_dim: heads.head_dim,
        divisors: memory,
    };
    let ops = vec![
        Op::RopeStore(op::RopeStore {
            q: memory,
            k: memory,
            v: memory,
            heads,
            rope,
            centre,
            norms: None,
            cache,
        }),
        Op::Attend(op::Attend {
            q: memory,
            to: memory,
            heads,
            cache,
            scale: 0.125,
            softcap: None,
            sinks: None,
        }),
        Op::Shift(op::Shift {
            cache,
            heads,
            rope,
            centre,
            sequence: 0,
            keep: 0,
            shift: 1,
            len: 1,
        }),
        Op::Advance,
    ];
    let step = StepMemory {
        rows: buffer,
        tokens: buffer,
        outputs: buffer,
        rules: buffer,
        history: buffer,
        chosen: buffer,
        row_capacity: 1,
        n_sequences: 1,
        history_stride: 1,
        max_steps: 1,
    };
    Program {
        ops,
        step: Some(step),
        room: Counts {
            singles: 1,
            run: 0,
            outputs: 0,
        },
    }
}

/// The kernels that store keys or turn them.
fn of_keys(calls: Vec<KernelCall>) -> Vec<KernelCall> {
    use KernelId::{DecodeAttentionNeox, KvShiftNeox, RopeNeoxStore};
    let is_of_keys = |call: &KernelCall| {
        [DecodeAttentionNeox, KvShiftNeox, RopeNeoxStore].contains(&call.key.kernel)
    };
    calls.into_iter().filter(is_of_keys).collect()
}

/// Breaks when a kernel does not get the centre, does not know that there is one, or takes something else for it where there is none.
#[test]
fn the_kernels_of_keys_get_their_centre() {
    let mut device = TwinDevice::new();
    let [memory, centre] = [(); 2].map(|()| device.allocate(1 << 16, "test").expect("memory"));
    let (memory, centre) = (Slice::from(memory), Slice::from(centre));
    for wanted in [Some(centre), None] {
        let program = program(wanted, memory);
        let ways = [
            lower::plain(&program),
            lower::by_rules(&program, &*rules(&ChipConfig::m1()), Some(memory.buffer)),
            lower::by_rules(&program, &*rules(&nvidia(90)), Some(memory.buffer)),
        ];
        for calls in ways.map(of_keys) {
            assert_eq!(calls.len(), 2, "{calls:?}");
            for call in calls {
                let has_centre = call.key.constants.bool(Constant::KeyCentre);
                assert_eq!(has_centre, wanted.is_some(), "{call:?}");
                assert_eq!(call.bindings.contains(&centre), has_centre, "{call:?}");
            }
        }
    }
}
