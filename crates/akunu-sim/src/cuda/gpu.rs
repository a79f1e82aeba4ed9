//! A GPU, its memory and its loaded modules, behind safe calls.

use super::CudaError;
use super::driver::{Driver, Handle};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

/// The first NVIDIA GPU of this machine.
pub struct Gpu {
    driver: Driver,
    name: String,
    version: c_int,
}

impl Gpu {
    /// Loads the driver and takes the first GPU.
    ///
    /// # Errors
    /// When there is no driver, or no GPU that it can use.
    pub fn open() -> Result<Gpu, CudaError> {
        let driver = Driver::load()?;
        let (mut device, mut version) = (0, 0);
        let mut context: Handle = ptr::null_mut();
        let mut name = [0; 128];
        // SAFETY: every pointer is to a live variable of the type that the function writes, and the
        // name's length is given.
        unsafe {
            driver.check("cuInit", (driver.init)(0))?;
            driver.check("cuDeviceGet", (driver.device)(&raw mut device, 0))?;
            let named = (driver.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, device);
            driver.check("cuDeviceGetName", named)?;
            driver.check("cuDriverGetVersion", (driver.version)(&raw mut version))?;
            let retained = (driver.retain_context)(&raw mut context, device);
            driver.check("cuDevicePrimaryCtxRetain", retained)?;
            driver.check("cuCtxSetCurrent", (driver.use_context)(context))?;
        }
        // SAFETY: the last byte was left zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Ok(Gpu {
            name: name.to_string_lossy().into_owned(),
            driver,
            version,
        })
    }

    /// The GPU's name and the CUDA version of the driver: `NVIDIA H200, CUDA 13.0`.
    pub fn describe(&self) -> String {
        let (major, minor) = (self.version / 1000, self.version % 1000 / 10);
        format!("{}, CUDA {major}.{minor}", self.name)
    }

    /// Memory that holds a copy of `bytes`.
    pub(super) fn upload(&self, bytes: &[u8]) -> Result<Memory<'_>, CudaError> {
        let mut memory = Memory {
            gpu: self,
            address: 0,
            len: bytes.len(),
        };
        // SAFETY: the driver writes the new address. No allocation is empty.
        let status = unsafe { (self.driver.allocate)(&raw mut memory.address, memory.len.max(1)) };
        self.driver.check("cuMemAlloc", status)?;
        self.write(memory.address, bytes)?;
        Ok(memory)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), CudaError> {
        // SAFETY: the callers give an address with room for `bytes`.
        let status = unsafe { (self.driver.upload)(address, bytes.as_ptr().cast(), bytes.len()) };
        self.driver.check("cuMemcpyHtoD", status)
    }
}

/// Memory of the GPU.
pub(super) struct Memory<'g> {
    gpu: &'g Gpu,
    address: u64,
    len: usize,
}

impl Memory<'_> {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// What it holds now.
    pub(super) fn download(&self) -> Result<Vec<u8>, CudaError> {
        let mut bytes = vec![0u8; self.len];
        let driver = &self.gpu.driver;
        // SAFETY: both sides have `len` bytes.
        let status =
            unsafe { (driver.download)(bytes.as_mut_ptr().cast(), self.address, self.len) };
        driver.check("cuMemcpyDtoH", status)?;
        Ok(bytes)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: the address came from the allocator, and every launch was waited for. An address
        // of 0, where the allocation failed, is let pass by the driver.
        unsafe { (self.gpu.driver.free)(self.address) };
    }
}

/// PTX, compiled by the driver and loaded.
pub(super) struct Module<'g> {
    gpu: &'g Gpu,
    handle: Handle,
}

impl<'g> Module<'g> {
    /// Compiles and loads the text; `file` names it in errors.
    pub(super) fn load(gpu: &'g Gpu, file: &str, text: Vec<u8>) -> Result<Self, CudaError> {
        /// `CU_JIT_MAX_REGISTERS`, `CU_JIT_ERROR_LOG_BUFFER` and its size in bytes.
        const OPTIONS: [c_int; 3] = [0, 5, 6];
        /// With no more registers than this, threadgroups of 1024 threads fit every NVIDIA GPU.
        const MAX_REGISTERS: usize = 64;
        let bad = |log: String| CudaError::Ptx {
            file: file.to_owned(),
            log,
        };
        let text = CString::new(text).map_err(|error| bad(error.to_string()))?;
        let mut log = vec![0u8; 8192];
        let mut options = OPTIONS;
        let mut values = [
            ptr::without_provenance_mut::<c_void>(MAX_REGISTERS),
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(log.len()),
        ];
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: the text ends with zero; three options with three values, the log's length true.
        let status = unsafe {
            (gpu.driver.load_module)(
                &raw mut handle,
                text.as_ptr().cast(),
                OPTIONS.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        gpu.driver
            .check("cuModuleLoadDataEx", status)
            .map_err(|error| {
                let words = String::from_utf8_lossy(&log);
                bad(format!("{error}\n{}", words.trim_end_matches('\0')))
            })?;
        Ok(Module { gpu, handle })
    }

    /// Overwrites a global variable, which has exactly these bytes.
    pub(super) fn set_global(&self, name: &CStr, bytes: &[u8]) -> Result<(), CudaError> {
        let (mut address, mut len) = (0, 0);
        let driver = &self.gpu.driver;
        // SAFETY: the module is loaded, and the driver writes address and size.
        let status =
            unsafe { (driver.global)(&raw mut address, &raw mut len, self.handle, name.as_ptr()) };
        driver.check("cuModuleGetGlobal", status)?;
        if len != bytes.len() {
            return Err(CudaError::Global {
                name: name.to_string_lossy().into_owned(),
                found: len,
                expected: bytes.len(),
            });
        }
        self.gpu.write(address, bytes)
    }

    /// Runs an entry point and waits for it.
    ///
    /// # Safety
    /// `shape.arguments` is the parameter block of the entry point, and its pointers are to live
    /// memory of this GPU.
    pub(super) unsafe fn run(&self, entry: &str, shape: &Shape<'_>) -> Result<(), CudaError> {
        /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `CU_LAUNCH_PARAM_BUFFER_SIZE` and `…_END`.
        const POINTER: *mut c_void = ptr::without_provenance_mut(1);
        const SIZE: *mut c_void = ptr::without_provenance_mut(2);
        const END: *mut c_void = ptr::null_mut();
        let driver = &self.gpu.driver;
        let name = CString::new(entry).unwrap_or_default();
        let mut function: Handle = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with zero.
        let status = unsafe { (driver.function)(&raw mut function, self.handle, name.as_ptr()) };
        driver.check("cuModuleGetFunction", status)?;
        let mut size = shape.arguments.len();
        let block = shape.arguments.as_ptr().cast_mut().cast();
        let mut extra = [POINTER, block, SIZE, (&raw mut size).cast(), END];
        let ([gx, gy, gz], [tx, ty, tz]) = (shape.grid, shape.threads);
        // SAFETY: the caller vouches for the block; the driver copies it before it returns.
        let status = unsafe {
            (driver.launch)(
                function,
                gx,
                gy,
                gz,
                tx,
                ty,
                tz,
                shape.shared_bytes,
                ptr::null_mut(),
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        driver.check("cuLaunchKernel", status)?;
        // SAFETY: it has no arguments.
        driver.check("cuCtxSynchronize", unsafe { (driver.synchronize)() })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and nothing of it is running.
        unsafe { (self.gpu.driver.unload_module)(self.handle) };
    }
}

/// How an entry point is launched.
pub(super) struct Shape<'a> {
    /// Thread blocks.
    pub(super) grid: [u32; 3],
    /// Threads of a block.
    pub(super) threads: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(super) shared_bytes: u32,
    /// The parameter block.
    pub(super) arguments: &'a [u8],
}
