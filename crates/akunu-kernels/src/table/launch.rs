//! Launch geometry.

/// Threadgroups, threads in each, and bytes of dynamic threadgroup memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threadgroups in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a threadgroup in x, y, z.
    pub threads: [u32; 3],
    /// Bytes bound to `[[threadgroup(0)]]`; 0 when the kernel declares its own.
    pub threadgroup_bytes: u32,
}

impl Launch {
    /// A launch without dynamic threadgroup memory.
    pub const fn new(grid: [u32; 3], threads: [u32; 3]) -> Launch {
        Launch {
            grid,
            threads,
            threadgroup_bytes: 0,
        }
    }

    /// Threads of a threadgroup.
    pub fn n_threads(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }

    /// One thread for each of `n` elements, in threadgroups of 256.
    pub const fn elementwise(n: u32) -> Launch {
        Launch::new([n.div_ceil(256), 1, 1], [256, 1, 1])
    }

    /// One thread for each four of `n` elements, in threadgroups of 256.
    pub const fn elementwise4(n: u32) -> Launch {
        Launch::elementwise(n.div_ceil(4))
    }
}
