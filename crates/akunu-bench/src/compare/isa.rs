//! Instruction sets that both programs can be limited to.

/// Instructions that a build is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Isa {
    /// AVX2 with FMA and F16C
    Avx2,
    /// AVX2 with AVX-VNNI
    #[value(name = "avxvnni")]
    AvxVnni,
    /// AVX-512, with what else of it the processor has
    Avx512,
    /// AMX; llama.cpp keeps to AVX-512 here, since its AMX code dies on the machines that we have
    Amx,
}

const AVX2_BUILD: &str = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON \
    -DGGML_BMI2=ON";

/// Parts of AVX-512 by the system's name, and the option that makes llama.cpp use them.
const AVX512_PARTS: [(&str, &str); 4] = [
    ("avx512f", "-DGGML_AVX512=ON"),
    ("avx512_vbmi", "-DGGML_AVX512_VBMI=ON"),
    ("avx512_vnni", "-DGGML_AVX512_VNNI=ON"),
    ("avx512_bf16", "-DGGML_AVX512_BF16=ON"),
];

impl Isa {
    /// As `akunu-cli --isa` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avxvnni",
            Isa::Avx512 => "avx512",
            Isa::Amx => "amx",
        }
    }

    /// The environment of its build: one for AVX-512 and AMX.
    pub fn environment(self) -> &'static str {
        match self {
            Isa::Avx2 => "target/peer-avx2",
            Isa::AvxVnni => "target/peer-avxvnni",
            Isa::Avx512 | Isa::Amx => "target/peer-avx512",
        }
    }

    /// The options of CMake, for a processor with these features.
    pub fn options(self, features: &str) -> String {
        let has = |name: &str| features.split_whitespace().any(|feature| feature == name);
        let parts = AVX512_PARTS.iter().filter(|(name, _)| has(name));
        let parts = parts.map(|(_, option)| format!(" {option}"));
        match self {
            Isa::Avx2 => AVX2_BUILD.to_string(),
            Isa::AvxVnni => AVX2_BUILD.to_string() + " -DGGML_AVX_VNNI=ON",
            Isa::Avx512 | Isa::Amx => AVX2_BUILD.to_string() + &parts.collect::<String>(),
        }
    }
}

/// The build to choose by hand: where there is AMX, a build for the whole processor dies.
pub fn fastest(features: &str) -> Option<Isa> {
    let has_all = AVX512_PARTS.iter().all(|(name, _)| features.contains(name));
    has_all.then_some(Isa::Avx512)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a build uses instructions that the processor lacks, or more than its level.
    #[test]
    fn a_build_has_the_instructions_of_its_level_and_processor() {
        let cascade_lake = "flags : avx2 fma f16c avx512f avx512bw avx512_vnni";
        let avx2 = Isa::Avx2.options(cascade_lake);
        assert!(
            avx2.contains("GGML_AVX2=ON") && !avx2.contains("AVX512"),
            "{avx2}"
        );
        let avx_vnni = Isa::AvxVnni.options("flags : avx2 fma f16c avx_vnni");
        assert!(
            avx_vnni.contains("GGML_AVX2=ON") && avx_vnni.contains("GGML_AVX_VNNI=ON"),
            "{avx_vnni}"
        );
        assert!(!avx_vnni.contains("AVX512"), "{avx_vnni}");
        let avx512 = Isa::Avx512.options(cascade_lake);
        assert!(avx512.contains("GGML_AVX512=ON"), "{avx512}");
        assert!(avx512.contains("GGML_AVX512_VNNI=ON"), "{avx512}");
        assert!(
            !avx512.contains("BF16") && !avx512.contains("VBMI"),
            "{avx512}"
        );
        assert_eq!(fastest(cascade_lake), None);
        let more = format!("{cascade_lake} avx512_vbmi avx512_bf16 amx_tile");
        assert_eq!(fastest(&more), Some(Isa::Avx512));
        assert!(Isa::Amx.options(&more).contains("BF16=ON"));
    }
}
