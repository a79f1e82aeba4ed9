//! Kernels of NVIDIA's GPUs alone, for what MSL cannot say: their tensor cores, products of four bytes at once, and threadgroups
//! that wait for each other's results.
//!
//! The files are MSL but for the header `<akunu_tensor>`, which the simulator and the PTX compiler have and Metal does not.

pub mod async_gemm;
pub mod decode_attention;
pub mod decode_experts;
pub mod decode_gemm;
pub mod decode_gemv;
pub mod shared_gemm;
pub mod staging;
pub mod tensor_attention;
pub mod tensor_experts;
pub mod tensor_gemm;

use crate::chip::{ChipConfig, GpuFamily};
use crate::table::{Family, KernelRow};

/// A generation of NVIDIA's chips, by ten times the compute capability; 0 is another vendor's chip, which has nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(u32);

impl Generation {
    /// The generation of a chip.
    pub fn of(chip: &ChipConfig) -> Generation {
        match chip.family {
            GpuFamily::Nvidia(capability) => Generation(capability),
            GpuFamily::Apple(_) => Generation(0),
        }
    }

    /// Whether its tensor cores multiply matrices of 16 × 16 × 8 halves: from Ampere on.
    pub fn has_tensor_cores(self) -> bool {
        self.0 >= 80
    }

    /// Whether its tensor cores read threadgroup memory themselves: Hopper's products, which no other generation has.
    pub fn has_async_products(self) -> bool {
        self.0 == 90
    }
}

/// Whether a chip has the instructions of a kernel.
pub fn runs_on(row: &KernelRow, chip: &ChipConfig) -> bool {
    let generation = Generation::of(chip);
    match row.source {
        _ if row.family != Family::Nvidia => true,
        "async_gemm_32" | "async_gemm_64" | "async_gemm_128" => generation.has_async_products(),
        "decode_gemv" | "decode_norm_gemv" | "decode_expert_gate" | "decode_expert_down" => {
            generation > Generation(0)
        }
        _ => generation.has_tensor_cores(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::KernelId;

    fn chip(capability: u32) -> ChipConfig {
        ChipConfig {
            family: GpuFamily::Nvidia(capability),
            ..ChipConfig::m1()
        }
    }

    /// Breaks when a kernel of Hopper's instructions is taken for one that others have.
    #[test]
    fn later_chips_run_all_but_what_is_hoppers_own() {
        let n_left_out = |capability| {
            let rows = KernelId::all().into_iter().map(KernelId::row);
            rows.filter(|row| !runs_on(row, &chip(capability))).count()
        };
        let n_async = 3 * staging::formats().count();
        assert_eq!(n_left_out(90), 0);
        assert_eq!(n_left_out(80), n_async);
        assert_eq!(n_left_out(120), n_async);
        assert!(n_left_out(75) > n_async);
    }

    /// Breaks when a kernel that is not for Hopper alone asks for more threadgroup memory than every GPU with tensor cores has.
    #[test]
    fn kernels_of_older_chips_do_with_their_threadgroup_memory() {
        const GIVEN: u32 = 99 << 10;
        let rows = KernelId::all().into_iter().map(KernelId::row);
        for row in rows.filter(|row| row.family == Family::Nvidia && runs_on(row, &chip(80))) {
            for case in (row.cases)(row.dtype) {
                let args = row.args(case.params.as_bytes(), &case.constants);
                let bytes = (row.launch)(&args, &chip(80)).threadgroup_bytes;
                assert!(bytes <= GIVEN, "{}, {}: {bytes}", row.name(), case.label);
            }
        }
    }
}
