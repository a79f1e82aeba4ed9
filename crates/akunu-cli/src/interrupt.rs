//! Ctrl-C and requests to terminate, as a question that long work asks now and then.
//!
//! A process that is killed by a signal runs no destructors: a half-written file would stay behind, or
//! a terminal without echo. So, from the first [`Interrupt::listen`] on, a thread takes the signals:
//!
//! ```text
//! no `Interrupt` exists       the process ends with code 128 + signal
//! one exists                  the flag is set; the work sees it, returns an error, and cleans up
//! again, PATIENCE later       the process ends: the work does not check the flag
//! ```

use crate::failure::Failure;
use crate::typed_ahead;
use akunu::CancelFlag;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

/// How long work may take to notice the first signal before a second one ends the process.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the signals of this process have asked for.
#[derive(Default)]
struct Asked {
    to_stop: CancelFlag,
    /// The last signal, 0 before any.
    signal: AtomicI32,
    /// How many came since the flag was reset.
    times: AtomicUsize,
    /// How many [`Interrupt`]s look at the flag.
    listeners: AtomicUsize,
}

static ASKED: LazyLock<Asked> = LazyLock::new(Asked::default);

/// A piece of work that checks the flag: as long as one exists, a first signal does not end the process.
pub struct Interrupt(());

impl Interrupt {
    /// Listens to Ctrl-C and to requests to terminate. Earlier signals do not count.
    pub fn listen() -> Interrupt {
        take_signals();
        ASKED.listeners.fetch_add(1, Relaxed);
        reset();
        Interrupt(())
    }

    /// An error when the user asked us to stop.
    pub fn check(&self) -> Result<(), Failure> {
        match ASKED.to_stop.is_set() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    /// The same as an answer to the engine, which asks between chunks of a prompt.
    pub fn go_on(&self) -> ControlFlow<()> {
        match ASKED.to_stop.is_set() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The flag that ends a generation.
    pub fn flag(&self) -> &CancelFlag {
        &ASKED.to_stop
    }

    /// Forgets a Ctrl-C that came too late to stop the last answer.
    pub fn forget(&self) {
        if ASKED.signal.load(Relaxed) != SIGTERM {
            reset();
        }
    }

    /// Whether more than the end of an answer was asked for: Ctrl-C twice, or to terminate.
    pub fn ends_program(&self) -> bool {
        let terminate = ASKED.signal.load(Relaxed) == SIGTERM;
        ASKED.to_stop.is_set() && (terminate || ASKED.times.load(Relaxed) > 1)
    }

    /// How many signals have come.
    pub fn times(&self) -> usize {
        ASKED.times.load(Relaxed)
    }

    /// Runs code that waits and does not check the flag, during which a signal ends the process.
    pub fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        ASKED.listeners.fetch_sub(1, Relaxed);
        let got = wait();
        ASKED.listeners.fetch_add(1, Relaxed);
        got
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        ASKED.listeners.fetch_sub(1, Relaxed);
    }
}

/// The exit code of a program that a signal ended, by convention 128 + signal.
pub fn exit_code() -> u8 {
    match ASKED.signal.load(Relaxed) {
        SIGTERM => 143,
        _ => 130,
    }
}

/// Takes the signals from now on, even if nobody listens: then they end the process, with the terminal
/// as it was.
pub fn take_signals() {
    static START: Once = Once::new();
    START.call_once(receive);
}

fn reset() {
    ASKED.times.store(0, Relaxed);
    ASKED.to_stop.reset();
}

/// Starts the thread that takes the signals. Without it, a signal ends the process as if nothing had
/// been done about it.
#[cfg(unix)]
fn receive() {
    use signal_hook::iterator::Signals;
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let take = move || {
        let mut first = Instant::now();
        for signal in signals.forever() {
            ASKED.signal.store(signal, Relaxed);
            let is_first = ASKED.times.fetch_add(1, Relaxed) == 0;
            if is_first {
                first = Instant::now();
            }
            let is_heard = ASKED.listeners.load(Relaxed) > 0;
            if !is_heard || !is_first && first.elapsed() > PATIENCE {
                typed_ahead::restore_terminal();
                std::process::exit(exit_code().into());
            }
            ASKED.to_stop.cancel();
        }
    };
    let name = std::thread::Builder::new().name("signals".into());
    let _ = name.spawn(take);
}

/// There is no thread for signals here: they only set the flag.
#[cfg(not(unix))]
fn receive() {
    for signal in [SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, ASKED.to_stop.shared());
    }
}
