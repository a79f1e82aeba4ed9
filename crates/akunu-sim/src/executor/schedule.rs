//! In which order lanes, SIMD groups and threadgroups run.
//!
//! A correct kernel gives the same result in every order. A missing barrier does not, nor does one that names the wrong memory.

use std::fmt;

/// The order of everything that may run in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Lane 0 first.
    #[default]
    Ascending,
    /// Lane 31 first.
    Descending,
    /// A new order at every meeting point, from this seed.
    Random(u64),
    /// The same, and what a thread stores reaches the others only at a barrier whose flags name that memory.
    Delayed(u64),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Schedule::Ascending => "in ascending order",
            Schedule::Descending => "in descending order",
            Schedule::Random(_) => "in random order",
            Schedule::Delayed(_) => "with stores that wait for a barrier that names their memory",
        })
    }
}

impl Schedule {
    /// One of each, for tests that must not depend on the order.
    pub const EACH: [Schedule; 3] = [
        Schedule::Ascending,
        Schedule::Descending,
        Schedule::Delayed(0x5eed),
    ];

    /// A generator of orders; `salt` sets parallel ones apart.
    pub(crate) fn orders(self, salt: u64) -> Orders {
        Orders {
            schedule: self,
            state: match self {
                Schedule::Random(seed) | Schedule::Delayed(seed) => {
                    (seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
                }
                _ => 1,
            },
        }
    }
}

/// Draws one order after another.
pub(crate) struct Orders {
    schedule: Schedule,
    state: u64,
}

impl Orders {
    /// Arranges `items` in the next order.
    pub(crate) fn arrange(&mut self, items: &mut [u32]) {
        match self.schedule {
            Schedule::Ascending => items.sort_unstable(),
            Schedule::Descending => items.sort_unstable_by(|a, b| b.cmp(a)),
            Schedule::Random(_) | Schedule::Delayed(_) => {
                for last in (1..items.len()).rev() {
                    let other = self.next() % (last as u64 + 1);
                    items.swap(last, other as usize);
                }
            }
        }
    }

    /// Whether every order is the same, so that arranging once is enough.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.schedule, Schedule::Ascending | Schedule::Descending)
    }

    /// Whether stores wait for a barrier that orders them.
    pub(crate) fn delays_stores(&self) -> bool {
        matches!(self.schedule, Schedule::Delayed(_))
    }

    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}
