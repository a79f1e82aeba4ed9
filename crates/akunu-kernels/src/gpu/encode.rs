//! From a plan to the calls of an encoder.

use std::ops::Range;

use akunu_program::{Counts, DeviceError};

use crate::chip::ChipConfig;
use crate::pipeline::PipelineId;
use crate::plan::{Dispatch, Params, Plan};
use crate::table::Launch;

use super::pipelines::Compiled;

/// The calls that a GPU gets. Dispatches between two barriers may run at the same time and in any order; what
/// is set stays set until it is set again.
pub trait Encoder {
    /// A buffer of the GPU.
    type Buffer;
    /// A compiled kernel.
    type Pipeline;

    /// The kernel of the dispatches that follow.
    fn set_pipeline(&mut self, pipeline: &Self::Pipeline);
    /// Binds a buffer from a byte offset on.
    fn set_buffer(&mut self, index: u8, buffer: &Self::Buffer, offset: usize);
    /// Binds a copy of some bytes, less than 4 KB.
    fn set_bytes(&mut self, index: u8, bytes: &[u8]);
    /// The size of the dynamic threadgroup memory, a multiple of 16.
    fn set_threadgroup_memory(&mut self, bytes: u32);
    /// What follows sees everything that came before.
    fn barrier(&mut self);
    /// Starts threadgroups.
    fn dispatch(&mut self, grid: [u32; 3], threads: [u32; 3]);
}

/// Where a plan's numbers lead.
pub trait Resources<E: Encoder> {
    /// The buffer that holds all that a dispatch touches of a binding, and the offset in it.
    fn place(
        &self,
        dispatch: &Dispatch,
        binding: usize,
    ) -> Result<(&E::Buffer, usize), DeviceError>;
    /// A pipeline that has been made.
    fn pipeline(&self, id: PipelineId) -> Result<&Compiled<E::Pipeline>, DeviceError>;
}

/// A part of a submission that one encoder takes: some dispatches of the plan, as often as it has rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionPart {
    /// How often the dispatches run.
    pub rounds: u32,
    /// The dispatches of each round.
    pub dispatches: Range<usize>,
    /// The rows of the step.
    pub counts: Counts,
}

/// Encodes a part of a submission. The plan must have admitted the step.
///
/// Barriers are where [`Plan::barrier_before`] says, but not before the first dispatch: an
/// encoder begins after all that was submitted before it. A dispatch without rows in this step is left out.
pub fn encode_part<E: Encoder>(
    plan: &Plan,
    part: &SubmissionPart,
    chip: &ChipConfig,
    resources: &impl Resources<E>,
    encoder: &mut E,
) -> Result<(), DeviceError> {
    let mut is_first = true;
    for _ in 0..part.rounds {
        // A barrier of a dispatch that is left out stands before the next one.
        let mut needs_barrier = false;
        for index in part.dispatches.clone() {
            needs_barrier |= plan.barrier_before(index) && !is_first;
            let dispatch = &plan.dispatches()[index];
            let params = dispatch.params_for(&part.counts);
            let launch = match params == dispatch.params {
                true => dispatch.launch,
                false => dispatch.launch_for(&params, chip),
            };
            if launch.grid.contains(&0) {
                continue;
            }
            if needs_barrier {
                encoder.barrier();
            }
            (is_first, needs_barrier) = (false, false);
            encode(index, dispatch, (&params, launch), resources, encoder)?;
        }
    }
    Ok(())
}

fn encode<E: Encoder>(
    index: usize,
    dispatch: &Dispatch,
    (params, launch): (&Params, Launch),
    resources: &impl Resources<E>,
    encoder: &mut E,
) -> Result<(), DeviceError> {
    /// Metal wants lengths of threadgroup memory in multiples of this.
    const GRANULE: u32 = 16;
    let row = dispatch.kernel.row();
    let compiled = resources.pipeline(dispatch.pipeline)?;
    let refused = |why| DeviceError::Dispatch {
        index,
        kernel: row.name(),
        why,
    };
    let (threads, most) = (launch.n_threads(), compiled.max_threads);
    if threads > most.into() {
        return Err(refused(format!(
            "it is launched with {threads} threads, its pipeline allows {most}"
        )));
    }
    let threadgroup_bytes = launch.threadgroup_bytes.next_multiple_of(GRANULE);
    let room = compiled.threadgroup_room;
    if threadgroup_bytes > room {
        return Err(refused(format!(
            "it needs {threadgroup_bytes} bytes of threadgroup memory, its pipeline leaves {room}"
        )));
    }
    encoder.set_pipeline(&compiled.pipeline);
    for (at, binding) in row.bindings.iter().enumerate() {
        let (buffer, offset) = resources.place(dispatch, at)?;
        encoder.set_buffer(binding.index, buffer, offset);
    }
    encoder.set_bytes(row.params_index, params.as_bytes());
    if threadgroup_bytes > 0 {
        encoder.set_threadgroup_memory(threadgroup_bytes);
    }
    encoder.dispatch(launch.grid, launch.threads);
    Ok(())
}
