//! An access that the processor refuses, turned into an error of the launch.
//!
//! A signal handler looks whether a GPU thread was running. If so, it moves that thread's instruction
//! pointer to [`land`], which hands the trap to the scheduler and never runs again; the thread's stack
//! is thrown away. Anything else goes to the handler that was there before.

use super::fibre::{self, Pause};
use std::cell::Cell;

/// What the processor refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// The address that was accessed.
    pub address: usize,
    /// Whether it was a write.
    pub write: bool,
    /// Whether the thread ran out of stack.
    pub stack_overflow: bool,
}

thread_local! {
    static LAST: Cell<Trap> = const {
        Cell::new(Trap { address: 0, write: false, stack_overflow: false })
    };
}

/// Installs the handler, once for the process. On systems without one, such an access ends the process.
pub fn install() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    linux::install();
}

/// Where a trapped thread goes on.
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "only the signal handler goes here")
)]
extern "C" fn land() {
    fibre::pause(Pause::Trap(LAST.get()));
    unreachable!("a trapped thread is not run again");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux {
    use super::{LAST, Trap, fibre, land};
    use std::sync::OnceLock;

    /// Page-fault error code: the access was a write.
    const WRITE: i64 = 1 << 1;
    const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

    static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

    pub fn install() {
        BEFORE.get_or_init(|| {
            SIGNALS.map(|signal| {
                // SAFETY: both structs are plain data for which zero is valid; the handler has the
                // signature that SA_SIGINFO asks for.
                unsafe {
                    let mut before: libc::sigaction = std::mem::zeroed();
                    let mut action: libc::sigaction = std::mem::zeroed();
                    let function: Handler = handler;
                    action.sa_sigaction = function as usize;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigemptyset(&mut action.sa_mask);
                    libc::sigaction(signal, &action, &mut before);
                    before
                }
            })
        });
    }

    type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

    extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let Some(state) = fibre::current() else {
            pass_on(signal);
            return;
        };
        // SAFETY: the kernel gives a valid siginfo and ucontext; the state is that of the thread which runs on this
        // host thread, which is stopped here.
        unsafe {
            let address = (*info).si_addr() as usize;
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            LAST.set(Trap {
                address,
                write: registers[libc::REG_ERR as usize] & WRITE != 0,
                stack_overflow: (*state).overflowed_at(address),
            });
            // As behind a call: 8 below a multiple of 16.
            registers[libc::REG_RSP as usize] = (((*state).landing_stack() & !15) - 8) as i64;
            let landing: extern "C" fn() = land;
            registers[libc::REG_RIP as usize] = landing as usize as i64;
        }
    }

    /// Puts the earlier handler back and returns: the access is repeated and reaches it.
    fn pass_on(signal: i32) {
        let before = SIGNALS.iter().position(|&known| known == signal);
        if let (Some(at), Some(actions)) = (before, BEFORE.get()) {
            // SAFETY: the action is the one that the system gave us.
            unsafe { libc::sigaction(signal, &actions[at], std::ptr::null_mut()) };
        }
    }
}
