//! Why a case failed.

use akunu_program::DeviceError;

use super::Mismatch;

/// Why a case failed on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Another result than the twin's.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Bytes behind a binding were changed.
    #[error("binding {binding}: bytes behind its end were changed")]
    Overrun {
        /// The binding's name.
        binding: &'static str,
    },
}

impl CaseError {
    /// What kind of failure it is.
    pub fn cause(&self) -> Cause {
        match self {
            CaseError::Device(DeviceError::Lost { .. }) => Cause::Lost,
            CaseError::Device(DeviceError::Pipeline { .. }) => Cause::NotCompiled,
            CaseError::Device(_) => Cause::Refused,
            CaseError::Overrun { .. } => Cause::Overrun,
            CaseError::Mismatch(_) => Cause::Different,
        }
    }
}

/// What kind of failure a case had, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The GPU failed: nothing ran on it afterwards.
    Lost,
    /// Its source or its pipeline was not accepted.
    NotCompiled,
    /// The device refused the launch.
    Refused,
    /// It wrote behind a binding.
    Overrun,
    /// It gave another result than the twin.
    Different,
}

impl Cause {
    /// In words that follow the name of a file.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Lost => "the GPU failed",
            Cause::NotCompiled => "does not compile",
            Cause::Refused => "is refused",
            Cause::Overrun => "writes outside of its buffers",
            Cause::Different => "differs from its twin",
        }
    }
}
