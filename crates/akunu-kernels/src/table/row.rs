//! What the table says of a kernel.

use akunu_program::AlignedBytes;
use akunu_types::{DType, StructLayout};

use super::args::Args;
use super::binding::{Access, Binding};
use super::buffers::BufferSet;
use super::family::Family;
use super::launch::Launch;
#[cfg(feature = "testing")]
use crate::case::Case;
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work};
use crate::twin::{ShortBinding, Twin};

/// One kernel: all that devices, plans, tests and documentation need to know about it.
#[derive(Clone, Copy)]
pub struct KernelRow {
    /// The name before and after the weight format: `("gemv_", "_silu")`. A kernel without a format
    /// has its whole name in the first.
    pub name: (&'static str, &'static str),
    /// The weight format, for kernels of a grid.
    pub dtype: Option<DType>,
    /// The folder.
    pub family: Family,
    /// The `.metal` file in that folder, without the ending.
    pub source: &'static str,
    /// The buffers, in the order of their indices.
    pub bindings: &'static [Binding],
    /// Index of the params binding.
    pub params_index: u8,
    /// Layout of the params.
    pub params: StructLayout,
    /// The function constants that the kernel uses.
    pub constants: &'static [Constant],
    /// The launch geometry, from the params and the chip.
    pub launch: fn(&Args, &ChipConfig) -> Launch,
    /// Bytes that each binding must hold, in the order of `bindings`.
    pub required: fn(&Args) -> Vec<usize>,
    /// What a launch moves and computes, given the work of a launch that touches each binding once.
    pub work: fn(&Args, Work) -> Work,
    /// The specification, as a scalar function.
    pub twin: fn(&mut Twin),
    /// The test cases, for a weight format.
    #[cfg(feature = "testing")]
    pub cases: fn(Option<DType>) -> Vec<Case>,
}

impl KernelRow {
    /// A row with the buffers and params that are declared, which has no format and no constants, and whose launches touch each
    /// buffer once. Its name, family, source, launch, twin and cases have no defaults that could serve: every row has its own.
    pub const fn of<B: BufferSet>() -> KernelRow {
        KernelRow {
            name: ("", ""),
            dtype: None,
            family: Family::Common,
            source: "",
            bindings: B::BINDINGS,
            params_index: B::PARAMS_INDEX,
            params: B::PARAMS,
            constants: &[],
            launch: |_, _| Launch::new([0; 3], [0; 3]),
            required: B::required,
            work: |_, once| once,
            twin: |_| {},
            #[cfg(feature = "testing")]
            cases: |_| Vec::new(),
        }
    }

    /// The kernel's name in MSL.
    pub fn name(&self) -> String {
        let (before, after) = self.name;
        match self.dtype {
            Some(dtype) => format!("{before}{dtype}{after}"),
            None => before.to_string(),
        }
    }

    /// The `.metal` file below `kernels/`.
    pub fn source_path(&self) -> String {
        format!("{}/{}.metal", self.family.folder(), self.source)
    }

    /// The arguments of a launch with these params and constants.
    pub fn args<'a>(&self, params: &'a [u8], constants: &'a Constants) -> Args<'a> {
        Args {
            dtype: self.dtype,
            params,
            constants,
        }
    }

    /// Place of the binding with this index.
    pub fn binding_at(&self, index: u8) -> Option<usize> {
        self.bindings
            .iter()
            .position(|binding| binding.index == index)
    }

    /// What a launch with these params and constants does.
    pub fn work(&self, args: &Args) -> Work {
        let bindings = self.bindings.iter().zip((self.required)(args));
        let traffic = bindings.map(|(binding, bytes)| match binding.access {
            Access::Read => Traffic::read(bytes),
            Access::Write => Traffic::written(bytes),
            Access::ReadWrite => Traffic::both(bytes),
        });
        let once = Work {
            traffic: traffic.collect(),
            flops: 0,
        };
        (self.work)(args, once)
    }

    /// Runs the twin. `whole` gives the bytes bound at each place of `bindings`, at least as many as required; the result is the
    /// place of each written binding, and its bytes. Nothing runs if a binding is too short.
    pub fn run_twin(
        &self,
        args: Args,
        whole: &[&[u8]],
    ) -> Result<Vec<(usize, AlignedBytes)>, ShortBinding> {
        let mut twin = Twin::new(args, self.bindings, &(self.required)(&args), whole)?;
        (self.twin)(&mut twin);
        Ok(twin.written())
    }
}
