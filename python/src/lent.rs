//! Something that a thread has for itself while it works, and that is back when it ends, however it ends.
//!
//! Who borrows it takes a place in a queue and never waits: a thread that must wait for those before it does so itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use akunu::CancelFlag;

/// Where the thing is while nobody has it.
pub struct Home<T>(Arc<Place<T>>);

struct Place<T> {
    held: Mutex<Held<T>>,
    changed: Condvar,
}

struct Held<T> {
    thing: Option<T>,
    /// Who has it or waits for it, by their numbers: the lowest is next.
    queue: BTreeSet<u64>,
    next_number: u64,
    /// Ends the work of the last borrower, and of no later one.
    cancel: CancelFlag,
    /// The process of the last borrower: a thread of a different process cannot return it here.
    process: u32,
}

impl<T> Held<T> {
    fn is_free(&self) -> bool {
        self.thing.is_some() && self.queue.is_empty()
    }

    /// Whether all who have it or wait for it are about to end: the last one is, and only then there was a next one.
    fn is_ending(&self) -> bool {
        self.process == std::process::id() && self.cancel.is_set()
    }
}

/// A place in the queue, and the thing once it is there.
pub struct Lent<T> {
    thing: Option<T>,
    number: u64,
    home: Arc<Place<T>>,
}

impl<T> Place<T> {
    fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Home<T> {
    /// The thing is at home.
    pub fn new(thing: T) -> Home<T> {
        let held = Mutex::new(Held {
            thing: Some(thing),
            queue: BTreeSet::new(),
            next_number: 0,
            cancel: CancelFlag::default(),
            process: std::process::id(),
        });
        Home(Arc::new(Place {
            held,
            changed: Condvar::new(),
        }))
    }

    /// The next place in the queue, for work that the flag ends; `None` if others have the thing who are not about to end.
    pub fn lend(&self, cancel: CancelFlag) -> Option<Lent<T>> {
        let mut held = self.0.held();
        if !held.is_free() && !held.is_ending() {
            return None;
        }
        held.process = std::process::id();
        held.cancel = cancel;
        let number = held.next_number;
        held.next_number += 1;
        held.queue.insert(number);
        Some(Lent {
            thing: None,
            number,
            home: Arc::clone(&self.0),
        })
    }

    /// Calls `act` with the thing, after waiting for those who are about to end; `None` if others have it.
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let comes = |held: &mut Held<T>| !held.is_free() && held.is_ending();
        let waited = self.0.changed.wait_while(self.0.held(), comes);
        let mut held = waited.unwrap_or_else(PoisonError::into_inner);
        if !held.is_free() {
            return None;
        }
        held.thing.as_mut().map(act)
    }
}

impl<T> Lent<T> {
    /// The thing, after waiting for those before.
    pub fn get(&mut self) -> Option<&mut T> {
        if self.thing.is_none() {
            let comes = |held: &mut Held<T>| {
                held.thing.is_none() || held.queue.first() != Some(&self.number)
            };
            let waited = self.home.changed.wait_while(self.home.held(), comes);
            self.thing = waited.unwrap_or_else(PoisonError::into_inner).thing.take();
        }
        self.thing.as_mut()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        let mut held = self.home.held();
        if let Some(thing) = self.thing.take() {
            held.thing = Some(thing);
        }
        held.queue.remove(&self.number);
        self.home.changed.notify_all();
    }
}
