//! The pre-tokenizers: how a byte-level BPE vocabulary cuts text before it merges.
//!
//! `tokenizer.ggml.pre` names a row of `TABLE`. Its patterns are applied one after the other: each
//! cuts every piece of the former into its matches and what lies between them. BPE then merges inside
//! of a piece, never across two.
//!
//! The patterns are those of each model's `tokenizer.json`, with two rewritings that change nothing:
//! `(?i:'s|…)` is spelt out in ASCII, and a trailing `|\s+` may be missing, because what a pattern
//! does not match becomes a piece anyway.

/// How text is cut, and what the name implies besides.
#[derive(Debug, PartialEq, Eq)]
pub struct PreTokenizer {
    /// The names that files use.
    pub names: &'static [&'static str],
    /// Regular expressions, applied in order.
    pub patterns: &'static [&'static str],
    /// A piece that is a token as a whole is not merged from its bytes.
    pub ignore_merges: bool,
    /// Whether a sequence begins with BOS when the file does not say.
    pub add_bos: bool,
}

/// GPT-2: contractions, words, numbers and punctuation with the space before them, runs of spaces.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Llama 3, which is GPT-4's: any sign may stand before a word, numbers go by three digits.
const LLAMA3: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Qwen 2: Llama 3's with single digits.
const QWEN2: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Qwen 3.5: Qwen 2's, and accents belong to the letter that they stand on.
const QWEN35: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]",
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// GPT-4o: words also end where upper case begins.
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Tekken (Mistral NeMo): GPT-4o's without contractions and with single digits.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// DeepSeek V3, after numbers and CJK were cut off.
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The letters of the scripts that have two cases, as DeepSeek LLM lists them.
const DEEPSEEK_LLM_WORD: &str = concat!(
    r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}",
    r"\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}",
    r"\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}",
    r"\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}",
    r"\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}",
    r"\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}",
    r"\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}",
    r"\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}",
    r"\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}",
    r"\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}",
    r"\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}",
    r"\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}",
    r"\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}",
    r"\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}",
    r"\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}",
    r"\x{1E900}-\x{1E943}]+"
);

/// Han, kana and Hangul as the first two DeepSeek models list them.
const DEEPSEEK_CJK: &str = r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+";

/// BLOOM: words up to the next sign, with the space before them.
const BLOOM: &str = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+";

/// Whole lines: SentencePiece-like BPE merges across words, only line breaks stand alone.
const LINES: &str = r"[^\n]+|\n+";

const fn row(names: &'static [&'static str], patterns: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer {
        names,
        patterns,
        ignore_merges: false,
        add_bos: false,
    }
}

impl PreTokenizer {
    const fn ignoring_merges(self) -> PreTokenizer {
        PreTokenizer {
            ignore_merges: true,
            ..self
        }
    }

    const fn with_bos(self) -> PreTokenizer {
        PreTokenizer {
            add_bos: true,
            ..self
        }
    }
}

/// For files that name none, or `default`: what llama.cpp does with them. Such files are old; the
/// tokens of numbers and punctuation may differ from what the model was trained on.
static DEFAULT: PreTokenizer = row(
    &["default"],
    &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
);

/// Every pre-tokenizer that we know, by the names of `tokenizer.ggml.pre`.
static TABLE: &[PreTokenizer] = &[
    row(
        &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
        ],
        &[GPT2],
    ),
    row(
        &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        &[LLAMA3],
    )
    .ignoring_merges()
    .with_bos(),
    row(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA3]),
    row(&["glm4", "glm5"], &[LLAMA3]).ignoring_merges(),
    row(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "kormo",
            "f2llmv2",
            "grok-2",
        ],
        &[QWEN2],
    ),
    row(&["qwen35"], &[QWEN35]),
    row(
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[r"\p{N}", GPT2],
    ),
    row(
        &["falcon"],
        &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    ),
    row(
        &["deepseek-llm"],
        &[
            r"[\r\n]",
            DEEPSEEK_LLM_WORD,
            r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+",
            r"\s+$",
            DEEPSEEK_CJK,
            r"\p{N}+",
        ],
    ),
    row(
        &["deepseek-coder"],
        &[
            r"[\r\n]",
            r"\s?\p{L}+",
            r"\s?\p{P}+",
            DEEPSEEK_CJK,
            r"\p{N}",
        ],
    ),
    row(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        &[
            r"\p{N}{1,3}",
            r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+",
            DEEPSEEK3,
        ],
    ),
    row(&["gpt-4o", "llama4", "kanana2", "minimax-m2"], &[GPT4O]),
    row(&["tekken"], &[TEKKEN]).ignoring_merges().with_bos(),
    row(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]),
    row(&["viking"], &[BLOOM, r"\p{N}"]),
];

/// The pre-tokenizer of Gemma 4, which its vocabulary's model name implies.
pub(crate) static GEMMA4: PreTokenizer = row(&["gemma4"], &[LINES]).with_bos();

/// The pre-tokenizer with this name; none is `default`.
pub fn find(name: Option<&str>) -> Option<&'static PreTokenizer> {
    let Some(name) = name.filter(|name| !name.is_empty() && *name != "default") else {
        return Some(&DEFAULT);
    };
    TABLE.iter().find(|row| row.names.contains(&name))
}

/// Every name that [`find`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    let rows = std::iter::once(&DEFAULT).chain(TABLE);
    rows.flat_map(|row| row.names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    /// Breaks when a pattern of the table is wrong, or is one that only backtracking could match.
    #[test]
    fn every_pattern_is_an_automaton() {
        let rows = TABLE.iter().chain([&DEFAULT, &GEMMA4]);
        for pattern in rows.flat_map(|row| row.patterns) {
            Pattern::new(pattern).expect(pattern);
        }
    }

    /// A name in two rows would make the second one unreachable.
    #[test]
    fn every_name_stands_once() {
        let mut all: Vec<&str> = names().collect();
        let n = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n);
    }

    #[test]
    fn absence_means_default_and_nonsense_is_not_found() {
        assert_eq!(find(None), Some(&DEFAULT));
        assert_eq!(find(Some("")), Some(&DEFAULT));
        assert_eq!(find(Some("default")), Some(&DEFAULT));
        assert_eq!(find(Some("no-such-pre")), None);
    }
}
