//! Something that a thread has for itself while it works, and that is back when it ends, however it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the thing is while nobody has it.
pub struct Home<T>(Arc<Mutex<Option<T>>>);

/// The thing, until this is dropped.
pub struct Lent<T> {
    thing: Option<T>,
    home: Arc<Mutex<Option<T>>>,
}

fn lock<T>(home: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
    home.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Home<T> {
    /// The thing is at home.
    pub fn new(thing: T) -> Home<T> {
        Home(Arc::new(Mutex::new(Some(thing))))
    }

    /// Takes it, unless somebody has it.
    pub fn lend(&self) -> Option<Lent<T>> {
        let thing = lock(&self.0).take()?;
        Some(Lent {
            thing: Some(thing),
            home: Arc::clone(&self.0),
        })
    }

    /// Does something with it at once, unless somebody has it.
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        lock(&self.0).as_mut().map(act)
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
        *lock(&self.home) = self.thing.take();
    }
}
