//! How long kernels take on a GPU, alone.

mod attention;
mod bench;
mod products;

pub use bench::{Bench, Effort, Timed, fill, shortest_run};
