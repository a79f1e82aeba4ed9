//! The tests of the CPU device, one module a subject.

mod device;
mod rows;
mod table;
