//! The plan check: each way in which a dispatch can be wrong is refused by name, and what passes runs.

use akunu_kernels::kernel::sampling::advance_rows;
use std::mem::offset_of;
use std::sync::Arc;

use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::plan::{Params, RowField};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    Constant, Constants, KernelCall, KernelDevice, KernelId, PipelineKey, Plan, PlanError,
};
use akunu_program::{Buffer, Count, Counts, Device, DeviceError, Room, Slice};
use akunu_types::params::{AdvanceRowsParams, AttentionParams, RMSNormParams};

/// A device with x, weight and y of two rows of 8, and a call that normalises them.
struct Bench {
    device: TwinDevice,
    x: Buffer,
    weight: Buffer,
    y: Buffer,
}

const ROW_BYTES: usize = 8 * 4;
const N_ROWS: usize = offset_of!(RMSNormParams, n_rows);

impl Bench {
    fn new() -> Bench {
        let mut device = TwinDevice::new();
        let mut allocate = |bytes| device.allocate(bytes, "test").expect("host memory");
        let (x, weight) = (allocate(2 * ROW_BYTES), allocate(ROW_BYTES));
        let y = allocate(2 * ROW_BYTES);
        Bench {
            device,
            x,
            weight,
            y,
        }
    }

    fn slices(&self) -> Vec<Slice> {
        vec![self.x.into(), self.weight.into(), self.y.into()]
    }

    /// The call on its own buffers.
    fn call(&self) -> KernelCall {
        normalise(self.slices())
    }

    fn write(&mut self, buffer: Buffer, values: &[f32]) {
        let bytes = bytemuck::cast_slice(values);
        self.device.write(buffer, 0, bytes).expect("fits");
    }

    fn read_y(&self) -> [f32; 16] {
        let mut y = [0f32; 16];
        let bytes = bytemuck::cast_slice_mut(&mut y);
        self.device.read(self.y, 0, bytes).expect("fits");
        y
    }
}

fn normalise(bindings: Vec<Slice>) -> KernelCall {
    let params = RMSNormParams {
        dim: 8,
        eps: 1e-5,
        n_rows: 2,
        ..Default::default()
    };
    KernelCall {
        key: PipelineKey::plain(KernelId::RmsNorm),
        params: Params::of(&params),
        bindings,
        row_fields: Vec::new(),
        label: "test",
    }
}

/// A plan of one call with room for these rows.
fn plan(call: KernelCall, counts: Counts) -> Result<Plan, DeviceError> {
    let room = Room {
        counts,
        ..Default::default()
    };
    Plan::make(vec![call], room, &mut HostPipelines::default())
}

/// What the check says of a call that is wrong.
fn refusal(call: KernelCall) -> PlanError {
    refusal_of_rows(call, Counts::default())
}

fn refusal_of_rows(call: KernelCall, counts: Counts) -> PlanError {
    match plan(call, counts) {
        Err(DeviceError::Plan(error)) => *error.downcast().expect("of the plan check"),
        Err(other) => panic!("not by the plan check: {other}"),
        Ok(_) => panic!("the plan is wrong"),
    }
}

fn singles(singles: u32) -> Counts {
    Counts {
        singles,
        ..Default::default()
    }
}

#[test]
fn a_checked_plan_runs_and_writes_what_the_twin_says() {
    let mut bench = Bench::new();
    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    bench.write(bench.x, &x);
    bench.write(bench.weight, &[2f32; 8]);
    let plan = bench
        .device
        .load_kernels(vec![bench.call()], Room::default());
    let plan = plan.expect("sizes are right");
    bench.device.run(plan, None).expect("runs");

    let mean_square = (0..8).map(|i| f64::from(i * i)).sum::<f64>() / 8.0;
    let expected = 2.0 * 7.0 / (mean_square + 1e-5).sqrt();
    let found = bench.read_y()[7];
    let error = (f64::from(found) - expected).abs();
    assert!(error < 1e-6, "{found} instead of {expected}");
}

#[test]
fn a_program_that_was_unloaded_stands_for_nothing() {
    let mut bench = Bench::new();
    let plan = bench
        .device
        .load_kernels(vec![bench.call()], Room::default());
    let plan = plan.expect("sizes are right");
    bench.device.unload(plan);
    let gone = bench.device.run(plan, None).expect_err("it was unloaded");
    assert!(
        matches!(
            gone,
            DeviceError::Foreign {
                what: "program",
                ..
            }
        ),
        "{gone}"
    );
}

#[test]
fn a_buffer_that_is_one_byte_short_is_refused() {
    let mut bench = Bench::new();
    let short = bench.device.allocate(2 * ROW_BYTES - 1, "short");
    let short = short.expect("host memory");
    let error = refusal(normalise(vec![
        bench.x.into(),
        bench.weight.into(),
        short.into(),
    ]));
    assert!(
        matches!(
            error,
            PlanError::TooSmall {
                binding: "y",
                needed: 64,
                len: 63,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_offset_counts_against_the_buffer_and_must_be_aligned() {
    let mut bench = Bench::new();
    let at = |buffer, offset| {
        let x = Slice { buffer, offset };
        normalise(vec![x, bench.weight.into(), bench.y.into()])
    };
    let error = refusal(at(bench.x, ROW_BYTES));
    assert!(
        matches!(error, PlanError::TooSmall { binding: "x", .. }),
        "{error}"
    );

    let big = bench.device.allocate(4 * ROW_BYTES, "big");
    let error = refusal(at(big.expect("host memory"), 2));
    assert!(
        matches!(
            error,
            PlanError::Misaligned {
                binding: "x",
                offset: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn writing_to_weights_or_over_an_input_is_refused() {
    let mut bench = Bench::new();
    let mapped = bench.device.share(Arc::new(vec![0u8; 64]), "weights");
    let mapped = mapped.expect("shared");
    let to = |y: Buffer| normalise(vec![bench.x.into(), bench.weight.into(), y.into()]);
    let error = refusal(to(mapped));
    assert!(
        matches!(error, PlanError::ReadOnly { binding: "y", .. }),
        "{error}"
    );
    let error = refusal(to(bench.x));
    assert!(
        matches!(error, PlanError::Overlap { a: "x", b: "y", .. }),
        "{error}"
    );
}

#[test]
fn wrong_shapes_of_a_call_are_refused() {
    let bench = Bench::new();
    let error = refusal(normalise(vec![bench.x.into(), bench.weight.into()]));
    assert!(
        matches!(
            error,
            PlanError::BindingCount {
                found: 2,
                wanted: 3,
                ..
            }
        ),
        "{error}"
    );

    let good = bench.call();
    let error = refusal(KernelCall {
        params: Params::of(&AttentionParams::default()),
        ..good.clone()
    });
    assert!(
        matches!(
            error,
            PlanError::ParamsSize {
                found: 48,
                wanted: 16,
                ..
            }
        ),
        "{error}"
    );

    // The last bytes of the params, and one byte further.
    let field = |offset| good.clone().with_rows([RowField::new(offset, Count::Rows)]);
    assert!(plan(field(12), singles(2)).is_ok());
    let error = refusal(field(13));
    assert!(
        matches!(
            error,
            PlanError::RowField {
                end: 17,
                size: 16,
                ..
            }
        ),
        "{error}"
    );

    let mut other = good.clone();
    other.key.constants = Constants::none().with_u32(Constant::HeadDim, 64);
    let error = refusal(other);
    assert!(
        matches!(error, PlanError::UnknownConstant { .. }),
        "{error}"
    );

    // No rows are nothing to launch.
    let error = refusal(good.with_rows([RowField::new(N_ROWS, Count::Rows)]));
    assert!(matches!(error, PlanError::Launch { .. }), "{error}");
}

/// A plan is checked for as many rows as it has room for, and takes fewer.
#[test]
fn a_full_step_decides() {
    let mut bench = Bench::new();
    let call = bench.call().with_rows([RowField::new(N_ROWS, Count::Rows)]);
    assert!(plan(call.clone(), singles(2)).is_ok());
    let error = refusal_of_rows(call.clone(), singles(3));
    assert!(
        matches!(
            error,
            PlanError::TooSmall {
                binding: "x",
                needed: 96,
                ..
            }
        ),
        "{error}"
    );
    // As many rows, of which the kernel counts every one twice.
    let twice = bench
        .call()
        .with_rows([RowField::times(N_ROWS, Count::Rows, 2)]);
    let error = refusal_of_rows(twice, singles(2));
    assert!(
        matches!(
            error,
            PlanError::TooSmall {
                binding: "x",
                needed: 128,
                ..
            }
        ),
        "{error}"
    );

    // The number of rows in the params counts for nothing.
    bench.write(bench.x, &[1.0; 16]);
    bench.write(bench.weight, &[1.0; 8]);
    let room = Room {
        counts: singles(1),
        ..Room::default()
    };
    let plan = bench.device.load_kernels(vec![call], room);
    let plan = plan.expect("one row fits");
    bench.device.run(plan, None).expect("runs");
    assert_eq!(
        bench.read_y().map(|y| y != 0.0),
        [[true; 8], [false; 8]].concat()[..]
    );
}

/// Each number of rows, in its field and in no other.
#[test]
fn rows_are_written_to_their_fields_and_to_no_others() {
    let bytes = |len| {
        Buffer {
            id: len as u32,
            generation: 0,
            len,
            writable: true,
        }
        .into()
    };
    let params = AdvanceRowsParams {
        n_rows: 1,
        chosen_stride: 100,
        max_steps: 1,
        ..Default::default()
    };
    let room = Counts {
        singles: 9,
        run: 20,
        outputs: 11,
    };
    let counts = Counts {
        singles: 5,
        run: 7,
        outputs: 6,
    };
    for (count, times, full, some) in [
        (Count::Rows, 1, 29, 12),
        (Count::Singles, 1, 9, 5),
        (Count::Run, 2, 40, 14),
        (Count::Outputs, 3, 33, 18),
    ] {
        let field = RowField::times(offset_of!(AdvanceRowsParams, n_rows), count, times);
        let key = PipelineKey::plain(KernelId::AdvanceRows);
        let buffers = advance_rows::Buffers {
            rows: bytes(40 * 32),
            tokens: bytes(40 * 4),
            chosen: bytes(100 * 4),
        };
        let call = KernelCall::new(key, &params, buffers, "test").with_rows([field]);
        let plan = plan(call, room).expect("sizes are right");
        let dispatch = &plan.dispatches()[0];
        assert!(!dispatch.is_fixed());
        let wanted = |n_rows| Params::of(&AdvanceRowsParams { n_rows, ..params });
        assert_eq!(dispatch.params, wanted(full), "{count:?}");
        assert_eq!(dispatch.params_for(&counts), wanted(some), "{count:?}");
    }
    let bench = Bench::new();
    let fixed = plan(bench.call(), room).expect("sizes are right");
    assert!(fixed.dispatches()[0].is_fixed());
}
