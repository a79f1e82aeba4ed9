//! What C holds of our things: numbers that look like pointers.
//!
//! ```text
//! 0x10 → Model    0x20 → Chat    0x30 → (freed)    0x40 → Options
//! ```
//!
//! A handle is never an address: it is looked up in one table, and no number is given out twice. So a handle that was
//! freed, or is of another kind, is an error and no access to somebody else's memory. Whoever looks one up holds a share of
//! the thing: it can be freed while a call uses it, and ends with the call.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::status::{AkunuStatus, Failure};

/// Something that C has a handle of.
pub trait Thing: Any + Send + Sync {
    /// What C sees of it.
    type Opaque;
    /// What people call it.
    const NAME: &'static str;
}

type Shared = Arc<dyn Any + Send + Sync>;

#[derive(Default)]
struct Table {
    n_given: usize,
    things: HashMap<usize, Shared>,
}

/// The distance between two handles: they are aligned as pointers are.
const STRIDE: usize = 16;

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives C a handle.
pub fn give<T: Thing>(thing: T) -> *mut T::Opaque {
    let mut table = table();
    table.n_given += 1;
    let handle = table.n_given * STRIDE;
    table.things.insert(handle, Arc::new(thing));
    std::ptr::without_provenance_mut(handle)
}

/// What a handle stands for.
pub fn get<T: Thing>(handle: *const T::Opaque) -> Result<Arc<T>, Failure> {
    if handle.is_null() {
        return Err(Failure::argument(format!("the {} is null", T::NAME)));
    }
    let thing = table().things.get(&handle.addr()).cloned();
    thing
        .and_then(|thing| thing.downcast().ok())
        .ok_or_else(stale::<T>)
}

/// Takes a handle back; null is nothing to take.
pub fn take<T: Thing>(handle: *mut T::Opaque) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    let mut table = table();
    let known = table.things.get(&handle.addr());
    if !known.is_some_and(|thing| thing.is::<T>()) {
        return Err(stale::<T>());
    }
    let thing = table.things.remove(&handle.addr());
    // The table is free while the thing ends, which may take long.
    drop(table);
    drop(thing);
    Ok(())
}

fn stale<T: Thing>() -> Failure {
    let text = format!("this is no {0}: it was freed, or never was a {0}", T::NAME);
    Failure::new(AkunuStatus::Handle, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Apple(u32);
    struct Pear;
    impl Thing for Apple {
        type Opaque = u64;
        const NAME: &'static str = "apple";
    }
    impl Thing for Pear {
        type Opaque = u64;
        const NAME: &'static str = "pear";
    }

    /// Breaks when a number is used again, or a thing is taken for one of another kind.
    #[test]
    fn a_handle_stands_for_one_thing_until_it_is_freed() {
        let apple = give(Apple(7));
        let pear = give(Pear);
        assert_eq!(get::<Apple>(apple).expect("there").0, 7);
        assert_eq!(
            get::<Apple>(pear).map(|_| ()).expect_err("a pear").status,
            AkunuStatus::Handle
        );
        assert!(take::<Pear>(apple).is_err(), "an apple");
        let held = get::<Apple>(apple).expect("there");
        assert!(take::<Apple>(apple).is_ok());
        assert!(take::<Apple>(apple).is_err(), "freed twice");
        assert!(get::<Apple>(apple).is_err(), "freed");
        assert_eq!(held.0, 7, "whoever uses it still has it");
        assert_ne!(give(Apple(8)), apple);
        assert!(take::<Pear>(std::ptr::null_mut()).is_ok());
    }
}
