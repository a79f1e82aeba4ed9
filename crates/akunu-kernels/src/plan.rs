//! Plans: dispatches that were checked once and are then replayed for every token.

mod check;
mod error;

use std::ops::Range;

use akunu_program::{Count, Counts, DeviceError, Room, Slice};
use akunu_types::{DType, SharedStruct};

pub use self::error::PlanError;
use crate::chip::ChipConfig;
use crate::constant::Constants;
use crate::hazard;
use crate::pipeline::{PipelineId, PipelineKey};
use crate::table::{KernelId, Launch};

/// The bytes of a params struct, inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    bytes: [u8; Params::CAPACITY],
    len: u8,
}

impl Params {
    /// Room for the largest params struct.
    pub const CAPACITY: usize = 64;

    /// The bytes of a struct.
    pub fn of<P: SharedStruct>(params: &P) -> Params {
        const { assert!(size_of::<P>() <= Params::CAPACITY) };
        let mut bytes = [0; Params::CAPACITY];
        bytes[..size_of::<P>()].copy_from_slice(bytemuck::bytes_of(params));
        Params {
            bytes,
            len: size_of::<P>() as u8,
        }
    }

    /// As many bytes as the struct has.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A field of the params that is a number of rows, or a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowField {
    /// Offset of the field, from `offset_of!`.
    pub offset: u8,
    /// Which rows.
    pub count: Count,
    /// The field is this many times as large.
    pub times: u32,
}

impl RowField {
    /// A field that is a number of rows.
    pub const fn new(offset: usize, count: Count) -> RowField {
        RowField::times(offset, count, 1)
    }

    /// A field that is a multiple of a number of rows.
    pub const fn times(offset: usize, count: Count, times: u32) -> RowField {
        RowField {
            offset: offset as u8,
            count,
            times,
        }
    }

    fn apply(&self, params: &mut Params, counts: &Counts) {
        let at = usize::from(self.offset);
        let value = counts.of(self.count).saturating_mul(self.times);
        params.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}

/// A kernel of the table with all that it is given: what operations are lowered to.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// The kernel and its constants.
    pub key: PipelineKey,
    /// The params, for as many rows as the program has room for.
    pub params: Params,
    /// A place for each binding of the kernel's row, in that order.
    pub bindings: Vec<Slice>,
    /// The fields of the params that depend on the number of rows.
    pub row_fields: Vec<RowField>,
    /// What it does in the model, for traces and errors.
    pub label: &'static str,
}

impl KernelCall {
    /// A call whose params do not depend on the rows of a step.
    pub fn new<P: SharedStruct>(
        key: PipelineKey,
        params: &P,
        bindings: Vec<Slice>,
        label: &'static str,
    ) -> KernelCall {
        KernelCall {
            key,
            params: Params::of(params),
            bindings,
            row_fields: Vec::new(),
            label,
        }
    }

    /// The same with fields that depend on the rows.
    pub fn with_rows(self, row_fields: impl Into<Vec<RowField>>) -> KernelCall {
        KernelCall {
            row_fields: row_fields.into(),
            ..self
        }
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: KernelId,
    /// Its weight format, for kernels of a grid.
    pub dtype: Option<DType>,
    /// Its pipeline on the device that the plan is for.
    pub pipeline: PipelineId,
    /// The constants it was specialised with.
    pub constants: Constants,
    /// A place for each binding of the kernel's row, in that order.
    pub bindings: Vec<Slice>,
    /// The params of a full step.
    pub params: Params,
    /// The geometry of a full step.
    pub launch: Launch,
    /// What it does in the model, for traces and errors.
    pub label: &'static str,
    row_fields: Vec<RowField>,
    /// Threads that a threadgroup may have.
    max_threads: u32,
}

/// Makes the pipelines of a plan.
pub trait Pipelines {
    /// The chip that launches are laid out for.
    fn chip(&self) -> &ChipConfig;

    /// The pipeline of this key, made at the first request.
    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError>;

    /// Most threads of a threadgroup that a pipeline can be launched with.
    fn thread_limit(&mut self, pipeline: PipelineId) -> Result<u32, DeviceError> {
        let _ = pipeline;
        Ok(self.chip().max_threads)
    }
}

impl Dispatch {
    fn new(
        call: KernelCall,
        room: &Counts,
        pipelines: &mut dyn Pipelines,
    ) -> Result<Dispatch, DeviceError> {
        let pipeline = pipelines.pipeline(&call.key)?;
        let mut dispatch = Dispatch {
            kernel: call.key.kernel,
            dtype: call.key.kernel.row().dtype,
            pipeline,
            constants: call.key.constants,
            bindings: call.bindings,
            params: call.params,
            launch: Launch::new([0; 3], [0; 3]),
            label: call.label,
            row_fields: call.row_fields,
            max_threads: pipelines.chip().max_threads,
        };
        dispatch.params = dispatch.params_for(room);
        dispatch.launch = dispatch.launch_for(&dispatch.params, pipelines.chip());
        // The limit is known only when the pipeline has been made, so only large launches wait for it.
        if dispatch.launch.n_threads() > MODEST_THREADS {
            dispatch.max_threads = pipelines.thread_limit(pipeline)?.min(dispatch.max_threads);
            dispatch.launch = dispatch.launch_for(&dispatch.params, pipelines.chip());
        }
        Ok(dispatch)
    }

    /// The params for as many rows.
    pub fn params_for(&self, counts: &Counts) -> Params {
        let mut params = self.params;
        for field in &self.row_fields {
            field.apply(&mut params, counts);
        }
        params
    }

    /// The geometry for these params.
    pub fn launch_for(&self, params: &Params, chip: &ChipConfig) -> Launch {
        let row = self.kernel.row();
        let args = row.args(params.as_bytes(), &self.constants);
        if self.max_threads >= chip.max_threads {
            return (row.launch)(&args, chip);
        }
        let chip = ChipConfig {
            max_threads: self.max_threads,
            ..chip.clone()
        };
        (row.launch)(&args, &chip)
    }

    /// Whether its params are the same for every number of rows.
    pub fn is_fixed(&self) -> bool {
        self.row_fields.is_empty()
    }

    /// The bytes of each binding that the kernel may touch in a full step.
    pub fn extents(&self) -> Vec<Range<usize>> {
        let row = self.kernel.row();
        let required = (row.required)(&row.args(self.params.as_bytes(), &self.constants));
        let ranges = self.bindings.iter().zip(required);
        ranges
            .map(|(slice, bytes)| slice.offset..slice.offset.saturating_add(bytes))
            .collect()
    }
}

/// As many threads every pipeline takes, however many registers it needs; a device refuses a launch
/// that it cannot do.
const MODEST_THREADS: u64 = 256;

/// A list of dispatches that was checked: no dispatch can read or write out of bounds, whatever checked rows it runs
/// with.
#[derive(Debug)]
pub struct Plan {
    dispatches: Vec<Dispatch>,
    barriers: Vec<bool>,
    flops: Vec<u64>,
    room: Room,
}

impl Plan {
    /// Makes the pipelines and checks every call for a full step.
    pub fn make(
        calls: Vec<KernelCall>,
        room: Room,
        pipelines: &mut dyn Pipelines,
    ) -> Result<Plan, DeviceError> {
        let mut dispatches = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            check::call(index, &call)?;
            dispatches.push(Dispatch::new(call, &room.counts, pipelines)?);
        }
        for (index, dispatch) in dispatches.iter().enumerate() {
            check::launch(index, dispatch)?;
            check::bindings(index, dispatch)?;
        }
        Ok(Plan {
            barriers: hazard::barriers(&dispatches),
            flops: dispatches
                .iter()
                .map(|dispatch| dispatch.work().flops)
                .collect(),
            dispatches,
            room,
        })
    }

    /// The dispatches in order.
    pub fn dispatches(&self) -> &[Dispatch] {
        &self.dispatches
    }

    /// Whether this dispatch touches what earlier ones may still be working on: all of them must have
    /// ended before it begins. Dispatches without one between them may run at the same time.
    pub fn barrier_before(&self, index: usize) -> bool {
        self.barriers[index]
    }

    /// Operations of each dispatch of a full step.
    pub fn flops(&self) -> &[u64] {
        &self.flops
    }

    /// How many rows it takes.
    pub fn room(&self) -> &Room {
        &self.room
    }
}
