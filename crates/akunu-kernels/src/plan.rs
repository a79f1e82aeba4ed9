//! Plans: dispatches that were checked once and are then replayed for every token.

mod check;
mod error;

use std::ops::Range;

use akunu_types::SharedStruct;

pub use self::error::PlanError;
use crate::chip::ChipConfig;
use crate::constant::Constants;
use crate::device::{Buffer, Device, DeviceError};
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

/// The fields of the params that change with the position.
///
/// A run at position p writes p into the position field, and p plus the number of rows (1 when
/// decoding) into the length field. Offsets come from `offset_of!`. Where one plan steps several
/// sequences, each of its dispatches is as far [`ahead`](Patch::ahead) of p as its sequence is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    position: Option<u8>,
    length: Option<(u8, u32)>,
    ahead: u32,
}

impl Patch {
    /// Patches a position (`pos`, `pos_offset`).
    pub const fn position(offset: usize) -> Patch {
        Patch {
            position: Some(offset as u8),
            length: None,
            ahead: 0,
        }
    }

    /// Patches a length (`kv_seq_len`) to the position plus `n_rows`.
    pub const fn length(offset: usize, n_rows: u32) -> Patch {
        Patch {
            position: None,
            length: Some((offset as u8, n_rows)),
            ahead: 0,
        }
    }

    /// Patches a position and a length.
    pub const fn position_and_length(position: usize, length: usize, n_rows: u32) -> Patch {
        Patch {
            position: Some(position as u8),
            length: Some((length as u8, n_rows)),
            ahead: 0,
        }
    }

    /// The same, for positions that are `ahead` beyond those of the run.
    pub const fn ahead(self, ahead: u32) -> Patch {
        Patch { ahead, ..self }
    }

    /// The params patched to `position`.
    pub fn apply(&self, params: &Params, position: u32) -> Params {
        let mut patched = *params;
        let position = position.saturating_add(self.ahead);
        let mut put = |offset: u8, value: u32| {
            let at = usize::from(offset);
            patched.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        if let Some(offset) = self.position {
            put(offset, position);
        }
        if let Some((offset, n_rows)) = self.length {
            put(offset, position.saturating_add(n_rows));
        }
        patched
    }

    /// The last byte that it writes, plus one.
    fn end(&self) -> usize {
        let length = self.length.map(|(offset, _)| offset);
        self.position
            .max(length)
            .map_or(0, |offset| usize::from(offset) + 4)
    }
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The buffer.
    pub buffer: Buffer,
    /// Byte offset.
    pub offset: usize,
}

impl From<Buffer> for Slice {
    fn from(buffer: Buffer) -> Slice {
        Slice { buffer, offset: 0 }
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: KernelId,
    /// Its pipeline on the device that the plan is for.
    pub pipeline: PipelineId,
    /// The constants it was specialised with.
    pub constants: Constants,
    /// A place for each binding of the kernel's row, in that order.
    pub bindings: Vec<Slice>,
    /// The params.
    pub params: Params,
    /// Geometry.
    pub launch: Launch,
    /// What changes with the position.
    pub patch: Patch,
    /// What it does in the model, for traces and errors.
    pub label: &'static str,
}

impl Dispatch {
    /// A dispatch of `key` on `device`: makes the pipeline and asks the row for the geometry.
    pub fn new<P: SharedStruct>(
        device: &mut dyn Device,
        key: PipelineKey,
        params: &P,
        bindings: Vec<Slice>,
        label: &'static str,
    ) -> Result<Dispatch, DeviceError> {
        Dispatch::with_params(device, key, Params::of(params), bindings, label)
    }

    /// The same with the bytes of the params.
    pub(crate) fn with_params(
        device: &mut dyn Device,
        key: PipelineKey,
        params: Params,
        bindings: Vec<Slice>,
        label: &'static str,
    ) -> Result<Dispatch, DeviceError> {
        let pipeline = device.pipeline(&key)?;
        let launch = launch(device, pipeline, &key, &params)?;
        Ok(Dispatch {
            kernel: key.kernel,
            pipeline,
            constants: key.constants,
            bindings,
            params,
            launch,
            patch: Patch::default(),
            label,
        })
    }

    /// The same with a patch.
    pub fn patched(self, patch: Patch) -> Dispatch {
        Dispatch { patch, ..self }
    }

    /// The bytes of each binding that the kernel may touch at `position`.
    pub(crate) fn extents(&self, position: u32) -> Vec<Range<usize>> {
        let row = self.kernel.row();
        let params = self.patch.apply(&self.params, position);
        let required = (row.required)(&row.args(params.as_bytes(), &self.constants));
        let ranges = self.bindings.iter().zip(required);
        ranges
            .map(|(slice, bytes)| slice.offset..slice.offset.saturating_add(bytes))
            .collect()
    }
}

/// The geometry for the device's chip; where the pipeline allows fewer threads than the chip does, the
/// geometry for a chip that allows no more than the pipeline.
fn launch(
    device: &mut dyn Device,
    pipeline: PipelineId,
    key: &PipelineKey,
    params: &Params,
) -> Result<Launch, DeviceError> {
    let row = key.kernel.row();
    let args = row.args(params.as_bytes(), &key.constants);
    let launch = (row.launch)(&args, device.chip());
    // The limit is known only when the pipeline has been made, so only large launches wait for it.
    if launch.n_threads() <= MODEST_THREADS {
        return Ok(launch);
    }
    let limit = device.thread_limit(pipeline)?;
    if launch.n_threads() <= limit.into() {
        return Ok(launch);
    }
    let chip = ChipConfig {
        max_threads: limit,
        ..device.chip().clone()
    };
    Ok((row.launch)(&args, &chip))
}

/// As many threads every pipeline takes, however many registers it needs; a device refuses a launch
/// that it cannot do.
const MODEST_THREADS: u64 = 256;

/// A list of dispatches that was checked: no dispatch can read or write out of bounds at any position
/// up to [`Plan::max_position`].
#[derive(Debug)]
pub struct Plan {
    dispatches: Vec<Dispatch>,
    barriers: Vec<bool>,
    flops: Vec<u64>,
    max_position: u32,
}

impl Plan {
    /// Checks every dispatch for positions `0 ..= max_position`.
    pub fn check(dispatches: Vec<Dispatch>, max_position: u32) -> Result<Plan, PlanError> {
        for (index, dispatch) in dispatches.iter().enumerate() {
            check::shape(index, dispatch)?;
            check::bindings(index, dispatch, max_position)?;
        }
        Ok(Plan {
            barriers: hazard::barriers(&dispatches, max_position),
            flops: dispatches
                .iter()
                .map(|dispatch| dispatch.work(max_position).flops)
                .collect(),
            dispatches,
            max_position,
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

    /// Operations of each dispatch at the largest position.
    pub fn flops(&self) -> &[u64] {
        &self.flops
    }

    /// The largest position that a run may be patched to.
    pub fn max_position(&self) -> u32 {
        self.max_position
    }

    /// Refuses a run of `n` positions from `first` that goes beyond what was checked.
    pub fn admit(&self, first: u32, n: u32) -> Result<(), DeviceError> {
        let last = u64::from(first) + u64::from(n.max(1)) - 1;
        if last > u64::from(self.max_position) {
            return Err(DeviceError::Position {
                position: last,
                max: self.max_position,
            });
        }
        Ok(())
    }
}
