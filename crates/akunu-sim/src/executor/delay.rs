//! Stores that reach other threads only where a barrier orders the memory that they went to.
//!
//! ```text
//! what a thread sees  =  memory
//!                      + what its SIMD group has stored, up to a simdgroup_barrier that named that memory
//!                      + what it has stored itself
//! ```
//!
//! So a thread's stores are put into memory before it runs, and taken out again when it stops. A barrier moves those to the
//! memories that its flags name one level up: a `simdgroup_barrier` to the SIMD group, a `threadgroup_barrier` to memory, which
//! the whole threadgroup sees. A thread that reads what no barrier has ordered finds the bytes that were there before, and the
//! result is wrong.
//!
//! The SIMD functions (shuffles, sums, votes, products of matrices) move nothing: their values go from register to register,
//! and MSL promises no more. Atomic operations that read and write happen in memory at once. When a threadgroup ends, all
//! that it has stored is in memory.
//!
//! Only stores are delayed: a thread that overwrites what another has yet to read, behind a barrier of the wrong flags, is not
//! found. Nor are threadgroups kept apart, which MSL's barriers do not order.

use std::collections::HashSet;
use std::rc::Rc;

/// MSL's `mem_flags::mem_device` and `mem_flags::mem_threadgroup`.
const FLAGS: [u32; 2] = [1, 2];
/// Both memories.
pub const EVERYTHING: u32 = 3;

/// Bytes of a store that are kept together; a longer one is several.
const CHUNK: usize = 16;

/// Where the memories lie that barriers order, from each address up to one.
pub struct Memories {
    /// Buffers that the kernel may write.
    pub device: Vec<(usize, usize)>,
    /// The memory of the threadgroup.
    pub threadgroup: (usize, usize),
}

impl Memories {
    /// Which of [`FLAGS`] names the memory of these bytes; `None` for a thread's own, and for a store that leaves its buffer.
    fn index_of(&self, address: usize, n_bytes: usize) -> Option<usize> {
        let holds = |&(start, end): &(usize, usize)| {
            (start..end).contains(&address) && n_bytes <= end - address
        };
        if holds(&self.threadgroup) {
            return Some(1);
        }
        self.device.iter().any(holds).then_some(0)
    }
}

/// A store of up to [`CHUNK`] bytes.
struct Store {
    address: usize,
    n_bytes: usize,
    /// What was stored, while it is not in memory; otherwise what was there before.
    bytes: [u8; CHUNK],
}

impl Store {
    /// Puts the store into memory, or takes it out.
    ///
    /// # Safety
    /// Its address must be that of writable memory.
    unsafe fn exchange(&mut self) {
        let memory = self.address as *mut u8;
        // SAFETY: by contract; `bytes` is not that memory.
        unsafe {
            std::ptr::swap_nonoverlapping(memory, self.bytes.as_mut_ptr(), self.n_bytes);
        }
    }
}

/// Stores to one memory, in the order in which their places were first written.
#[derive(Default)]
struct Stores {
    list: Vec<Store>,
    /// Address and bytes of each: a place that is written again is the same store.
    places: HashSet<(usize, usize)>,
}

impl Stores {
    /// Notes a store, before it happens.
    ///
    /// # Safety
    /// The bytes must be writable memory.
    unsafe fn note(&mut self, address: usize, n_bytes: usize) {
        for at in (0..n_bytes).step_by(CHUNK) {
            let (address, n_bytes) = (address + at, (n_bytes - at).min(CHUNK));
            if !self.places.insert((address, n_bytes)) {
                continue;
            }
            let mut bytes = [0; CHUNK];
            // SAFETY: by contract.
            unsafe {
                let before = address as *const u8;
                std::ptr::copy_nonoverlapping(before, bytes.as_mut_ptr(), n_bytes);
            }
            self.list.push(Store {
                address,
                n_bytes,
                bytes,
            });
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.places.clear();
    }
}

/// What one thread, or one SIMD group, has stored and others do not see.
pub struct View {
    memories: Rc<Memories>,
    /// By memory, as in [`FLAGS`].
    stores: [Stores; 2],
}

impl View {
    /// A view of memory as it is.
    pub fn new(memories: Rc<Memories>) -> View {
        View {
            memories,
            stores: Default::default(),
        }
    }

    /// A store is about to happen.
    pub fn note(&mut self, address: usize, n_bytes: usize) {
        if let Some(memory) = self.memories.index_of(address, n_bytes) {
            // SAFETY: it is memory of this launch, which the kernel may write.
            unsafe { self.stores[memory].note(address, n_bytes) };
        }
    }

    /// Puts the stores into memory: whose they are runs.
    pub fn put_in(&mut self) {
        for store in self.stores.iter_mut().flat_map(|stores| &mut stores.list) {
            // SAFETY: `note` has seen that the kernel may write it, and the launch still runs.
            unsafe { store.exchange() };
        }
    }

    /// Takes the stores out again, the last one first, because places may overlap.
    pub fn take_out(&mut self) {
        for stores in &mut self.stores {
            for store in stores.list.iter_mut().rev() {
                // SAFETY: as in `put_in`.
                unsafe { store.exchange() };
            }
        }
    }

    /// Leaves the stores to the memories of these flags in memory, for all. They must have been taken out.
    pub fn release(&mut self, flags: u32) {
        for stores in named(&mut self.stores, flags) {
            for store in &mut stores.list {
                // SAFETY: as in `put_in`.
                unsafe { store.exchange() };
            }
            stores.clear();
        }
    }

    /// Hands the stores to the memories of these flags over to the SIMD group, whose own are in memory. They must have been
    /// taken out.
    pub fn release_to(&mut self, group: &mut View, flags: u32) {
        for stores in named(&mut self.stores, flags) {
            for store in &mut stores.list {
                group.note(store.address, store.n_bytes);
                // SAFETY: as in `put_in`.
                unsafe { store.exchange() };
            }
            stores.clear();
        }
    }
}

/// The stores to the memories that flags name.
fn named(stores: &mut [Stores; 2], flags: u32) -> impl Iterator<Item = &mut Stores> {
    let named = stores.iter_mut().zip(FLAGS);
    named.filter_map(move |(stores, flag)| (flag & flags != 0).then_some(stores))
}
