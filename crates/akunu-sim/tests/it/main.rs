//! The tests of the simulator, one module a subject. They need clang; what also needs its PTX back end is in `ptx`.

#[path = "../support/mod.rs"]
mod support;

mod barriers;
mod count;
mod faults;
mod features;
mod fused;
mod gpu_device;
mod kernel_table;
mod planted_faults;
mod real_blocks;
mod rewriting;
mod runs;
mod signatures;
mod strict;
