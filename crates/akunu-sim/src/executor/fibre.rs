//! One GPU thread: a fibre with its own stack, and the calls that it makes into the executor.

use super::abi::{Callbacks, Entry, MAX_EXCHANGE, SIMD_WIDTH, Site, Thread};
use super::arena::Arena;
use super::delay::View;
use super::stack::ThreadStack;
use super::{abi, count, trap};
use corosensei::stack::Stack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::ffi::{c_char, c_void};

/// Why a thread stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// It waits for the lanes of its SIMD group.
    Exchange {
        /// Index into [`abi::OPERATIONS`].
        operation: u32,
        /// Where.
        site: Site,
    },
    /// It waits for the lanes of its SIMD group, at a barrier.
    SimdgroupBarrier {
        /// The memories that it orders, as in MSL's `mem_flags`.
        flags: u32,
        /// Where.
        site: Site,
    },
    /// It waits for its threadgroup.
    Barrier {
        /// The memories that it orders.
        flags: u32,
        /// Where.
        site: Site,
    },
    /// A check in the compiled code failed.
    Check {
        /// Index into [`abi::FAULTS`].
        fault: u32,
        /// Where.
        site: Site,
    },
    /// Threadgroup memory ran out.
    ThreadgroupMemory,
    /// The processor refused an access.
    Trap(trap::Trap),
    /// The fibre's function has returned.
    Done,
}

/// The values that the lanes of a SIMD group hand each other, two sets in turn: while slow lanes still
/// read one, a fast lane may already fill the other.
#[repr(C, align(32))]
pub struct Slots([[u8; MAX_EXCHANGE * SIMD_WIDTH]; 2]);

impl Slots {
    pub fn new() -> Self {
        Slots([[0; MAX_EXCHANGE * SIMD_WIDTH]; 2])
    }
}

/// What a fibre needs to know while it runs. Its address must not change while it lives.
pub struct ThreadState {
    pub thread: Thread,
    pub slots: *mut Slots,
    pub arena: *mut Arena,
    /// Its stores that others do not see; `None` where all see them at once.
    pub view: Option<View>,
    turn: usize,
    /// How often it has met the others.
    meetings: Cell<u32>,
    yielder: *const Yielder<(), Pause>,
    stack_base: usize,
    stack_limit: usize,
}

impl ThreadState {
    pub fn new(thread: Thread, slots: *mut Slots, arena: *mut Arena, view: Option<View>) -> Self {
        ThreadState {
            thread,
            slots,
            arena,
            view,
            turn: 0,
            meetings: Cell::new(0),
            yielder: std::ptr::null(),
            stack_base: 0,
            stack_limit: 0,
        }
    }

    /// Where a trapped thread may go on: well inside its own stack.
    #[cfg_attr(
        not(all(target_os = "linux", target_arch = "x86_64")),
        allow(
            dead_code,
            reason = "only the trap handler asks, which other systems do not have"
        )
    )]
    pub fn landing_stack(&self) -> usize {
        self.stack_base - 8192
    }

    /// Whether the address lies in the guard at the end of this thread's stack.
    #[cfg_attr(
        not(all(target_os = "linux", target_arch = "x86_64")),
        allow(
            dead_code,
            reason = "only the trap handler asks, which other systems do not have"
        )
    )]
    pub fn overflowed_at(&self, address: usize) -> bool {
        (self.stack_limit.saturating_sub(64 * 1024)..self.stack_limit + 4096).contains(&address)
    }

    fn suspend(&self, pause: Pause) {
        self.meetings.set(self.meetings.get() + 1);
        // SAFETY: the yielder lives on this fibre's stack for as long as the fibre does.
        unsafe { (*self.yielder).suspend(pause) };
    }
}

thread_local! {
    /// The GPU thread that runs on this host thread; null outside a launch.
    static CURRENT: Cell<*mut ThreadState> = const { Cell::new(std::ptr::null_mut()) };
}

/// The GPU thread that runs on this host thread, if one does.
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(
        dead_code,
        reason = "only the trap handler asks, which other systems do not have"
    )
)]
pub fn current() -> Option<*mut ThreadState> {
    let state = CURRENT.get();
    (!state.is_null()).then_some(state)
}

/// Where the GPU thread stands that runs on this host thread, if one does.
pub fn current_place() -> Option<count::LaneAt> {
    // SAFETY: while a thread runs the pointer is to its state, of which nobody else has a reference.
    let state = unsafe { CURRENT.get().as_ref() }?;
    Some(count::LaneAt {
        thread: state.thread.index,
        simd_group: state.thread.simdgroup,
        lane: state.thread.lane,
        meetings: state.meetings.get(),
    })
}

/// A started or startable GPU thread.
pub struct Fibre(Coroutine<(), Pause, (), ThreadStack>);

impl Fibre {
    /// A fibre that will call `entry(arguments)` as `state`.
    ///
    /// # Safety
    /// `state` and `arguments` must outlive the fibre and stay where they are, and `entry` must be a
    /// kernel of a loaded library that was given [`CALLBACKS`].
    pub unsafe fn new(
        stack: ThreadStack,
        entry: Entry,
        arguments: *const abi::Arguments,
        state: *mut ThreadState,
    ) -> Self {
        // SAFETY: `state` is valid by contract.
        unsafe {
            (*state).stack_base = stack.base().get();
            (*state).stack_limit = stack.limit().get();
        }
        Fibre(Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: by contract `state` is valid and `entry` is a kernel.
            unsafe {
                (*state).yielder = yielder;
                entry(arguments);
            }
        }))
    }

    /// Runs to the next meeting point. `slot` is the library's pointer to the current thread.
    ///
    /// # Safety
    /// The fibre must not have returned; `state` must be the one it was made with and `slot` the
    /// library's, for this host thread.
    pub unsafe fn run(&mut self, state: *mut ThreadState, slot: *mut *const Thread) -> Pause {
        CURRENT.set(state);
        // SAFETY: by contract both are valid.
        unsafe { *slot = &raw const (*state).thread };
        let result = self.0.resume(());
        CURRENT.set(std::ptr::null_mut());
        match result {
            CoroutineResult::Yield(pause) => pause,
            CoroutineResult::Return(()) => Pause::Done,
        }
    }

    /// The stack, for another fibre.
    pub fn into_stack(mut self) -> ThreadStack {
        if !self.0.done() {
            // SAFETY: the frames are compiled kernels and our own callbacks; none of them owns
            // anything that must be dropped.
            unsafe { self.0.force_reset() };
        }
        self.0.into_stack()
    }
}

/// What every library is given when it is loaded.
pub static CALLBACKS: Callbacks = Callbacks {
    exchange,
    simdgroup_barrier,
    threadgroup_barrier,
    threadgroup_variable,
    fault,
    access,
};

extern "C" fn exchange(
    value: *const c_void,
    size: u32,
    operation: u32,
    file: *const c_char,
    line: u32,
) -> *const c_void {
    let state = CURRENT.get();
    let size = size as usize;
    // SAFETY: only a running kernel calls this, so `state` is set and its slots are alive; the shim keeps
    // `size` within MAX_EXCHANGE, and `value` points to as many bytes.
    let values = unsafe {
        let turn = (*state).turn;
        (*state).turn ^= 1;
        let values = (*(*state).slots).0[turn].as_mut_ptr();
        let own = values.add((*state).thread.lane as usize * size);
        std::ptr::copy_nonoverlapping(value.cast::<u8>(), own, size);
        (*state).suspend(Pause::Exchange {
            operation,
            site: Site { file, line },
        });
        values
    };
    values.cast()
}

extern "C" fn simdgroup_barrier(flags: u32, file: *const c_char, line: u32) {
    pause(Pause::SimdgroupBarrier {
        flags,
        site: Site { file, line },
    });
}

extern "C" fn threadgroup_barrier(flags: u32, file: *const c_char, line: u32) {
    if let Some(lane) = current_place() {
        count::barrier(lane);
    }
    pause(Pause::Barrier {
        flags,
        site: Site { file, line },
    });
}

extern "C" fn access(address: usize, bytes: u64, is_store: u32, instruction: usize) {
    let access = count::LaneAccess {
        address,
        bytes: bytes as usize,
        is_store: is_store != 0,
        instruction,
    };
    if let Some(lane) = current_place() {
        count::access(lane, access);
    }
    // SAFETY: only a running kernel calls this, of whose state nobody else has a reference.
    let view = unsafe { CURRENT.get().as_mut() }.and_then(|state| state.view.as_mut());
    if let Some(view) = view.filter(|_| access.is_store) {
        view.note(access.address, access.bytes);
    }
}

extern "C" fn threadgroup_variable(id: u32, size: u64, align: u64) -> *mut c_void {
    let state = CURRENT.get();
    // SAFETY: only a running kernel calls this; the threadgroup's arena is alive and used by one host
    // thread.
    let place = unsafe { (*(*state).arena).variable(id, size as usize, align as usize) };
    match place {
        Some(address) => address,
        None => {
            pause(Pause::ThreadgroupMemory);
            unreachable!("a thread without memory is not run again")
        }
    }
}

extern "C" fn fault(fault: u32, file: *const c_char, line: u32) {
    pause(Pause::Check {
        fault,
        site: Site { file, line },
    });
}

/// Stops the running thread.
pub fn pause(pause: Pause) {
    // SAFETY: called on a fibre only, where a current thread is set.
    unsafe { (*CURRENT.get()).suspend(pause) };
}
