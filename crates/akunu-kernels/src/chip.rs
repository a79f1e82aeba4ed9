//! What a chip can do: the numbers that launch geometry and kernel selection depend on.
//!
//! A device that can ask the system for a number (cores, threads of a threadgroup) overwrites ours: a
//! chip is sold with fewer cores than its full version, which is what the table describes.

/// The vendor and generation of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuFamily {
    /// Apple's, by the number in `MTLGPUFamilyApple<n>`: M1 is 7, M2 is 8, M3 and M4 are 9, M5 is 10.
    Apple(u8),
    /// NVIDIA's, by ten times the compute capability: Turing is 75, Ampere 80 and 86, Hopper 90.
    Nvidia(u32),
}

/// What kernels are chosen by: the properties of a chip.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipConfig {
    /// Marketing name, as the system gives it.
    pub name: String,
    /// GPU family.
    pub family: GpuFamily,
    /// Number of GPU cores; NVIDIA's multiprocessors.
    pub gpu_cores: u32,
    /// Bytes of the cache before the memory: Apple's system-level cache, NVIDIA's second level.
    pub slc_bytes: u64,
    /// Bytes that the memory delivers in a second, at best.
    pub bytes_per_second: u64,
    /// Most threads of a threadgroup.
    pub max_threads: u32,
    /// Most bytes of threadgroup memory.
    pub threadgroup_bytes: u32,
    /// Bytes of threadgroup memory that a core has for the threadgroups on it, at least.
    pub core_bytes: u32,
    /// Where one kernel is better than another.
    pub thresholds: Thresholds,
}

/// From which sizes on one kernel is better than another. They follow from bytes and SIMD groups, and are to be measured on each
/// generation (`cargo measure mac-report`); NVIDIA's kernels have separate rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Outputs from which a SIMD group computes eight of them for one row, instead of four: vocabularies, not hidden layers.
    pub wide_outputs: u32,
    /// Most rows that are multiplied without a tile.
    pub batched_rows: u32,
    /// Most rows that are multiplied in a tile of 8.
    pub small_tile_rows: u32,
    /// SIMD groups that keep a core busy with normalised products of one row.
    pub product_simd_groups: u32,
    /// SIMD groups that keep a core busy with attention of one row.
    pub attention_simd_groups: u32,
}

impl Thresholds {
    /// Those of a generation. None has been measured yet, and all have the same.
    pub const fn of(family: GpuFamily) -> Thresholds {
        match family {
            GpuFamily::Apple(_) | GpuFamily::Nvidia(_) => Thresholds {
                wide_outputs: 32_768,
                batched_rows: 4,
                small_tile_rows: 8,
                product_simd_groups: 32,
                attention_simd_groups: 16,
            },
        }
    }
}

/// Threads of a SIMD group on every Apple GPU.
pub const SIMD_WIDTH: u32 = 32;

/// Threadgroup memory that every Apple GPU has.
pub const THREADGROUP_BYTES: u32 = 32 * 1024;

/// Threads of a threadgroup that every chip of the table allows.
const MAX_THREADS: u32 = 1024;

/// A line of the table: name, GPU family, GPU cores, system-level cache in MiB, memory in GB/s.
struct Published(&'static str, u8, u32, u64, u64);

/// Each chip in its full version. Cores and memory are Apple's figures. Apple does not give the size of
/// the system-level cache: these figures are to be confirmed, and M5 is taken to be as M4.
const CHIPS: [Published; 18] = [
    Published("Apple M1", 7, 8, 8, 68),
    Published("Apple M1 Pro", 7, 16, 24, 200),
    Published("Apple M1 Max", 7, 32, 48, 400),
    Published("Apple M1 Ultra", 7, 64, 96, 800),
    Published("Apple M2", 8, 10, 8, 100),
    Published("Apple M2 Pro", 8, 19, 24, 200),
    Published("Apple M2 Max", 8, 38, 48, 400),
    Published("Apple M2 Ultra", 8, 76, 96, 800),
    Published("Apple M3", 9, 10, 8, 100),
    Published("Apple M3 Pro", 9, 18, 12, 150),
    Published("Apple M3 Max", 9, 40, 48, 400),
    Published("Apple M3 Ultra", 9, 80, 96, 819),
    Published("Apple M4", 9, 10, 8, 120),
    Published("Apple M4 Pro", 9, 20, 24, 273),
    Published("Apple M4 Max", 9, 40, 48, 546),
    Published("Apple M5", 10, 10, 8, 153),
    Published("Apple M5 Pro", 10, 20, 24, 307),
    Published("Apple M5 Max", 10, 40, 48, 614),
];

impl Published {
    fn config(&self) -> ChipConfig {
        let &Published(name, family, gpu_cores, slc_mib, gigabytes) = self;
        ChipConfig {
            name: name.into(),
            family: GpuFamily::Apple(family),
            thresholds: Thresholds::of(GpuFamily::Apple(family)),
            gpu_cores,
            slc_bytes: slc_mib << 20,
            bytes_per_second: gigabytes * 1_000_000_000,
            max_threads: MAX_THREADS,
            threadgroup_bytes: THREADGROUP_BYTES,
            core_bytes: THREADGROUP_BYTES,
        }
    }
}

impl ChipConfig {
    /// The smallest supported chip, which the simulator and the tests assume.
    pub fn m1() -> ChipConfig {
        CHIPS[0].config()
    }

    /// What an H200 is to lowering, for tests of what kernels choose on a large GPU.
    #[cfg(test)]
    pub(crate) fn h200() -> ChipConfig {
        ChipConfig {
            family: GpuFamily::Nvidia(90),
            gpu_cores: 132,
            core_bytes: 228 << 10,
            ..ChipConfig::m1()
        }
    }

    /// Limits that every GPU has, for the check of shapes on devices that launch nothing.
    pub fn least() -> ChipConfig {
        ChipConfig {
            name: "any".into(),
            ..ChipConfig::m1()
        }
    }

    /// Every chip that we know.
    pub fn all() -> impl Iterator<Item = ChipConfig> {
        CHIPS.iter().map(Published::config)
    }

    /// The chip that Metal calls `name`.
    ///
    /// ```
    /// let chip = akunu_kernels::ChipConfig::by_name("Apple M2 Pro").unwrap();
    /// assert_eq!(chip.gpu_cores, 19);
    /// ```
    pub fn by_name(name: &str) -> Option<ChipConfig> {
        ChipConfig::all().find(|chip| chip.name == name)
    }

    /// The chip that Metal calls `name`; an unknown one is treated as an M1, whose limits every later
    /// chip has, under its own name.
    pub fn by_name_or_m1(name: &str) -> ChipConfig {
        ChipConfig::by_name(name).unwrap_or_else(|| ChipConfig {
            name: name.into(),
            ..ChipConfig::m1()
        })
    }

    /// The least seconds in which the memory delivers `bytes`.
    pub fn seconds_for(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_second as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        let chip = ChipConfig::by_name("Apple M3 Max").expect("it is in the table");
        assert_eq!((chip.family, chip.gpu_cores), (GpuFamily::Apple(9), 40));
        assert_eq!(chip.bytes_per_second, 400_000_000_000);
        assert_eq!(ChipConfig::by_name("Apple M3 Max Pro"), None);
        assert_eq!(ChipConfig::by_name("M3 Max"), None);
    }

    /// A line with another generation's family, a size in the wrong unit or a name used twice.
    #[test]
    fn the_table_is_consistent() {
        let family = |name: &str| match &name[..8] {
            "Apple M1" => 7,
            "Apple M2" => 8,
            "Apple M3" | "Apple M4" => 9,
            "Apple M5" => 10,
            other => panic!("{other}"),
        };
        for chip in ChipConfig::all() {
            let name = &chip.name;
            assert_eq!(chip.family, GpuFamily::Apple(family(name)), "{name}");
            assert_eq!(ChipConfig::by_name(name).as_ref(), Some(&chip), "{name}");
            // All chips were built with between 6 and 16 GB/s a core.
            let per_core = chip.bytes_per_second / u64::from(chip.gpu_cores);
            assert!(
                (6_000_000_000..16_000_000_000).contains(&per_core),
                "{name}"
            );
            assert!((8 << 20..=96 << 20).contains(&chip.slc_bytes), "{name}");
        }
    }

    /// In a generation each larger chip has more of everything; an Ultra is two of its Max.
    #[test]
    fn chips_of_a_generation_grow() {
        let chips: Vec<ChipConfig> = ChipConfig::all().collect();
        for pair in chips
            .windows(2)
            .filter(|pair| pair[0].name[..8] == pair[1].name[..8])
        {
            let (small, large) = (&pair[0], &pair[1]);
            assert!(large.gpu_cores > small.gpu_cores, "{}", large.name);
            assert!(
                large.bytes_per_second > small.bytes_per_second,
                "{}",
                large.name
            );
            assert!(large.slc_bytes > small.slc_bytes, "{}", large.name);
            if large.name.ends_with("Ultra") {
                assert_eq!(large.gpu_cores, 2 * small.gpu_cores, "{}", large.name);
            }
        }
    }

    #[test]
    fn an_unknown_chip_is_run_as_an_m1_under_its_own_name() {
        let chip = ChipConfig::by_name_or_m1("Apple M99 Extreme");
        assert_eq!(chip.name, "Apple M99 Extreme");
        let m1 = ChipConfig::m1();
        assert_eq!((chip.family, chip.gpu_cores), (m1.family, m1.gpu_cores));
        assert_eq!(ChipConfig::by_name_or_m1("Apple M1"), m1);
    }

    #[test]
    fn a_gigabyte_takes_an_m1_a_sixty_eighth_of_a_second() {
        assert_eq!(ChipConfig::m1().seconds_for(1_000_000_000), 1.0 / 68.0);
    }
}
