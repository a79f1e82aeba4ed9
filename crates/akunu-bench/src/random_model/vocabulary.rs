//! A vocabulary of any size that every reader of byte-level BPE takes.
//!
//! The 256 bytes, two merges, the control tokens that begin and end a text, and unique names for all
//! other ids, which no text becomes.

use akunu_gguf::GgufHeader;

/// Kinds of tokens, with GGUF's numbers.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

const MERGES: [(&str, &str); 2] = [("h", "e"), ("Ġ", "t")];
const CONTROLS: [&str; 2] = ["<|begin|>", "<|end|>"];

/// Writes a vocabulary of `n` tokens into a header.
pub fn describe(n: u64, header: &mut GgufHeader) {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_sign(byte).to_string()).collect();
    tokens.extend(MERGES.map(|(left, right)| format!("{left}{right}")));
    let first_control = tokens.len();
    tokens.extend(CONTROLS.map(str::to_string));
    let named = tokens.len() as u64;
    tokens.extend((named..n).map(|id| format!("<random-{id}>")));
    let kinds: Vec<i32> = (0..tokens.len())
        .map(|id| match id.checked_sub(first_control) {
            Some(control) if control < CONTROLS.len() => CONTROL,
            _ => NORMAL,
        })
        .collect();
    header.set("tokenizer.ggml.model", "gpt2");
    header.set("tokenizer.ggml.pre", "gpt-2");
    header.set("tokenizer.ggml.tokens", &tokens);
    header.set("tokenizer.ggml.token_type", &kinds);
    let merges = MERGES.map(|(left, right)| format!("{left} {right}"));
    header.set("tokenizer.ggml.merges", &merges);
    header.set("tokenizer.ggml.bos_token_id", &(first_control as u32));
    header.set("tokenizer.ggml.eos_token_id", &(first_control as u32 + 1));
}

/// The sign that stands for a byte in GPT-2's vocabularies: itself where it is printable, and the next
/// free sign from 256 on where it is not.
fn byte_sign(byte: u8) -> char {
    let is_printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|b| !is_printable(*b)).count() as u32;
    char::from_u32(256 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Space is Ġ and a line's end Ċ in every byte-level vocabulary; all signs differ.
    #[test]
    fn bytes_have_the_signs_of_gpt2() {
        assert_eq!(byte_sign(b' '), 'Ġ');
        assert_eq!(byte_sign(b'\n'), 'Ċ');
        assert_eq!(byte_sign(b'a'), 'a');
        assert_eq!(byte_sign(0xAD), 'Ń');
        let signs: HashSet<char> = (0..=255).map(byte_sign).collect();
        assert_eq!(signs.len(), 256);
    }
}
