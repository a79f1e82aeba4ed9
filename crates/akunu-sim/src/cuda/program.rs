//! The kernels of one `.metal` file on the GPU, and the cases of the kernel table run there.

use super::CudaError;
use super::gpu::{Gpu, Module, Shape};
use super::guarded::{Guarded, Guards};
use crate::error::SimError;
use crate::executor::abi::Constant;
use crate::launch::Launch;
use crate::msl::{self, Unit};
use crate::ptx;
use crate::table::{check_outputs, constants, contents};
use akunu_kernels::ChipConfig;
use akunu_kernels::case::Case;
use akunu_kernels::flatten::flatten;
use akunu_kernels::table::KernelRow;
use std::path::Path;

/// One `.metal` file, loaded as PTX.
pub struct Program<'g> {
    gpu: &'g Gpu,
    module: Module<'g>,
    unit: Unit,
}

impl<'g> Program<'g> {
    /// Reads the interface of `file` under `kernels`, and loads its PTX from the folder `ptx`.
    ///
    /// # Errors
    /// When a file is missing, or the driver refuses the PTX.
    pub fn load(
        gpu: &'g Gpu,
        kernels: &Path,
        file: &str,
        ptx: &Path,
    ) -> Result<Program<'g>, CudaError> {
        let source = flatten(kernels, file).map_err(SimError::from)?;
        let unit = msl::read(&source.text).map_err(SimError::from)?;
        let path = ptx.join(ptx::file_name(file));
        let text = std::fs::read(&path).map_err(|source| SimError::Io { path, source })?;
        Ok(Program {
            gpu,
            module: Module::load(gpu, file, text)?,
            unit,
        })
    }

    /// Runs one case on the GPU and compares it with the twin; returns the largest NMSE.
    ///
    /// Bindings hold what they hold in the simulator; guards and the bindings that the kernel may
    /// only read must be unchanged afterwards.
    ///
    /// # Errors
    /// See [`CudaError`]. After a [`CudaError::Call`] the GPU may refuse all further work.
    pub fn run_case(&self, row: &KernelRow, case: &Case, guards: Guards) -> Result<f64, CudaError> {
        let before = contents(row, case)?;
        let upload = |bytes: &[u8]| Guarded::new(self.gpu, bytes, guards);
        let buffers: Vec<Guarded> = before.iter().map(|b| upload(b)).collect::<Result<_, _>>()?;
        let params = upload(case.params.as_bytes())?;
        let indices = row.bindings.iter().map(|binding| u32::from(binding.index));
        let mut pointers: Vec<(u32, u64)> =
            indices.zip(buffers.iter().map(Guarded::address)).collect();
        pointers.push((row.params_index.into(), params.address()));
        self.launch(row, case, pointers)?;
        let mut after = Vec::with_capacity(buffers.len());
        for ((binding, buffer), before) in row.bindings.iter().zip(&buffers).zip(&before) {
            let found = intact(row, binding.index, buffer)?;
            if !binding.access.writes() && found != *before {
                return Err(changed(row, binding.name));
            }
            after.push(found);
        }
        if intact(row, row.params_index, &params)? != case.params.as_bytes() {
            return Err(changed(row, "params"));
        }
        let after: Vec<&[u8]> = after.iter().map(Vec::as_slice).collect();
        Ok(check_outputs(row, case, &after)?)
    }

    /// Sets the function constants, and runs the row's kernel with these (index, address) pairs.
    fn launch(
        &self,
        row: &KernelRow,
        case: &Case,
        pointers: Vec<(u32, u64)>,
    ) -> Result<(), CudaError> {
        let name = row.name();
        let args = row.args(case.params.as_bytes(), &case.constants);
        let shape = (row.launch)(&args, &ChipConfig::m1());
        let bad = |problem: String| SimError::BadLaunch {
            kernel: name.clone(),
            problem,
        };
        let kernel = self.unit.kernels.iter().find(|kernel| kernel.name == name);
        let kernel = kernel.ok_or_else(|| bad("its file does not have it".into()))?;
        let wanted: Vec<u32> = kernel.buffers().map(|(index, ..)| index).collect();
        let n_threadgroup = kernel.threadgroup_bindings().count();
        if !pointers.iter().all(|(index, _)| wanted.contains(index))
            || wanted.len() != pointers.len()
            || n_threadgroup != usize::from(shape.threadgroup_bytes > 0)
        {
            return Err(bad("the source binds other things than the table".into()).into());
        }
        let values = Launch {
            constants: &constants(&case.constants),
            ..Launch::default()
        };
        let table = values.constants(&name, &self.unit.constants)?;
        self.module
            .set_global(c"akunu_constants", &constant_bytes(&table))?;
        let arguments = pack(pointers, n_threadgroup);
        let shape = Shape {
            grid: shape.grid,
            threads: shape.threads,
            shared_bytes: shape.threadgroup_bytes,
            arguments: &arguments,
        };
        // SAFETY: the block has what the signature asks for, and the caller holds the buffers.
        unsafe { self.module.run(&name, &shape) }
    }
}

/// The parameter block of an entry point: the addresses in the order of their indices, then for
/// each threadgroup binding its offset, which is 0 because there is at most one.
fn pack(mut pointers: Vec<(u32, u64)>, n_threadgroup: usize) -> Vec<u8> {
    pointers.sort_by_key(|(index, _)| *index);
    let addresses = pointers
        .iter()
        .flat_map(|(_, address)| address.to_ne_bytes());
    let offsets = std::iter::repeat_n(0u32.to_ne_bytes(), n_threadgroup).flatten();
    addresses.chain(offsets).collect()
}

/// The array `akunu_constants`: (bits, defined) pairs of 64 bits each.
fn constant_bytes(table: &[Constant]) -> Vec<u8> {
    let words = table
        .iter()
        .flat_map(|constant| [constant.bits, constant.defined]);
    words.flat_map(u64::to_ne_bytes).collect()
}

/// What a buffer holds after the launch, if nothing beside it was changed.
fn intact(row: &KernelRow, index: u8, buffer: &Guarded) -> Result<Vec<u8>, CudaError> {
    let (bytes, broken) = buffer.download()?;
    match broken {
        None => Ok(bytes),
        Some(distance) => Err(CudaError::Sim(SimError::Overrun {
            kernel: row.name(),
            index: index.into(),
            distance,
        })),
    }
}

fn changed(row: &KernelRow, binding: &'static str) -> CudaError {
    CudaError::Changed {
        kernel: row.name(),
        binding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::ConstantValue;

    /// The entry point reads pointers by rising index, whatever the order of the table's bindings.
    #[test]
    fn arguments_are_packed_in_the_order_of_indices() {
        let block = pack(vec![(2, 30), (0, 10), (1, 20)], 1);
        let mut expected: Vec<u8> = [10u64, 20, 30]
            .iter()
            .flat_map(|a| a.to_ne_bytes())
            .collect();
        expected.extend([0; 4]);
        assert_eq!(block, expected);
    }

    /// A constant's slot is its place among the declarations, not its index; what is not set stays
    /// undefined.
    #[test]
    fn constants_lie_in_the_order_of_declarations() {
        let unit = msl::read(
            "#line 1 \"a.metal\"\n\
             constant uint FC_B [[function_constant(7)]];\n\
             constant float FC_A [[function_constant(3)]];\n\
             constant bool FC_C [[function_constant(1)]];",
        )
        .expect("it is MSL");
        let launch = Launch {
            constants: &[(3, ConstantValue::F32(1.5)), (1, ConstantValue::Bool(true))],
            ..Launch::default()
        };
        let table = launch
            .constants("k", &unit.constants)
            .expect("they are declared");
        let words = [0, 0, u64::from(1.5f32.to_bits()), 1, 1, 1];
        let expected: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(constant_bytes(&table), expected);
    }
}
