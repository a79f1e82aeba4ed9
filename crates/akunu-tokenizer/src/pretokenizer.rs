//! The pre-tokenizers: how a byte-level BPE vocabulary cuts text before it merges.
//!
//! `tokenizer.ggml.pre` names a row of [`TABLE`]. Its patterns are applied one after the other: each
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
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ",
    r"Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄ",
    r"Ⰰ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);

/// Han, kana and Hangul as the first two DeepSeek models list them.
const DEEPSEEK_CJK: &str = r"[一-龥ࠀ-一가-퟿]+";

/// BLOOM: words up to the next sign, with the space before them.
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";

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
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
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
        &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3],
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
    use tokenizers::utils::SysRegex;

    #[test]
    fn every_pattern_compiles() {
        let rows = TABLE.iter().chain([&DEFAULT, &GEMMA4]);
        for pattern in rows.flat_map(|row| row.patterns) {
            SysRegex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
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
