//! What one launch moves and computes.

use std::iter::Sum;

use crate::extent::product;

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

/// Operations of as many multiplications, each with its addition, as the product of some counts.
pub fn multiply_adds(counts: &[u32]) -> u64 {
    (product(counts) as u64).saturating_mul(2)
}
