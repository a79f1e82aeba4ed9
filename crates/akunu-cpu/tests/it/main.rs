//! The tests of the CPU device, one module a subject.

mod cache;
mod device;
mod numbers;
mod rows;
mod table;
