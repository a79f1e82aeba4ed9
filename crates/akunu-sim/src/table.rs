//! The kernel table against the simulator: the same bindings, and the same results as the twins.

use akunu_kernels::case::{Case, Mismatch, compare};
use akunu_kernels::table::{Access, Binding as TableBinding, Element, KernelRow};
use akunu_kernels::{ChipConfig, ConstantType, ConstantValue, Constants};

use crate::error::SimError;
use crate::executor::buffer::SimBuffer;
use crate::executor::count::Counts;
use crate::executor::schedule::Schedule;
use crate::launch::{Binding, Launch};
use crate::msl::{self, AddressSpace};
use crate::simulator::{KernelHandle, Simulator};

/// Why a kernel is not what its row says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The simulator refused or stopped it.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// It gives another result than the twin.
    #[error("`{kernel}`, {case}: {mismatch}")]
    Mismatch {
        /// The kernel.
        kernel: String,
        /// The case's label.
        case: String,
        /// Where and how far.
        mismatch: Mismatch,
    },
    /// The signature is not the row's.
    #[error("`{kernel}`: {problem}")]
    Signature {
        /// The kernel.
        kernel: String,
        /// What differs.
        problem: String,
    },
    /// A case binds fewer bytes than the row requires.
    #[error("`{kernel}`, {case}: binding {binding} has {found} bytes, {required} are required")]
    CaseTooSmall {
        /// The kernel.
        kernel: String,
        /// The case's label.
        case: String,
        /// The binding's name.
        binding: &'static str,
        /// Bytes bound.
        found: usize,
        /// Bytes required.
        required: usize,
    },
    /// No memory for the buffers.
    #[error("no memory for a buffer: {0}")]
    Memory(#[from] std::io::Error),
}

/// Runs one case in the simulator and compares it with the twin; returns the largest NMSE.
///
/// Each binding gets exactly the bytes that the row requires, so that one more is out of bounds, and
/// what a kernel promises to overwrite is filled with NaN before.
///
/// # Errors
/// See [`TableError`].
pub fn run_case(
    simulator: &Simulator,
    row: &KernelRow,
    case: &Case,
    schedule: Schedule,
) -> Result<f64, TableError> {
    let buffers = with_launch(simulator, row, case, |kernel, launch| {
        kernel.launch(&Launch { schedule, ..launch })
    })?;
    let found: Vec<&[u8]> = buffers.iter().map(SimBuffer::bytes).collect();
    check_outputs(row, case, &found)
}

/// Runs one case and counts it; see [`KernelHandle::count`].
///
/// # Errors
/// See [`TableError`].
pub(crate) fn count(
    simulator: &Simulator,
    row: &KernelRow,
    case: &Case,
) -> Result<Counts, TableError> {
    let mut counts = Counts::default();
    with_launch(simulator, row, case, |kernel, launch| {
        counts = kernel.count(&launch)?;
        Ok(())
    })?;
    Ok(counts)
}

/// Launches one case by `run`, and returns the bindings as they are afterwards.
fn with_launch(
    simulator: &Simulator,
    row: &KernelRow,
    case: &Case,
    run: impl FnOnce(&KernelHandle, Launch) -> Result<(), SimError>,
) -> Result<Vec<SimBuffer>, TableError> {
    let args = row.args(case.params.as_bytes(), &case.constants);
    let launch = (row.launch)(&args, &ChipConfig::m1());
    let mut buffers = Vec::with_capacity(row.bindings.len());
    for bytes in contents(row, case)? {
        buffers.push(SimBuffer::from_bytes(&bytes)?);
    }
    let params = SimBuffer::from_bytes(case.params.as_bytes())?;
    let bound = row.bindings.iter().zip(&buffers);
    let mut bindings: Vec<Binding> = bound
        .map(|(binding, buffer)| Binding::whole(binding.index.into(), buffer))
        .collect();
    bindings.push(Binding::whole(row.params_index.into(), &params));
    let launch = Launch {
        grid: launch.grid,
        threads: launch.threads,
        bindings: &bindings,
        threadgroup_bytes: &threadgroup_bytes(launch.threadgroup_bytes),
        constants: &constants(&case.constants),
        ..Launch::default()
    };
    run(&simulator.kernel(&row.name())?, launch)?;
    Ok(buffers)
}

/// What each binding holds before the launch: exactly the bytes that the row requires, and NaN where
/// the kernel promises to overwrite.
pub(crate) fn contents(row: &KernelRow, case: &Case) -> Result<Vec<Vec<u8>>, TableError> {
    let args = row.args(case.params.as_bytes(), &case.constants);
    let required = (row.required)(&args);
    let mut all = Vec::with_capacity(row.bindings.len());
    for ((binding, data), &len) in row.bindings.iter().zip(&case.data).zip(&required) {
        let bytes = data.as_ref();
        let held = bytes.get(..len).ok_or_else(|| TableError::CaseTooSmall {
            kernel: row.name(),
            case: case.label.clone(),
            binding: binding.name,
            found: bytes.len(),
            required: len,
        })?;
        all.push(match binding.access {
            Access::Write => vec![0xff; len],
            Access::Read | Access::ReadWrite => held.to_vec(),
        });
    }
    Ok(all)
}

/// Compares what a launch left in the bindings with the twin; returns the largest NMSE.
pub(crate) fn check_outputs(
    row: &KernelRow,
    case: &Case,
    found: &[&[u8]],
) -> Result<f64, TableError> {
    let mut worst = 0f64;
    for (at, expected) in case.expected(row) {
        let mismatch = |mismatch| TableError::Mismatch {
            kernel: row.name(),
            case: case.label.clone(),
            mismatch,
        };
        let nmse = compare(row, case, at, expected.as_ref(), found[at]);
        worst = worst.max(nmse.map_err(mismatch)?);
    }
    Ok(worst)
}

/// The dynamic threadgroup memory of a launch, as the simulator wants it.
pub(crate) fn threadgroup_bytes(bytes: u32) -> Vec<(u32, usize)> {
    if bytes == 0 {
        Vec::new()
    } else {
        vec![(0, bytes as usize)]
    }
}

/// The constants of a specialisation, as the simulator wants them.
pub(crate) fn constants(constants: &Constants) -> Vec<(u32, ConstantValue)> {
    let constants = constants.iter();
    constants
        .map(|(constant, value)| (constant.spec().index.into(), value))
        .collect()
}

/// Checks that the kernel's source declares the bindings, the params and the constants of its row.
///
/// # Errors
/// When the kernel is missing or something differs.
pub fn check_signature(simulator: &Simulator, row: &KernelRow) -> Result<(), TableError> {
    let name = row.name();
    let fail = |problem| TableError::Signature {
        kernel: name.clone(),
        problem,
    };
    let kernel = simulator.kernels().find(|kernel| kernel.name == name);
    let kernel = kernel.ok_or_else(|| fail("no .metal file has it".into()))?;
    if kernel.file != row.source_path() {
        return Err(fail(format!(
            "it is in {}, not in {}",
            kernel.file,
            row.source_path()
        )));
    }
    let wanted = row.bindings.len() + 1;
    let found = kernel.buffers().count();
    if found != wanted {
        return Err(fail(format!(
            "{found} buffers in the source, {wanted} in the table"
        )));
    }
    for (index, element, space, access) in kernel.buffers() {
        let place = row.binding_at(index as u8);
        let fits = match place {
            Some(at) => {
                let binding = &row.bindings[at];
                kernel.buffer_name(index) == Some(binding.name)
                    && buffer_fits(binding, element, space, access)
            }
            None => {
                index == u32::from(row.params_index)
                    && element == row.params.name
                    && space == AddressSpace::Constant
            }
        };
        if !fits {
            let table = place.map_or("the params or nothing".into(), |at| {
                format!("{:?}", row.bindings[at])
            });
            let name = kernel.buffer_name(index).unwrap_or_default();
            let problem =
                format!("buffer({index}) is {space:?} {access:?} {element} {name}: {table}");
            return Err(fail(problem));
        }
    }
    let declared = simulator.constants(&name);
    for spec in row.constants.iter().map(|constant| constant.spec()) {
        let ty = match spec.ty {
            ConstantType::Bool => "bool",
            ConstantType::U32 => "uint",
            ConstantType::F32 => "float",
        };
        let same = |c: &&msl::FunctionConstant| {
            c.name == spec.name && c.index == u32::from(spec.index) && c.ty == ty
        };
        if !declared.iter().any(|constant| same(&constant)) {
            let (name, index) = (spec.name, spec.index);
            return Err(fail(format!(
                "no `constant {ty} {name} [[function_constant({index})]]`"
            )));
        }
    }
    Ok(())
}

fn buffer_fits(
    binding: &TableBinding,
    element: &str,
    space: AddressSpace,
    access: msl::BufferAccess,
) -> bool {
    let scalar = element.trim_end_matches(['2', '4']);
    let type_fits = match binding.element {
        Element::F32 => scalar == "float",
        Element::F16 => scalar == "half",
        Element::U32 => scalar == "uint" || element == "uint32_t",
        Element::U16 => scalar == "ushort" || element == "uint16_t",
        Element::Weight => true,
        Element::Row => element == "Row",
        Element::Rule => element == "SamplingRule",
    };
    let writes = access == msl::BufferAccess::ReadWrite;
    type_fits && space == AddressSpace::Device && writes == binding.access.writes()
}
