//! SentencePiece's table of replaced characters, `precompiled_charsmap`.
//!
//! ```text
//! u32      bytes of the trie
//! u32 …    a double-array trie over UTF-8; its values are places in what follows
//! texts    the replacements, each ended by a zero byte
//! ```
//!
//! At each place of a text, the longest key of the trie that begins there is replaced; where there is none, the character
//! stays. A unit of the trie has the byte that leads to it, whether a key ends there, and the offset of the units after
//! it: `place ^ offset` is the base of its children, `base ^ byte` the place of one. The value of a key that ends at a unit
//! stands at the base of its children.

/// The most bytes of a table. That of NFKC, which most models have, has 240,000.
const MAX_BYTES: usize = 4 << 20;

/// Of a unit: it is a value, and no byte leads to it.
const IS_VALUE: u32 = 1 << 31;
/// Of a unit: a key ends there.
const ENDS_KEY: u32 = 1 << 8;

/// A checked table: no text leads out of it.
#[derive(Debug)]
pub(crate) struct Charsmap {
    units: Vec<u32>,
    replacements: String,
    longest: usize,
}

impl Charsmap {
    /// Reads a table, and checks every unit that a text can lead to.
    pub fn parse(bytes: &[u8]) -> Result<Charsmap, String> {
        if bytes.len() > MAX_BYTES {
            let n_bytes = bytes.len();
            return Err(format!(
                "has {n_bytes} bytes; at most {MAX_BYTES} are accepted"
            ));
        }
        let (trie, replacements) = split(bytes).ok_or("ends inside of its trie")?;
        let replacements = std::str::from_utf8(replacements)
            .map_err(|_| "has replacements that are not UTF-8")?
            .to_string();
        let units = trie
            .as_chunks()
            .0
            .iter()
            .map(|unit| u32::from_le_bytes(*unit));
        let mut charsmap = Charsmap {
            units: units.collect(),
            replacements,
            longest: 0,
        };
        charsmap.longest = charsmap
            .check()
            .ok_or("has a trie that leads out of itself")?;
        Ok(charsmap)
    }

    /// The longest replacement, in bytes.
    pub fn longest_replacement(&self) -> usize {
        self.longest
    }

    /// What the text begins with, in bytes, and what it becomes; `None` where its first character stays.
    pub fn replace(&self, text: &str) -> Option<(usize, &str)> {
        let mut base = self.base(0)?;
        let mut found = None;
        for (at, byte) in text.bytes().enumerate() {
            let place = base ^ usize::from(byte);
            if byte == 0 || self.unit(place)? & (IS_VALUE | 0xFF) != u32::from(byte) {
                break;
            }
            base = self.base(place)?;
            if self.unit(place)? & ENDS_KEY != 0 && text.is_char_boundary(at + 1) {
                found = Some((at + 1, base));
            }
        }
        let (n_bytes, base) = found?;
        Some((n_bytes, self.replacement(base)?))
    }

    fn unit(&self, place: usize) -> Option<u32> {
        self.units.get(place).copied()
    }

    /// The base of the children of the unit at `place`.
    fn base(&self, place: usize) -> Option<usize> {
        let unit = self.unit(place)?;
        let shift = if unit & 1 << 9 == 0 { 0 } else { 8 };
        Some(place ^ ((unit as usize >> 10) << shift))
    }

    /// The text whose place stands at `base`.
    fn replacement(&self, base: usize) -> Option<&str> {
        let start = self.unit(base)? & !IS_VALUE;
        let rest = self.replacements.get(start as usize..)?;
        rest.split('\0').next()
    }

    /// Checks that each unit, whether a text leads to it or not, has its children inside of the trie, and its replacement
    /// inside of the texts. Returns the length of the longest replacement, or `None` where one lies outside.
    fn check(&self) -> Option<usize> {
        let mut longest = 0;
        self.base(0)?;
        for (place, unit) in self.units.iter().enumerate() {
            // A text leads to the first unit whatever its label.
            if place > 0 && unit & IS_VALUE != 0 {
                continue;
            }
            let base = self.base(place)?;
            // The children of a unit lie in the block of 256 that its base lies in.
            self.unit(base | 0xFF)?;
            if unit & ENDS_KEY != 0 {
                longest = longest.max(self.replacement(base)?.len());
            }
        }
        Some(longest)
    }
}

/// The trie and the replacements.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (n_bytes, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*n_bytes)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::GgufFile;
    use tokenizers::normalizers::Precompiled;

    fn xlm_r() -> Vec<u8> {
        let path = akunu_assets::path("llama-cpp-vocabs", "ggml-vocab-nomic-bert-moe.gguf");
        let file = GgufFile::open(path).expect("a file");
        let bytes = file.metadata().bytes("tokenizer.ggml.precompiled_charsmap");
        bytes.expect("bytes").expect("a table").to_vec()
    }

    /// Every character by itself, as the package `tokenizers` replaces it.
    #[test]
    fn characters_are_replaced_as_the_package_replaces_them() {
        let bytes = xlm_r();
        let (ours, package) = (Charsmap::parse(&bytes), Precompiled::from(&bytes));
        let (ours, package) = (ours.expect("a table"), package.expect("a table"));
        let mut n_replaced = 0;
        for character in '\u{1}'..=char::MAX {
            let text = character.to_string();
            let found = ours.replace(&text);
            assert_eq!(
                found.map(|(_, to)| to),
                package.transform(&text),
                "{text:?}"
            );
            assert!(found.is_none_or(|(n_bytes, _)| n_bytes == text.len()));
            n_replaced += usize::from(found.is_some());
        }
        assert!(n_replaced > 4_000, "{n_replaced}");
        assert_eq!(ours.longest_replacement(), 33, "U+FDFA");
    }

    /// The longest key counts: a letter and its accent, which is a character of its own too.
    #[test]
    fn the_longest_key_is_replaced() {
        let charsmap = Charsmap::parse(&xlm_r()).expect("a table");
        assert_eq!(charsmap.replace("e\u{301}x"), Some((3, "é")));
        assert_eq!(charsmap.replace("ex"), None);
        assert_eq!(charsmap.replace(""), None);
    }

    /// Each unit changed so that it would lead outside.
    #[test]
    fn tables_that_lead_outside_are_refused() {
        let good = xlm_r();
        let trie_bytes = u32::from_le_bytes(*good.first_chunk().expect("a length")) as usize;
        for place in (0..trie_bytes / 4).step_by(97) {
            let mut bad = good.clone();
            bad[4 + 4 * place..][..4].copy_from_slice(&0x7FFF_FDFF_u32.to_le_bytes());
            Charsmap::parse(&bad).expect_err("a unit that leads outside");
        }
        let mut bad = good.clone();
        bad[4..8].copy_from_slice(&IS_VALUE.to_le_bytes());
        Charsmap::parse(&bad).expect_err("a first unit that leads outside, although it is a value");
        for n_bytes in [0, 3, 4, 1_000, trie_bytes] {
            Charsmap::parse(&good[..n_bytes]).expect_err("too short");
        }
        let mut binary = good.clone();
        binary.push(0xFF);
        Charsmap::parse(&binary).expect_err("not UTF-8");
    }
}
