//! How a call ended, and why.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use akunu::{EngineError, Error, ErrorKind};

/// The result of a call. For every other status than AKUNU_STATUS_OK, akunu_last_error has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum AkunuStatus {
    /// Success.
    Ok = 0,
    /// An argument is null, not UTF-8 or out of range, or an option does not exist.
    Argument = 1,
    /// A handle was already freed, or is of another kind.
    Handle = 2,
    /// Another call with this session, chat or transcriber has not ended yet.
    Busy = 3,
    /// A recording or another file cannot be used, for a reason that has no code of its own.
    Open = 4,
    /// The engine cannot continue, for a reason that has no code of its own.
    Engine = 5,
    /// The call was cancelled while a text was read, before the answer began, or while a recording was transcribed.
    Cancelled = 6,
    /// The caller's buffer is too small; the needed size was stored.
    Memory = 7,
    /// A bug in this library.
    Internal = 8,
    /// A file or folder does not exist.
    NotFound = 9,
    /// A file is not a model that can be run: it is damaged, or of a kind that is not supported.
    UnsupportedModel = 10,
    /// A text is longer than the context or the model allows.
    ContextFull = 11,
    /// There is not enough memory for the model or the context.
    OutOfMemory = 12,
    /// The device is not there, or failed.
    Device = 13,
    /// A model cannot be downloaded.
    Download = 14,
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    /// What the call returns.
    pub status: AkunuStatus,
    /// What akunu_last_error says.
    pub text: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(status: AkunuStatus, text: impl Into<String>) -> Failure {
        let text = text.into();
        Failure { status, text }
    }

    /// An argument that cannot be used.
    pub fn argument(text: impl Into<String>) -> Failure {
        Failure::new(AkunuStatus::Argument, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error.kind() {
            ErrorKind::NotFound => AkunuStatus::NotFound,
            ErrorKind::UnsupportedModel => AkunuStatus::UnsupportedModel,
            ErrorKind::ContextFull => AkunuStatus::ContextFull,
            ErrorKind::OutOfMemory => AkunuStatus::OutOfMemory,
            ErrorKind::Device => AkunuStatus::Device,
            ErrorKind::InvalidArgument => AkunuStatus::Argument,
            ErrorKind::Download => AkunuStatus::Download,
            ErrorKind::Cancelled => AkunuStatus::Cancelled,
            _ if matches!(error, Error::Audio(_)) => AkunuStatus::Open,
            _ => AkunuStatus::Engine,
        };
        Failure::new(status, error.to_string())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Error::from(error).into()
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs what a function of the interface does: a panic ends here, and what went wrong is kept for this thread.
pub fn call(body: impl FnOnce() -> Result<(), Failure>) -> AkunuStatus {
    let ran = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(internal(&*panic)));
    let Err(failure) = ran else {
        return AkunuStatus::Ok;
    };
    // A text from outside, a path for example, cannot have a NUL in it; whatever does is cut there.
    let words = failure.text.split('\0').next().unwrap_or_default();
    LAST.set(CString::new(words).unwrap_or_default());
    failure.status
}

fn internal(panic: &(dyn Any + Send)) -> Failure {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = format!("a fault of akunu: {}", words.unwrap_or("no words"));
    Failure::new(AkunuStatus::Internal, text)
}

/// The message of the last failed call of this thread, as one sentence of UTF-8; empty if none has failed. It stays valid
/// until the next call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    /// Breaks when a panic goes through to the caller, or is not told.
    #[test]
    fn a_panic_ends_at_the_border_with_its_words() {
        let status = call(|| panic!("planted {}", 7));
        assert_eq!(status, AkunuStatus::Internal);
        LAST.with_borrow(|text| assert_eq!(text.as_c_str(), c"a fault of akunu: planted 7"));
    }

    /// Breaks when threads see each other's errors.
    #[test]
    fn each_thread_has_its_own_last_error() {
        let fail = |text: &'static str| call(|| Err(Failure::argument(text)));
        assert_eq!(fail("mine"), AkunuStatus::Argument);
        let theirs = std::thread::spawn(move || {
            fail("theirs");
            LAST.with_borrow(|text| text.clone())
        });
        let theirs = theirs.join().expect("the thread ends");
        assert_eq!(theirs.as_c_str(), c"theirs");
        LAST.with_borrow(|text| assert_eq!(CStr::to_bytes(text), b"mine"));
    }
}
