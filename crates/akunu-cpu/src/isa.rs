//! Levels of instructions, and which of them this machine has.

use std::fmt;
use std::str::FromStr;

/// A level of instructions. Kernels are written for levels, not for single extensions.
///
/// ```
/// use akunu_cpu::Isa;
///
/// println!("{} of {:?}", Isa::detect(), Isa::available());
/// assert!("scalar".parse::<Isa>().is_ok_and(Isa::is_available));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// No vector instructions: for every CPU.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// The same with AVX-VNNI: Intel's processors since 2021 that have no AVX-512, most laptops among them.
    AvxVnni,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI.
    Avx512,
    /// The same with BF16, and AMX tiles of bytes and of BF16.
    Amx,
    /// Every 64-bit ARM CPU.
    Neon,
    /// The same with dot products of bytes: ARM CPUs since about 2018, every Apple silicon Mac.
    Dotprod,
    /// The same with products of small matrices of bytes: ARM CPUs since about 2021, Apple's since the M2.
    I8mm,
}

/// A name that is not a level.
///
/// ```
/// use akunu_cpu::Isa;
///
/// assert!("mmx".parse::<Isa>().unwrap_err().to_string().contains("mmx"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown instructions `{0}`: one of scalar, avx2, avxvnni, avx512, amx, neon, dotprod, i8mm"
)]
#[non_exhaustive]
pub struct UnknownIsa(pub String);

impl Isa {
    /// Every level, the slower ones first.
    pub const ALL: [Isa; 8] = [
        Isa::Scalar,
        Isa::Neon,
        Isa::Dotprod,
        Isa::I8mm,
        Isa::Avx2,
        Isa::AvxVnni,
        Isa::Avx512,
        Isa::Amx,
    ];

    /// The best level of this machine.
    pub fn detect() -> Isa {
        Isa::available().pop().unwrap_or(Isa::Scalar)
    }

    /// The levels that this machine has, the slower ones first.
    pub fn available() -> Vec<Isa> {
        Isa::ALL
            .into_iter()
            .filter(|isa| isa.is_available())
            .collect()
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "aarch64")]
            Isa::Dotprod => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[cfg(target_arch = "aarch64")]
            Isa::I8mm => {
                Isa::Dotprod.is_available() && std::arch::is_aarch64_feature_detected!("i8mm")
            }
            #[cfg(not(target_arch = "aarch64"))]
            Isa::Dotprod | Isa::I8mm => false,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => x86::has_avx_vnni(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => x86::has_amx(),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 | Isa::Amx => false,
        }
    }

    /// The name that options take.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avxvnni",
            Isa::Avx512 => "avx512",
            Isa::Amx => "amx",
            Isa::Neon => "neon",
            Isa::Dotprod => "dotprod",
            Isa::I8mm => "i8mm",
        }
    }
}

/// A level that this machine has: the proof that functions compiled with its instructions may be called. [`Isa::level`] alone
/// makes it, after asking the processor and the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Isa);

impl Isa {
    /// The proof that this machine has the level, if it has.
    pub(crate) fn level(self) -> Option<Level> {
        self.is_available().then_some(Level(self))
    }
}

impl Level {
    /// Which level it is.
    pub fn isa(self) -> Isa {
        self.0
    }

    /// The levels that this machine has, the slower ones first.
    #[cfg(test)]
    pub fn available() -> Vec<Level> {
        Isa::available().into_iter().map(Level).collect()
    }
}

#[cfg(test)]
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Isa, UnknownIsa> {
        let found = Isa::ALL.into_iter().find(|isa| isa.name() == name);
        found.ok_or_else(|| UnknownIsa(name.into()))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;
    use std::sync::OnceLock;

    pub fn has_avx2() -> bool {
        has!("avx2") && has!("fma") && has!("f16c")
    }

    pub fn has_avx_vnni() -> bool {
        has_avx2() && has!("avxvnni")
    }

    pub fn has_avx512() -> bool {
        has_avx2()
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx512vnni")
    }

    /// Whether the CPU has tiles and the system lets this process use them.
    pub fn has_amx() -> bool {
        static HAS: OnceLock<bool> = OnceLock::new();
        *HAS.get_or_init(|| {
            has_avx512() && has!("avx512bf16") && cpu_has_tiles() && may_use_tiles()
        })
    }

    /// CPUID leaf 7, EDX: AMX-BF16, AMX-TILE and AMX-INT8.
    fn cpu_has_tiles() -> bool {
        const TILES: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        let leaf = std::arch::x86_64::__cpuid_count(7, 0);
        leaf.edx & TILES == TILES
    }

    /// Linux gives the 8 KiB of tile state only to a process that asks for it.
    #[cfg(target_os = "linux")]
    fn may_use_tiles() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
        const TILE_DATA: libc::c_ulong = 18;
        // SAFETY: this call only changes what the kernel lets the process do; it touches no memory.
        let status = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) };
        status == 0
    }

    #[cfg(not(target_os = "linux"))]
    fn may_use_tiles() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
        }
        assert_eq!("mmx".parse::<Isa>(), Err(UnknownIsa("mmx".into())));
    }

    /// A level contains those below it: a machine with tiles has AVX-512, one with that has AVX2.
    #[test]
    fn levels_are_nested_and_the_best_is_detected() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Scalar));
        assert_eq!(available.last(), Some(&Isa::detect()));
        let has = |isa| available.contains(&isa);
        assert!(!has(Isa::Amx) || has(Isa::Avx512));
        assert!(!has(Isa::Avx512) || has(Isa::Avx2));
        assert!(!has(Isa::AvxVnni) || has(Isa::Avx2));
        assert!(!has(Isa::Dotprod) || has(Isa::Neon));
        assert!(!has(Isa::I8mm) || has(Isa::Dotprod));
        assert!(!(has(Isa::Neon) && has(Isa::Avx2)));
    }
}
