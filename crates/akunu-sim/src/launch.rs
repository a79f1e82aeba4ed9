//! A launch: what a kernel is given, checked against what its signature asks for.

use crate::error::SimError;
use crate::executor::abi::{Constant, MAX_BINDINGS};
use crate::executor::buffer::SimBuffer;
use crate::executor::schedule::Schedule;
use crate::msl::{BufferAccess, FunctionConstant, Kernel};
use akunu_kernels::{ConstantType, ConstantValue};
use std::ffi::c_void;

/// Most threads of a threadgroup on Apple GPUs.
const MAX_THREADS: u32 = 1024;

/// One launch of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Launch<'a> {
    /// Threadgroups in each dimension.
    pub grid: [u32; 3],
    /// Threads of a threadgroup in each dimension.
    pub threads: [u32; 3],
    /// The buffers, one for each `[[buffer(n)]]` of the kernel.
    pub bindings: &'a [Binding<'a>],
    /// (index, bytes) of each `[[threadgroup(n)]]`.
    pub threadgroup_bytes: &'a [(u32, usize)],
    /// (index, value) of the function constants.
    pub constants: &'a [(u32, ConstantValue)],
    /// The order in which things run.
    pub schedule: Schedule,
    /// Host threads to run on; `None` is as many as pay off. A kernel with device atomics gets one.
    pub host_threads: Option<usize>,
}

/// A buffer, or a part of one, bound to an index.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The `n` of `[[buffer(n)]]`.
    pub index: u32,
    /// The buffer. The same one may be bound more than once.
    pub buffer: &'a SimBuffer,
    /// Bytes from its beginning.
    pub offset: usize,
}

impl<'a> Binding<'a> {
    /// The whole of `buffer` at `index`.
    pub fn whole(index: u32, buffer: &'a SimBuffer) -> Self {
        Binding {
            index,
            buffer,
            offset: 0,
        }
    }
}

/// The name in MSL of a value's type.
fn type_name(value: ConstantValue) -> &'static str {
    match value.ty() {
        ConstantType::Bool => "bool",
        ConstantType::U32 => "uint",
        ConstantType::F32 => "float",
    }
}

/// A value as C++ source, exactly.
pub(crate) fn source(value: ConstantValue) -> String {
    match value {
        ConstantValue::Bool(value) => value.to_string(),
        ConstantValue::U32(value) => format!("{value}u"),
        ConstantValue::F32(value) => format!("__builtin_bit_cast(float, {}u)", value.to_bits()),
    }
}

impl Launch<'_> {
    /// Checks everything against the signature.
    pub(crate) fn check(&self, kernel: &Kernel) -> Result<(), SimError> {
        let bad = |problem: String| SimError::BadLaunch {
            kernel: kernel.name.clone(),
            problem,
        };
        let threads = checked_product(self.threads).filter(|&count| count <= MAX_THREADS);
        let most = kernel.max_threads.unwrap_or(MAX_THREADS).min(MAX_THREADS);
        if !threads.is_some_and(|count| (1..=most).contains(&count)) {
            return Err(bad(format!(
                "{:?} threads: 1 to {most} are possible",
                self.threads
            )));
        }
        if checked_product(self.grid).is_none_or(|count| count == 0) {
            return Err(bad(format!("a grid of {:?} threadgroups", self.grid)));
        }
        for (index, ..) in kernel.buffers() {
            match self
                .bindings
                .iter()
                .filter(|binding| binding.index == index)
                .count()
            {
                1 => {}
                0 => return Err(bad(format!("buffer({index}) is not bound"))),
                _ => return Err(bad(format!("buffer({index}) is bound twice"))),
            }
        }
        for binding in self.bindings {
            let index = binding.index;
            if binding.offset > binding.buffer.len() || index as usize >= MAX_BINDINGS {
                return Err(bad(format!(
                    "buffer({index}) begins behind its buffer's end"
                )));
            }
            if !kernel.buffers().any(|(known, ..)| known == index) {
                return Err(bad(format!("there is no buffer({index})")));
            }
        }
        for (index, _) in kernel.threadgroup_bindings() {
            if !self
                .threadgroup_bytes
                .iter()
                .any(|(given, _)| *given == index)
            {
                return Err(bad(format!("threadgroup({index}) has no size")));
            }
        }
        match self
            .threadgroup_bytes
            .iter()
            .find(|(index, _)| *index as usize >= MAX_BINDINGS)
        {
            Some((index, _)) => Err(bad(format!("there is no threadgroup({index})"))),
            None => Ok(()),
        }
    }

    /// The constants in the order of the file's declarations.
    pub(crate) fn constants(
        &self,
        kernel: &str,
        declared: &[FunctionConstant],
    ) -> Result<Vec<Constant>, SimError> {
        // One at least: the pointer must be valid.
        let mut table = vec![Constant::default(); declared.len().max(1)];
        for (index, value) in self.constants {
            let bad = |problem| SimError::BadLaunch {
                kernel: kernel.to_owned(),
                problem,
            };
            let slot = declared
                .iter()
                .position(|constant| constant.index == *index)
                .ok_or_else(|| bad(format!("its file has no function_constant({index})")))?;
            let constant = &declared[slot];
            if constant.ty != type_name(*value) {
                return Err(bad(format!(
                    "function_constant({index}) `{}` is a {}, not a {}",
                    constant.name,
                    constant.ty,
                    type_name(*value)
                )));
            }
            table[slot] = Constant {
                bits: value.bits().into(),
                defined: 1,
            };
        }
        Ok(table)
    }

    /// The address of each binding.
    pub(crate) fn addresses(&self) -> [*mut c_void; MAX_BINDINGS] {
        let mut addresses = [std::ptr::null_mut(); MAX_BINDINGS];
        for binding in self.bindings {
            // `check` has seen that the offset is inside the buffer.
            let address = binding.buffer.address().wrapping_add(binding.offset);
            addresses[binding.index as usize] = address.cast();
        }
        addresses
    }

    /// Whether the kernel may write this buffer through some binding.
    pub(crate) fn is_written(&self, kernel: &Kernel, buffer: &SimBuffer) -> bool {
        self.bindings
            .iter()
            .filter(|binding| std::ptr::eq(binding.buffer, buffer))
            .any(|binding| {
                kernel.buffers().any(|(index, _, _, access)| {
                    index == binding.index && access == BufferAccess::ReadWrite
                })
            })
    }

    /// The buffers that the kernel may write, from each address up to one.
    pub(crate) fn written(&self, kernel: &Kernel) -> Vec<(usize, usize)> {
        let buffers = self.bindings.iter().map(|binding| binding.buffer);
        let written = buffers.filter(|buffer| self.is_written(kernel, buffer));
        written.map(SimBuffer::addresses).collect()
    }

    /// How many host threads to use.
    pub(crate) fn host_threads(&self, kernel: &Kernel) -> usize {
        /// Below this many GPU threads another host thread costs more than it brings.
        const WORTH_A_THREAD: u32 = 1024;
        if kernel.uses_device_atomics() {
            return 1;
        }
        let threadgroups = checked_product(self.grid).unwrap_or(1);
        let work = threadgroups.saturating_mul(checked_product(self.threads).unwrap_or(1));
        let machine = std::thread::available_parallelism().map_or(1, usize::from);
        let useful = (work / WORTH_A_THREAD).min(threadgroups).max(1) as usize;
        self.host_threads.unwrap_or(machine).min(useful).max(1)
    }
}

fn checked_product(values: [u32; 3]) -> Option<u32> {
    values[0].checked_mul(values[1])?.checked_mul(values[2])
}
