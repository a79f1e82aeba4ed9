//! Why a plan was refused.

use akunu_program::DeviceError;

use crate::table::Launch;

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
    /// A number of rows outside of the params.
    #[error(
        "dispatch {index} ({kernel}): a number of rows ends at byte {end} of {size} bytes of params"
    )]
    RowField {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// End of the field.
        end: usize,
        /// Size of the params.
        size: usize,
    },
    /// A constant that the kernel does not have.
    #[error("dispatch {index} ({kernel}): the kernel has no constant {constant}")]
    UnknownConstant {
        /// Place in the plan.
        index: usize,
        /// Kernel name.
        kernel: String,
        /// The constant's MSL name.
        constant: &'static str,
    },
    /// A buffer is too small for a full step.
    #[error(
        "dispatch {index} ({kernel}): binding {binding} needs {needed} bytes at offset {offset}, \
         the buffer has {len}"
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

impl From<PlanError> for DeviceError {
    fn from(error: PlanError) -> DeviceError {
        DeviceError::Plan(Box::new(error))
    }
}
