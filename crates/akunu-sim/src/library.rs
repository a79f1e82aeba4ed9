//! A compiled `.metal` file, loaded.

use crate::error::SimError;
use crate::executor::abi::{Callbacks, Entry, Thread};
use std::mem::ManuallyDrop;
use std::path::Path;

/// A shared library of kernels.
pub(crate) struct Library {
    /// Never unloaded: what a library takes of the process's small block of thread-local memory is not given back, so that
    /// loading the same libraries again and again would use it up.
    handle: ManuallyDrop<libloading::Library>,
    current: unsafe extern "C" fn() -> *mut *const Thread,
}

impl Library {
    /// Loads the library and gives it the executor's calls.
    pub(crate) fn load(path: &Path, callbacks: &'static Callbacks) -> Result<Library, SimError> {
        let wrap = |source| SimError::Load {
            path: path.to_owned(),
            source,
        };
        // SAFETY: the file was compiled from our shim, whose initialisers do nothing.
        let handle = unsafe { libloading::Library::new(path) }.map_err(wrap)?;
        // SAFETY: the shim defines both functions with these types.
        let (install, current) = unsafe {
            let install = handle
                .get::<unsafe extern "C" fn(*const Callbacks)>(b"akunu_sim_install")
                .map_err(wrap)?;
            let current = handle
                .get::<unsafe extern "C" fn() -> *mut *const Thread>(b"akunu_sim_current")
                .map_err(wrap)?;
            (*install, *current)
        };
        // SAFETY: `callbacks` is static, so the library may keep it.
        unsafe { install(callbacks) };
        Ok(Library {
            handle: ManuallyDrop::new(handle),
            current,
        })
    }

    /// A kernel's entry point.
    pub(crate) fn entry(&self, kernel: &str) -> Result<Entry, SimError> {
        let symbol = format!("akunu_entry_{kernel}");
        // SAFETY: the rewriter gives every entry point this type.
        let entry = unsafe { self.handle.get::<Entry>(symbol.as_bytes()) };
        entry.map(|entry| *entry).map_err(|source| SimError::Load {
            path: symbol.into(),
            source,
        })
    }

    /// The library's pointer to the current GPU thread of this host thread.
    pub(crate) fn current(&self) -> *mut *const Thread {
        // SAFETY: the function takes nothing and only gives an address.
        unsafe { (self.current)() }
    }
}
