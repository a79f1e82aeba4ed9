//! From a key to a pipeline: the driver compiles the PTX of one kernel for the GPU that is there.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use akunu_kernels::PipelineKey;
use akunu_kernels::gpu::{Compiled, Compiler};
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUjit_option as JitOption};

use crate::context::Context;
use crate::driver::{Fault, call};
use crate::sources::PtxSources;
use crate::specialise::{Target, specialise};

/// Bytes of shared memory that every GPU gives a kernel that does not ask for more.
const SHARED_BYTES: u32 = 48 * 1024;

/// Makes pipelines, on several threads at once.
pub struct CudaCompiler {
    context: Arc<Context>,
    sources: PtxSources,
    target: Target,
}

/// A kernel on the GPU.
pub struct CudaPipeline {
    pub(crate) function: sys::CUfunction,
    /// The indices of its buffers, rising: the order of its arguments.
    pub(crate) buffers: Vec<u8>,
    /// Whether it takes an offset into dynamic shared memory.
    pub(crate) has_offset: bool,
    module: sys::CUmodule,
    context: Arc<Context>,
}

// SAFETY: a module and its functions belong to no thread.
unsafe impl Send for CudaPipeline {}

impl Drop for CudaPipeline {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was loaded, and the device drops it when no work uses it any more.
            unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

impl CudaCompiler {
    pub(crate) fn new(context: Arc<Context>, sources: PtxSources, target: Target) -> CudaCompiler {
        CudaCompiler {
            context,
            sources,
            target,
        }
    }

    /// Loads a text; `Err` with what the driver's compiler said.
    fn load(&self, text: String) -> Result<sys::CUmodule, String> {
        let text = CString::new(text).map_err(|error| error.to_string())?;
        let mut log = vec![0u8; 8192];
        let mut options = [
            JitOption::CU_JIT_ERROR_LOG_BUFFER,
            JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(log.len()),
        ];
        let mut module = ptr::null_mut();
        // SAFETY: the text ends with zero; two options with two values, the log's length true.
        let loaded = unsafe {
            call!(cuModuleLoadDataEx(
                &raw mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            ))
        };
        loaded.map_err(|fault| {
            let words = String::from_utf8_lossy(&log);
            format!("{fault}: {}", words.trim_end_matches('\0').trim())
        })?;
        Ok(module)
    }

    /// Lets a function ask for all shared memory that the GPU gives; how much that is.
    fn raise_shared_bytes(&self, function: sys::CUfunction) -> Result<u32, Fault> {
        let most = self.context.shared_bytes()?;
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let (_, static_bytes) = CudaCompiler::limits(function)?;
        let dynamic = most.saturating_sub(static_bytes);
        // SAFETY: the function's module is loaded.
        unsafe { call!(cuFuncSetAttribute(function, which, dynamic as i32)) }?;
        Ok(most)
    }

    /// Most threads, and bytes of shared memory, of a function.
    fn limits(function: sys::CUfunction) -> Result<(u32, u32), Fault> {
        let number = |which| {
            let mut value = 0;
            // SAFETY: the function's module is loaded, and the driver writes the value.
            unsafe { call!(cuFuncGetAttribute(&raw mut value, which, function)) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        Ok((
            number(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            number(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        ))
    }
}

impl Compiler for CudaCompiler {
    type Pipeline = CudaPipeline;

    fn compile(&self, key: &PipelineKey) -> Result<Compiled<CudaPipeline>, String> {
        let row = key.kernel.row();
        let name = row.name();
        let text = self.sources.text(&row.source_path())?;
        let made = specialise(&text, &name, &key.constants, self.target);
        let made = made.map_err(|error| error.to_string())?;
        let mut buffers: Vec<u8> = row.bindings.iter().map(|binding| binding.index).collect();
        buffers.sort_unstable();
        if made.n_pointers != buffers.len() || made.n_offsets > 1 {
            return Err("its PTX has other arguments than the table's row".into());
        }
        self.context.enter().map_err(|fault| fault.to_string())?;
        let mut pipeline = CudaPipeline {
            function: ptr::null_mut(),
            buffers,
            has_offset: made.n_offsets == 1,
            module: self.load(made.text)?,
            context: Arc::clone(&self.context),
        };
        let entry = CString::new(name).map_err(|error| error.to_string())?;
        let function = &raw mut pipeline.function;
        // SAFETY: the module is loaded, the name ends with zero.
        let found = unsafe {
            call!(cuModuleGetFunction(
                function,
                pipeline.module,
                entry.as_ptr()
            ))
        };
        let limits = found.and_then(|()| CudaCompiler::limits(pipeline.function));
        let (max_threads, static_bytes) = limits.map_err(|fault| fault.to_string())?;
        let shared_bytes = if pipeline.has_offset {
            let raised = self.raise_shared_bytes(pipeline.function);
            raised.map_err(|fault| fault.to_string())?
        } else {
            SHARED_BYTES
        };
        Ok(Compiled {
            pipeline,
            max_threads,
            threadgroup_room: shared_bytes.saturating_sub(static_bytes),
        })
    }
}
