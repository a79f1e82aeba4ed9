//! Finding CUDA's driver, and what it says when something is wrong.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

use akunu_program::DeviceError;
use cudarc::driver::sys;

use crate::unavailable;

/// The oldest driver that takes our PTX, as CUDA counts: 1000 times the major version, 10 times the minor.
const OLDEST: i32 = 12_000;

/// A call of the driver that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    call: &'static str,
    status: sys::CUresult,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: *const c_char = ptr::null();
        // SAFETY: the driver writes a pointer to a static text, or leaves null.
        unsafe { sys::cuGetErrorString(self.status, &raw mut words) };
        if words.is_null() {
            return write!(out, "{} gives error {}", self.call, self.status as u32);
        }
        // SAFETY: not null, so it is a static zero-terminated text of the driver.
        let words = unsafe { CStr::from_ptr(words) };
        write!(out, "{} ({})", words.to_string_lossy(), self.call)
    }
}

impl Fault {
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.status == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
    }
}

/// A fault for every status but success.
pub(crate) fn check(call: &'static str, status: sys::CUresult) -> Result<(), Fault> {
    match status {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(Fault { call, status }),
    }
}

/// Calls a function of the driver and checks its status, under its name.
macro_rules! call {
    ($function:ident ( $($argument:expr),* $(,)? )) => {
        $crate::driver::check(stringify!($function), cudarc::driver::sys::$function($($argument),*))
    };
}
pub(crate) use call;

/// Loads and starts the driver; its version.
pub(crate) fn start() -> Result<i32, DeviceError> {
    // SAFETY: the initialisers of the system's driver are made to be run by any program.
    if !unsafe { sys::is_culib_present() } {
        return Err(unavailable(
            "no CUDA driver was found (libcuda); it comes with NVIDIA's driver for the GPU",
        ));
    }
    let mut version = 0;
    // SAFETY: the driver writes its version.
    let asked = unsafe { call!(cuDriverGetVersion(&raw mut version)) };
    asked.map_err(|fault| unavailable(fault.to_string()))?;
    judge_version(version)?;
    // SAFETY: it has no requirements.
    let started = unsafe { call!(cuInit(0)) };
    started.map_err(|fault| {
        unavailable(match fault.status {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => "the driver finds no NVIDIA GPU".to_owned(),
            _ => format!("the driver does not start: {fault}"),
        })
    })?;
    Ok(version)
}

/// Refuses a driver that is too old.
fn judge_version(version: i32) -> Result<(), DeviceError> {
    if version >= OLDEST {
        return Ok(());
    }
    let (found, oldest) = (version_words(version), version_words(OLDEST));
    Err(unavailable(format!(
        "its driver is for CUDA {found}, and {oldest} is needed: install a newer driver"
    )))
}

/// `13.0` for 13000.
pub(crate) fn version_words(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when an old driver is let pass, or its user does not read what to install.
    #[test]
    fn an_old_driver_is_refused_with_both_versions() {
        assert!(judge_version(12_000).is_ok());
        assert!(judge_version(13_010).is_ok());
        let words = judge_version(11_040).unwrap_err().to_string();
        assert_eq!(
            words,
            "there is no cuda device: its driver is for CUDA 11.4, and 12.0 is needed: \
             install a newer driver; the CPU device runs everywhere"
        );
    }
}
