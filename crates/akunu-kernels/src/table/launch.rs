//! Launch geometry.

use crate::chip::{ChipConfig, SIMD_WIDTH};

/// Threads of a threadgroup for kernels that work with any number: 256, or what the chip allows in whole SIMD groups.
pub fn usual_threads(chip: &ChipConfig) -> u32 {
    const USUAL: u32 = 256;
    (chip.max_threads.min(USUAL) / SIMD_WIDTH).max(1) * SIMD_WIDTH
}

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

    /// One thread for each of `n` elements, in threadgroups of 256 or what the chip allows.
    pub fn elementwise(n: u32, chip: &ChipConfig) -> Launch {
        let threads = usual_threads(chip);
        Launch::new([n.div_ceil(threads), 1, 1], [threads, 1, 1])
    }

    /// One thread for each four of `n` elements, in threadgroups of 256 or what the chip allows.
    pub fn elementwise4(n: u32, chip: &ChipConfig) -> Launch {
        Launch::elementwise(n.div_ceil(4), chip)
    }
}
