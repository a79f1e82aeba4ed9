//! Plans: dispatches that were checked once and are then replayed for every token.

use std::ops::Range;

use akunu_types::SharedStruct;

use crate::constant::Constants;
use crate::device::{Buffer, Device, DeviceError};
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
/// decoding) into the length field. Offsets come from `offset_of!`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    position: Option<u8>,
    length: Option<(u8, u32)>,
}

impl Patch {
    /// Patches a position (`pos`, `pos_offset`).
    pub const fn position(offset: usize) -> Patch {
        Patch {
            position: Some(offset as u8),
            length: None,
        }
    }

    /// Patches a length (`kv_seq_len`) to the position plus `n_rows`.
    pub const fn length(offset: usize, n_rows: u32) -> Patch {
        Patch {
            position: None,
            length: Some((offset as u8, n_rows)),
        }
    }

    /// Patches a position and a length.
    pub const fn position_and_length(position: usize, length: usize, n_rows: u32) -> Patch {
        Patch {
            position: Some(position as u8),
            length: Some((length as u8, n_rows)),
        }
    }

    /// The params patched to `position`.
    pub fn apply(&self, params: &Params, position: u32) -> Params {
        let mut patched = *params;
        let mut put = |offset: u8, value: u32| {
            let at = usize::from(offset);
            patched.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        if let Some(offset) = self.position {
            put(offset, position);
        }
        if let Some((offset, n_rows)) = self.length {
            put(offset, position + n_rows);
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
        let pipeline = device.pipeline(&key)?;
        let params = Params::of(params);
        let row = key.kernel.row();
        let launch = (row.launch)(&row.args(params.as_bytes(), &key.constants), device.chip());
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
    fn extents(&self, position: u32) -> Vec<Range<usize>> {
        let row = self.kernel.row();
        let params = self.patch.apply(&self.params, position);
        let required = (row.required)(&row.args(params.as_bytes(), &self.constants));
        let ranges = self.bindings.iter().zip(required);
        ranges
            .map(|(slice, bytes)| slice.offset..slice.offset.saturating_add(bytes))
            .collect()
    }
}

/// Why a plan was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The number of bindings is not the kernel's.
    #[error("dispatch {index} ({kernel}): {found} bindings given, {wanted} wanted")]
    BindingCount {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// Bindings given.
        found: usize,
        /// Bindings that the kernel has.
        wanted: usize,
    },
    /// The params are of another struct.
    #[error("dispatch {index} ({kernel}): {found} bytes of params given, {wanted} wanted")]
    ParamsSize {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// Bytes given.
        found: usize,
        /// Bytes of the kernel's params struct.
        wanted: usize,
    },
    /// A patch outside of the params.
    #[error("dispatch {index} ({kernel}): the patch ends at byte {end} of {size} bytes of params")]
    PatchRange {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// End of the patch.
        end: usize,
        /// Size of the params.
        size: usize,
    },
    /// A constant that the kernel does not look at.
    #[error("dispatch {index} ({kernel}): the kernel has no constant {constant}")]
    UnknownConstant {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The constant's MSL name.
        constant: &'static str,
    },
    /// A buffer is too small for the largest position.
    #[error(
        "dispatch {index} ({kernel}): binding {binding} needs {needed} bytes at offset {offset} \
         at position {position}, the buffer has {len}"
    )]
    TooSmall {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The binding's name.
        binding: &'static str,
        /// Bytes needed from the offset on.
        needed: usize,
        /// The offset.
        offset: usize,
        /// The position for which it was checked.
        position: u32,
        /// Size of the buffer.
        len: usize,
    },
    /// An offset at which the element type may not lie.
    #[error("dispatch {index} ({kernel}): offset {offset} of binding {binding} is not aligned")]
    Misaligned {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The binding's name.
        binding: &'static str,
        /// The offset.
        offset: usize,
    },
    /// A kernel would write to mapped weights.
    #[error("dispatch {index} ({kernel}): binding {binding} is written, its buffer is read-only")]
    ReadOnly {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The binding's name.
        binding: &'static str,
    },
    /// A written binding overlaps another binding of the same dispatch.
    #[error("dispatch {index} ({kernel}): bindings {a} and {b} overlap and one is written")]
    Overlap {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// One binding's name.
        a: &'static str,
        /// The other's.
        b: &'static str,
    },
    /// A launch that no chip runs.
    #[error("dispatch {index} ({kernel}): cannot launch {launch:?}")]
    Launch {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The geometry.
        launch: Launch,
    },
}

/// A list of dispatches that was checked: no dispatch can read or write out of bounds at any position
/// up to [`Plan::max_position`].
#[derive(Debug)]
pub struct Plan {
    dispatches: Vec<Dispatch>,
    max_position: u32,
}

impl Plan {
    /// Checks every dispatch for positions `0 ..= max_position`.
    pub fn check(dispatches: Vec<Dispatch>, max_position: u32) -> Result<Plan, PlanError> {
        for (index, dispatch) in dispatches.iter().enumerate() {
            check_shape(index, dispatch)?;
            check_bindings(index, dispatch, max_position)?;
        }
        Ok(Plan {
            dispatches,
            max_position,
        })
    }

    /// The dispatches in order.
    pub fn dispatches(&self) -> &[Dispatch] {
        &self.dispatches
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

fn check_shape(index: usize, dispatch: &Dispatch) -> Result<(), PlanError> {
    let row = dispatch.kernel.row();
    let kernel = || row.name();
    let (found, wanted) = (dispatch.bindings.len(), row.bindings.len());
    if found != wanted {
        return Err(PlanError::BindingCount {
            index,
            kernel: kernel(),
            found,
            wanted,
        });
    }
    let (found, wanted) = (dispatch.params.as_bytes().len(), row.params.size);
    if found != wanted {
        return Err(PlanError::ParamsSize {
            index,
            kernel: kernel(),
            found,
            wanted,
        });
    }
    let end = dispatch.patch.end();
    if end > row.params.size {
        return Err(PlanError::PatchRange {
            index,
            kernel: kernel(),
            end,
            size: row.params.size,
        });
    }
    if let Some((extra, _)) = dispatch
        .constants
        .iter()
        .find(|(c, _)| !row.constants.contains(c))
    {
        let constant = extra.spec().name;
        return Err(PlanError::UnknownConstant {
            index,
            kernel: kernel(),
            constant,
        });
    }
    let launch = dispatch.launch;
    let threads: u64 = launch.threads.iter().map(|&n| u64::from(n)).product();
    if launch.grid.contains(&0) || !(1..=1024).contains(&threads) {
        return Err(PlanError::Launch {
            index,
            kernel: kernel(),
            launch,
        });
    }
    Ok(())
}

fn check_bindings(index: usize, dispatch: &Dispatch, max_position: u32) -> Result<(), PlanError> {
    let row = dispatch.kernel.row();
    let extents = dispatch.extents(max_position);
    for (at, (binding, slice)) in row.bindings.iter().zip(&dispatch.bindings).enumerate() {
        let (kernel, name) = (|| row.name(), binding.name);
        let offset = slice.offset;
        if extents[at].end > slice.buffer.len {
            return Err(PlanError::TooSmall {
                index,
                kernel: kernel(),
                binding: name,
                needed: extents[at].len(),
                offset,
                position: max_position,
                len: slice.buffer.len,
            });
        }
        if !offset.is_multiple_of(binding.element.alignment()) {
            return Err(PlanError::Misaligned {
                index,
                kernel: kernel(),
                binding: name,
                offset,
            });
        }
        if binding.access.writes() && !slice.buffer.writable {
            return Err(PlanError::ReadOnly {
                index,
                kernel: kernel(),
                binding: name,
            });
        }
        for (other, other_binding) in row.bindings.iter().enumerate().skip(at + 1) {
            let same = dispatch.bindings[other].buffer.id == slice.buffer.id;
            let written = binding.access.writes() || other_binding.access.writes();
            if same && written && overlap(&extents[at], &extents[other]) {
                let (a, b) = (name, other_binding.name);
                return Err(PlanError::Overlap {
                    index,
                    kernel: kernel(),
                    a,
                    b,
                });
            }
        }
    }
    Ok(())
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
