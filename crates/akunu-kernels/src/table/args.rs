//! The arguments of a launch.

use akunu_types::DType;

use crate::constant::Constants;

/// The arguments of a launch: the weight format, the params and the constants.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The weight format of a grid kernel.
    pub dtype: Option<DType>,
    /// The bytes of the params struct.
    pub params: &'a [u8],
    /// The function constants that are set.
    pub constants: &'a Constants,
}

impl Args<'_> {
    /// The params as their struct. The plan check has compared the sizes.
    pub fn params<P: akunu_types::SharedStruct>(&self) -> P {
        bytemuck::pod_read_unaligned(&self.params[..size_of::<P>()])
    }

    /// The weight format of a grid kernel.
    pub fn format(&self) -> DType {
        match self.dtype {
            Some(dtype) => dtype,
            None => unreachable!("only kernels of a grid ask for their format"),
        }
    }
}
