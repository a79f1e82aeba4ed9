//! The plan check: each way in which a dispatch can be wrong is refused by name, and what passes runs.

use std::mem::offset_of;
use std::sync::Arc;

use akunu_kernels::plan::{Params, Slice};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    Buffer, ChipConfig, Constant, Constants, Device, DeviceError, Dispatch, KernelId, Patch,
    PipelineKey, Plan, PlanError,
};
use akunu_types::params::{AttentionParams, ElementwiseParams, RMSNormParams, RoPEParams};

/// A device with x, weight and y of two rows of 8, and a dispatch that normalises them.
struct Bench {
    device: TwinDevice,
    x: Buffer,
    weight: Buffer,
    y: Buffer,
}

const ROW_BYTES: usize = 8 * 4;

impl Bench {
    fn new() -> Bench {
        let mut device = TwinDevice::new(ChipConfig::m1());
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

    fn dispatch(&mut self, bindings: Vec<Slice>) -> Dispatch {
        let params = RMSNormParams {
            dim: 8,
            eps: 1e-5,
            n_rows: 2,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::RmsNorm);
        Dispatch::new(&mut self.device, key, &params, bindings, "test").expect("a twin exists")
    }

    fn refusal(&mut self, bindings: Vec<Slice>) -> PlanError {
        let dispatch = self.dispatch(bindings);
        Plan::check(vec![dispatch], 0).expect_err("the plan is wrong")
    }
}

#[test]
fn a_checked_plan_runs_and_writes_what_the_twin_says() {
    let mut bench = Bench::new();
    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    bench
        .device
        .write(bench.x, 0, bytemuck::cast_slice(&x))
        .expect("fits");
    bench
        .device
        .write(bench.weight, 0, bytemuck::cast_slice(&[2f32; 8]))
        .expect("fits");
    let dispatch = bench.dispatch(bench.slices());
    let plan = Plan::check(vec![dispatch], 0).expect("sizes are right");
    bench.device.run(&plan, 0).expect("runs");

    let mut y = [0f32; 16];
    bench
        .device
        .read(bench.y, 0, bytemuck::cast_slice_mut(&mut y))
        .expect("fits");
    let mean_square = (0..8).map(|i| f64::from(i * i)).sum::<f64>() / 8.0;
    let expected = 2.0 * 7.0 / (mean_square + 1e-5).sqrt();
    assert!(
        (f64::from(y[7]) - expected).abs() < 1e-6,
        "{} instead of {expected}",
        y[7]
    );
}

#[test]
fn a_buffer_that_is_one_byte_short_is_refused() {
    let mut bench = Bench::new();
    let short = bench
        .device
        .allocate(2 * ROW_BYTES - 1, "short")
        .expect("host memory");
    let error = bench.refusal(vec![bench.x.into(), bench.weight.into(), short.into()]);
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
    let shifted = |offset| Slice {
        buffer: bench.x,
        offset,
    };
    let (far, odd) = (shifted(ROW_BYTES), shifted(2));
    let error = bench.refusal(vec![far, bench.weight.into(), bench.y.into()]);
    assert!(
        matches!(error, PlanError::TooSmall { binding: "x", .. }),
        "{error}"
    );

    let big = bench
        .device
        .allocate(4 * ROW_BYTES, "big")
        .expect("host memory");
    let odd = Slice { buffer: big, ..odd };
    let error = bench.refusal(vec![odd, bench.weight.into(), bench.y.into()]);
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
    let mapped = bench
        .device
        .share(Arc::new(vec![0u8; 64]), "weights")
        .expect("shared");
    let error = bench.refusal(vec![bench.x.into(), bench.weight.into(), mapped.into()]);
    assert!(
        matches!(error, PlanError::ReadOnly { binding: "y", .. }),
        "{error}"
    );

    let error = bench.refusal(vec![bench.x.into(), bench.weight.into(), bench.x.into()]);
    assert!(
        matches!(error, PlanError::Overlap { a: "x", b: "y", .. }),
        "{error}"
    );
}

#[test]
fn wrong_shapes_of_a_dispatch_are_refused() {
    let mut bench = Bench::new();
    let error = bench.refusal(vec![bench.x.into(), bench.weight.into()]);
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

    let good = bench.dispatch(bench.slices());
    let refuse = |dispatch: Dispatch| Plan::check(vec![dispatch], 0).expect_err("wrong");

    let other = Params::of(&AttentionParams::default());
    let error = refuse(Dispatch {
        params: other,
        ..good.clone()
    });
    assert!(
        matches!(
            error,
            PlanError::ParamsSize {
                found: 32,
                wanted: 16,
                ..
            }
        ),
        "{error}"
    );

    let error = refuse(good.clone().patched(Patch::position(16)));
    assert!(
        matches!(
            error,
            PlanError::PatchRange {
                end: 20,
                size: 16,
                ..
            }
        ),
        "{error}"
    );

    let constants = Constants::none().with_u32(Constant::HeadDim, 64);
    let error = refuse(Dispatch {
        constants,
        ..good.clone()
    });
    assert!(
        matches!(error, PlanError::UnknownConstant { .. }),
        "{error}"
    );

    let mut launch = good.launch;
    launch.threads = [1025, 1, 1];
    let error = refuse(Dispatch { launch, ..good });
    assert!(matches!(error, PlanError::Launch { .. }), "{error}");
}

/// The plan is checked at its largest position: a patch that makes the kernel touch more is caught.
#[test]
fn the_largest_position_decides() {
    let mut bench = Bench::new();
    let rows = offset_of!(RMSNormParams, n_rows);
    let dispatch = bench
        .dispatch(bench.slices())
        .patched(Patch::position(rows));
    assert!(Plan::check(vec![dispatch.clone()], 2).is_ok());
    let error = Plan::check(vec![dispatch.clone()], 3).expect_err("three rows do not fit");
    assert!(
        matches!(
            error,
            PlanError::TooSmall {
                binding: "x",
                position: 3,
                ..
            }
        ),
        "{error}"
    );

    let plan = Plan::check(vec![dispatch], 2).expect("two rows fit");
    let error = bench
        .device
        .run_chain(&plan, 1, 3)
        .expect_err("position 3 was not checked");
    assert!(
        matches!(
            error,
            DeviceError::Position {
                position: 3,
                max: 2
            }
        ),
        "{error}"
    );
}

/// A dispatch that is ahead of the run is checked where it will be, not where the run is.
#[test]
fn a_dispatch_that_is_ahead_is_checked_as_far_ahead() {
    let mut bench = Bench::new();
    let rows = Patch::position(offset_of!(RMSNormParams, n_rows));
    let dispatch = bench.dispatch(bench.slices()).patched(rows.ahead(1));
    assert!(Plan::check(vec![dispatch.clone()], 1).is_ok());
    let error = Plan::check(vec![dispatch], 2).expect_err("three rows do not fit");
    assert!(matches!(error, PlanError::TooSmall { .. }), "{error}");
}

#[test]
fn a_patch_writes_its_fields_and_no_others() {
    let params = Params::of(&AttentionParams {
        seq_len: 1,
        scale: 0.5,
        ..Default::default()
    });
    let patched = Patch::length(offset_of!(AttentionParams, kv_seq_len), 1).apply(&params, 41);
    let read: AttentionParams = bytemuck::pod_read_unaligned(patched.as_bytes());
    assert_eq!(
        read,
        AttentionParams {
            seq_len: 1,
            kv_seq_len: 42,
            scale: 0.5,
            ..Default::default()
        }
    );

    let params = Params::of(&RoPEParams {
        theta: 1e4,
        ..Default::default()
    });
    let patched = Patch::position(offset_of!(RoPEParams, pos_offset)).apply(&params, 7);
    let read: RoPEParams = bytemuck::pod_read_unaligned(patched.as_bytes());
    assert_eq!(
        read,
        RoPEParams {
            pos_offset: 7,
            theta: 1e4,
            ..Default::default()
        }
    );

    let both = Patch::position_and_length(0, 4, 3);
    for (patch, wanted) in [(both, (9, 12)), (both.ahead(5), (14, 17))] {
        let patched = patch.apply(&Params::of(&ElementwiseParams::default()), 9);
        let read: ElementwiseParams = bytemuck::pod_read_unaligned(patched.as_bytes());
        assert_eq!((read.count, read._pad0), wanted);
    }
}
