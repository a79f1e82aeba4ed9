//! Ctrl-C as a question that long work asks now and then.
//!
//! A process that is killed by a signal runs no destructors, and a half-written file would stay
//! behind. So the signal only sets a flag; the work sees it, returns an error, and cleans up.

use crate::failure::{Failure, INTERRUPTED};
use akunu_engine::CancelFlag;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user asked us to stop.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to Ctrl-C from now on, and to requests to terminate.
    pub fn listen() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Without a handler, the signal still ends the process; it may then leave a temporary file.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Interrupt(flag)
    }

    /// An error when the user asked us to stop.
    pub fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }
}

/// A flag that Ctrl-C sets: the answer under way stops, and what was said so far stays. A second Ctrl-C
/// before the flag is reset ends the program.
pub fn cancel_flag() -> CancelFlag {
    let flag = CancelFlag::default();
    // Without a handler, a signal ends the process, which is what it would do anyway. The order counts:
    // the flag is looked at before it is set.
    let code = i32::from(INTERRUPTED);
    let _ = signal_hook::flag::register_conditional_shutdown(SIGINT, code, flag.shared());
    let _ = signal_hook::flag::register(SIGINT, flag.shared());
    // A download may have listened to this one; an answer does not.
    let always = Arc::new(AtomicBool::new(true));
    let _ = signal_hook::flag::register_conditional_default(SIGTERM, always);
    flag
}
