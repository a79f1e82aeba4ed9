//! Plans: dispatches that were checked once and are then replayed for every token.

mod call;
mod check;
mod dispatch;
mod error;
mod params;

use akunu_program::{DeviceError, Room};

pub use self::call::KernelCall;
pub use self::dispatch::Dispatch;
pub use self::error::PlanError;
pub use self::params::{Params, RowField};
use crate::hazard;
use crate::pipeline::Pipelines;

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
        for (index, call) in calls.iter().enumerate() {
            check::call(index, call)?;
            // Only asked for: a device makes all of them at the same time.
            pipelines.pipeline(&call.key)?;
        }
        let mut dispatches = Vec::with_capacity(calls.len());
        for call in calls {
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
