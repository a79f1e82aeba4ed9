//! What a chip can do: the numbers that launch geometry and kernel selection depend on.

/// Apple's GPU families, by the number in `MTLGPUFamilyApple<n>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuFamily(pub u8);

/// One chip.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipConfig {
    /// Marketing name, for messages.
    pub name: String,
    /// GPU family: M1 is 7, M2 is 8, M3 and M4 are 9, M5 is 10.
    pub family: GpuFamily,
    /// Number of GPU cores.
    pub gpu_cores: u32,
    /// Most threads of a threadgroup.
    pub max_threads: u32,
    /// Most bytes of threadgroup memory.
    pub threadgroup_bytes: u32,
}

/// Threads of a SIMD group on every Apple GPU.
pub const SIMD_WIDTH: u32 = 32;

/// Threadgroup memory that every Apple GPU has.
pub const THREADGROUP_BYTES: u32 = 32 * 1024;

impl ChipConfig {
    /// The smallest chip we run on: what the simulator and the tests assume.
    pub fn m1() -> ChipConfig {
        ChipConfig {
            name: "Apple M1".into(),
            family: GpuFamily(7),
            gpu_cores: 8,
            max_threads: 1024,
            threadgroup_bytes: THREADGROUP_BYTES,
        }
    }
}
