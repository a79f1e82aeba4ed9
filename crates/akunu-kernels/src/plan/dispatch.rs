//! One launch of a plan.

use std::ops::Range;

use akunu_program::{Counts, DeviceError, Slice};
use akunu_types::DType;

use super::call::KernelCall;
use super::params::{Params, RowField};
use crate::chip::ChipConfig;
use crate::constant::Constants;
use crate::pipeline::{PipelineId, Pipelines};
use crate::table::{KernelId, Launch};

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

impl Dispatch {
    /// Waits for the pipeline: a GPU's limit of threads follows from the registers that the compiled kernel takes, and a
    /// validation layer lowers it.
    pub(super) fn new(
        call: KernelCall,
        room: &Counts,
        pipelines: &mut dyn Pipelines,
    ) -> Result<Dispatch, DeviceError> {
        let pipeline = pipelines.pipeline(&call.key)?;
        let max_threads = pipelines
            .thread_limit(pipeline)?
            .min(pipelines.chip().max_threads);
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
            max_threads,
        };
        dispatch.params = dispatch.params_for(room);
        dispatch.launch = dispatch.launch_for(&dispatch.params, pipelines.chip());
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
