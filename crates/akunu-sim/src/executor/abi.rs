//! The structs that the compiled kernels and the executor share; see `shim/sim/akunu_backend.h`.

use std::ffi::{c_char, c_void};

/// Most buffers, and most threadgroup bindings, of one kernel.
pub const MAX_BINDINGS: usize = 31;

/// Lanes of a SIMD group.
pub const SIMD_WIDTH: usize = 32;

/// Most bytes that a lane hands to the others in one operation.
pub const MAX_EXCHANGE: usize = 32;

/// Where a GPU thread stands.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// `thread_position_in_grid`.
    pub position_in_grid: [u32; 3],
    /// `thread_position_in_threadgroup`.
    pub position_in_threadgroup: [u32; 3],
    /// `threadgroup_position_in_grid`.
    pub threadgroup_position: [u32; 3],
    /// `threads_per_threadgroup`.
    pub threads_per_threadgroup: [u32; 3],
    /// `threadgroups_per_grid`.
    pub threadgroups_per_grid: [u32; 3],
    /// `thread_index_in_threadgroup`.
    pub index: u32,
    /// `thread_index_in_simdgroup`.
    pub lane: u32,
    /// `simdgroup_index_in_threadgroup`.
    pub simdgroup: u32,
    /// `simdgroups_per_threadgroup`.
    pub simdgroups: u32,
    /// A bit for each lane of this SIMD group that exists.
    pub active_lanes: u32,
    /// 1 when [`Callbacks::access`] is to be called.
    pub reports_accesses: u32,
    /// The function constants of the launch.
    pub constants: *const Constant,
}

/// The addresses of a kernel's bindings.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arguments {
    /// By `[[buffer(n)]]`.
    pub buffers: [*mut c_void; MAX_BINDINGS],
    /// By `[[threadgroup(n)]]`.
    pub threadgroup: [*mut c_void; MAX_BINDINGS],
}

/// A function constant's value.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Constant {
    /// The value's bytes, the low ones first.
    pub bits: u64,
    /// 1 when the host gave a value.
    pub defined: u64,
}

/// A place in the source, as the compiled code passes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// A zero-terminated file name inside the library.
    pub file: *const c_char,
    /// The line.
    pub line: u32,
}

/// What the compiled kernels call.
#[repr(C)]
pub struct Callbacks {
    /// A lane meets the others of its SIMD group.
    pub exchange: extern "C" fn(*const c_void, u32, u32, *const c_char, u32) -> *const c_void,
    /// A lane meets the others of its SIMD group, and orders the memories that these flags name.
    pub simdgroup_barrier: extern "C" fn(u32, *const c_char, u32),
    /// The same for a thread and its threadgroup.
    pub threadgroup_barrier: extern "C" fn(u32, *const c_char, u32),
    /// The address of a `threadgroup` variable: its id, size and alignment.
    pub threadgroup_variable: extern "C" fn(u32, u64, u64) -> *mut c_void,
    /// A check failed. Does not return.
    pub fault: extern "C" fn(u32, *const c_char, u32),
    /// A store, or a load in libraries for counting, that is about to happen: address, bytes, whether it is a store, the
    /// instruction.
    pub access: extern "C" fn(usize, u64, u32, usize),
}

/// A compiled kernel.
pub type Entry = unsafe extern "C" fn(*const Arguments);

/// The SIMD operations, in the order of the shim's `Operation`.
pub const OPERATIONS: [&str; 5] = [
    "SIMD shuffle",
    "SIMD reduction",
    "SIMD prefix sum",
    "SIMD vote",
    "SIMD matrix multiplication",
];

/// The failed checks, in the order of the shim's `Fault`.
pub const FAULTS: [&str; 5] = [
    "a misaligned access",
    "a shift by as many bits as the type has, or more",
    "an index outside its array",
    "an integer division by zero, or one that overflows",
    "a function constant without a value",
];
