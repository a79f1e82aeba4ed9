//! The tests of the CPU device, one module a subject.

mod cache;
mod device;
mod experts;
mod numbers;
mod rows;
mod states;
mod stopping;
mod table;
