//! Something that a thread has for itself while it works, and that is back when it ends, however it ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where the thing is while nobody has it.
pub struct Home<T>(Arc<Place<T>>);

struct Place<T> {
    held: Mutex<Held<T>>,
    back: Condvar,
}

struct Held<T> {
    thing: Option<T>,
    /// The process that last took it: a thread of a different process cannot return it here.
    process: u32,
}

/// The thing, until this is dropped.
pub struct Lent<T> {
    thing: Option<T>,
    home: Arc<Place<T>>,
}

impl<T> Place<T> {
    fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the thing is back, if the thread that has it `is_ending`.
    fn wait(&self, is_ending: impl Fn() -> bool) -> MutexGuard<'_, Held<T>> {
        let comes = |held: &mut Held<T>| {
            held.thing.is_none() && held.process == std::process::id() && is_ending()
        };
        let waited = self.back.wait_while(self.held(), comes);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Home<T> {
    /// The thing is at home.
    pub fn new(thing: T) -> Home<T> {
        Home(Arc::new(Place {
            held: Mutex::new(Held {
                thing: Some(thing),
                process: std::process::id(),
            }),
            back: Condvar::new(),
        }))
    }

    /// Takes the thing; `None` if a thread has it that is not about to end.
    pub fn lend(&self, is_ending: impl Fn() -> bool) -> Option<Lent<T>> {
        let mut held = self.0.wait(is_ending);
        let thing = held.thing.take()?;
        held.process = std::process::id();
        Some(Lent {
            thing: Some(thing),
            home: Arc::clone(&self.0),
        })
    }

    /// Calls `act` with the thing; `None` if a thread has it that is not about to end.
    pub fn with<R>(
        &self,
        is_ending: impl Fn() -> bool,
        act: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.0.wait(is_ending).thing.as_mut().map(act)
    }
}

impl<T> Lent<T> {
    /// The thing, which is there as long as this is.
    pub fn get(&mut self) -> Option<&mut T> {
        self.thing.as_mut()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        self.home.held().thing = self.thing.take();
        self.home.back.notify_all();
    }
}
