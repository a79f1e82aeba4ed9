//! The functions of the CUDA driver that a run needs, found in `libcuda` at run time.

use super::CudaError;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

/// What a driver function returns; 0 is success.
type Status = c_int;

/// A context, module or function of the driver.
pub(super) type Handle = *mut c_void;

/// Where the driver's library may be.
const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Defines [`Driver`]: a field for each function, filled from the library's symbol.
macro_rules! driver {
    ($($field:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The loaded driver. Its functions are valid as long as the library stays loaded.
        pub(super) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            _library: libloading::Library,
        }

        impl Driver {
            fn resolve(library: libloading::Library) -> Result<Driver, libloading::Error> {
                $(
                    // SAFETY: the symbol is a function of this type, by the driver's documentation.
                    let $field = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> Status>($symbol.as_bytes())
                    }?;
                )*
                Ok(Driver { $($field,)* _library: library })
            }
        }
    };
}

driver! {
    init = "cuInit" (c_uint);
    device = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    version = "cuDriverGetVersion" (*mut c_int);
    retain_context = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    use_context = "cuCtxSetCurrent" (Handle);
    synchronize = "cuCtxSynchronize" ();
    load_module = "cuModuleLoadDataEx" (*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload_module = "cuModuleUnload" (Handle);
    function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    global = "cuModuleGetGlobal_v2" (*mut u64, *mut usize, Handle, *const c_char);
    allocate = "cuMemAlloc_v2" (*mut u64, usize);
    free = "cuMemFree_v2" (u64);
    upload = "cuMemcpyHtoD_v2" (u64, *const c_void, usize);
    download = "cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        Handle, *mut *mut c_void, *mut *mut c_void
    );
    error_string = "cuGetErrorString" (Status, *mut *const c_char);
}

impl Driver {
    /// Loads the driver of this machine.
    pub(super) fn load() -> Result<Driver, CudaError> {
        Driver::load_from(&LIBRARIES)
    }

    /// Loads the first of these libraries that is there.
    pub(super) fn load_from(names: &[&str]) -> Result<Driver, CudaError> {
        // SAFETY: the initialisers of the system's CUDA driver are made to be run by any program.
        let mut found = names
            .iter()
            .map(|name| unsafe { libloading::Library::new(*name) });
        let library = found
            .find_map(Result::ok)
            .ok_or_else(|| CudaError::NoDriver {
                tried: names.join(", "),
            })?;
        Driver::resolve(library).map_err(CudaError::OldDriver)
    }

    /// An error for every status but success.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), CudaError> {
        if status == 0 {
            return Ok(());
        }
        let mut words: *const c_char = ptr::null();
        // SAFETY: the driver writes a pointer to a static text, or leaves null.
        unsafe { (self.error_string)(status, &raw mut words) };
        let message = if words.is_null() {
            format!("error {status}")
        } else {
            // SAFETY: not null, so it is a static zero-terminated text of the driver.
            unsafe { CStr::from_ptr(words) }
                .to_string_lossy()
                .into_owned()
        };
        Err(CudaError::Call { call, message })
    }
}
