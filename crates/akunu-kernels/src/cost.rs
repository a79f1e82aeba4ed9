//! What a launch costs: the bytes that it moves and the operations that it computes.
//!
//! The model counts what must come from memory. Each binding is read and written once, as far as the
//! row requires it; a row says where that is not so: weights that are read again for further rows of
//! the input, keys that no query sees, cache slots and table rows that are left alone. What threads
//! read again while it is in a cache (the input of a product, the keys that query heads share) counts
//! once. So `bytes_read + bytes_written` over the memory's speed is a floor for the time of a step.
//!
//! Operations are those of products and attention, two for a multiplication with its addition; all
//! other kernels wait for memory and count none.

use std::iter::Sum;

use crate::extent::product;
use crate::plan::{Dispatch, Plan};
use crate::table::{Access, Args, KernelRow};

/// The cost of a launch or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Operations on floating-point numbers.
    pub flops: u64,
    /// The number of launches.
    pub dispatches: u64,
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), |a, b| Cost {
            bytes_read: a.bytes_read.saturating_add(b.bytes_read),
            bytes_written: a.bytes_written.saturating_add(b.bytes_written),
            flops: a.flops.saturating_add(b.flops),
            dispatches: a.dispatches + b.dispatches,
        })
    }
}

/// Bytes that move between memory and one binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read.
    pub read: usize,
    /// Bytes written.
    pub written: usize,
}

impl Traffic {
    /// Traffic that only reads.
    pub const fn read(bytes: usize) -> Traffic {
        Traffic {
            read: bytes,
            written: 0,
        }
    }

    /// Traffic that only writes.
    pub const fn written(bytes: usize) -> Traffic {
        Traffic {
            read: 0,
            written: bytes,
        }
    }

    /// Reading and writing the same bytes.
    pub const fn both(bytes: usize) -> Traffic {
        Traffic {
            read: bytes,
            written: bytes,
        }
    }
}

/// What one launch does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The traffic of each binding, in the order of the row's.
    pub traffic: Vec<Traffic>,
    /// Operations on floating-point numbers.
    pub flops: u64,
}

impl Work {
    /// Each binding once, as far as the row requires it, and no operations.
    fn once(row: &KernelRow, args: &Args) -> Work {
        let bindings = row.bindings.iter().zip((row.required)(args));
        let traffic = bindings.map(|(binding, bytes)| match binding.access {
            Access::Read => Traffic::read(bytes),
            Access::Write => Traffic::written(bytes),
            Access::ReadWrite => Traffic::both(bytes),
        });
        Work {
            traffic: traffic.collect(),
            flops: 0,
        }
    }

    /// The same with another traffic of the binding at this place.
    pub fn with(mut self, place: usize, traffic: Traffic) -> Work {
        self.traffic[place] = traffic;
        self
    }

    /// The same with this many operations.
    pub fn with_flops(self, flops: u64) -> Work {
        Work { flops, ..self }
    }

    /// The sums over the bindings of one launch.
    pub fn cost(&self) -> Cost {
        let sum = |of: fn(&Traffic) -> usize| {
            let bytes = self.traffic.iter().map(|traffic| of(traffic) as u64);
            bytes.fold(0, u64::saturating_add)
        };
        Cost {
            bytes_read: sum(|traffic| traffic.read),
            bytes_written: sum(|traffic| traffic.written),
            flops: self.flops,
            dispatches: 1,
        }
    }
}

/// For rows whose launches touch each binding once.
pub fn once(_: &Args, once: Work) -> Work {
    once
}

/// Operations of as many multiplications, each with its addition, as the product of some counts.
pub fn multiply_adds(counts: &[u32]) -> u64 {
    (product(counts) as u64).saturating_mul(2)
}

impl KernelRow {
    /// What a launch with these params and constants does.
    pub fn work(&self, args: &Args) -> Work {
        (self.work)(args, Work::once(self, args))
    }
}

impl Dispatch {
    /// What it does in a full step.
    pub fn work(&self) -> Work {
        let row = self.kernel.row();
        row.work(&row.args(self.params.as_bytes(), &self.constants))
    }
}

impl Plan {
    /// What a full step costs.
    pub fn cost(&self) -> Cost {
        self.dispatches().iter().map(|d| d.work().cost()).sum()
    }
}
