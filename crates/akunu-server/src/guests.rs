//! Who is connected.
//!
//! There are as many places as there may be connections. When all are taken, the oldest connection that has not asked for anything,
//! or not to the end, makes room for the next: somebody who opens thousands and leaves them half-way keeps nobody else out.
//! Whoever is being answered stays.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// All connections.
pub(crate) struct Guests {
    /// In the order in which they came.
    list: Mutex<VecDeque<Arc<Guest>>>,
    max: usize,
    /// Told when somebody has left, or has been answered.
    changed: Arc<Notify>,
}

/// A connection.
pub(crate) struct Guest {
    /// Requests that are being answered.
    n_asked: AtomicUsize,
    must_leave: Notify,
    changed: Arc<Notify>,
}

/// A request that is being answered, until it is dropped.
pub(crate) struct Asked(Arc<Guest>);

impl Guests {
    pub fn new(max: usize) -> Guests {
        Guests {
            list: Mutex::new(VecDeque::new()),
            max: max.max(1),
            changed: Arc::new(Notify::new()),
        }
    }

    /// A place for the next connection, as soon as there is one.
    pub async fn admit(&self) -> Arc<Guest> {
        loop {
            let changed = self.changed.notified();
            if let Some(guest) = self.try_admit() {
                return guest;
            }
            changed.await;
        }
    }

    fn try_admit(&self) -> Option<Arc<Guest>> {
        let mut list = self.list();
        if list.len() >= self.max && !make_room(&mut list) {
            return None;
        }
        let guest = Arc::new(Guest {
            n_asked: AtomicUsize::new(0),
            must_leave: Notify::new(),
            changed: Arc::clone(&self.changed),
        });
        list.push_back(Arc::clone(&guest));
        Some(guest)
    }

    /// Closes the oldest connection that may be closed, because the system has no place for another one.
    pub fn make_room(&self) {
        make_room(&mut self.list());
    }

    /// Takes a connection out that has ended.
    pub fn left(&self, guest: &Arc<Guest>) {
        self.list().retain(|one| !Arc::ptr_eq(one, guest));
        self.changed.notify_waiters();
    }

    /// Waits until nobody is connected.
    pub async fn all_left(&self) {
        loop {
            let changed = self.changed.notified();
            if self.list().is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Guest>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the oldest connection that is not being answered, if there is one.
fn make_room(list: &mut VecDeque<Arc<Guest>>) -> bool {
    let oldest = list.iter().position(|guest| !guest.is_answered());
    let leaving = oldest.and_then(|at| list.remove(at));
    if let Some(guest) = &leaving {
        guest.must_leave.notify_one();
    }
    leaving.is_some()
}

impl Guest {
    /// Counts a request, until what is returned is dropped.
    pub fn asks(self: &Arc<Guest>) -> Asked {
        self.n_asked.fetch_add(1, Relaxed);
        Asked(Arc::clone(self))
    }

    /// Whether it has sent a whole request that is being answered.
    pub fn is_answered(&self) -> bool {
        self.n_asked.load(Relaxed) > 0
    }

    /// Waits until it has to make room.
    pub async fn must_leave(&self) {
        self.must_leave.notified().await;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.n_asked.fetch_sub(1, Relaxed);
        self.0.changed.notify_waiters();
    }
}
