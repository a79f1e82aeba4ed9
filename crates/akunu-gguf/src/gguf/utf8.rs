//! Whether short strings are UTF-8, many at a time.
//!
//! A vocabulary is 100,000s of strings of some eight bytes, and checking them is most of what opening a file
//! takes. A string of at most 15 bytes fits into one number of 16, in which all of its bytes are checked at
//! once:
//!
//! ```text
//! 0xxxxxxx alone                         110xxxxx, but not C0 and C1, before one 10xxxxxx
//!                                        1110xxxx, but not E0 and ED, before two
//! ```
//!
//! Characters that begin with E0, ED or F0 to F4 allow only some second bytes; strings with one of them, and
//! long ones, are left to the standard library.

/// The most bytes of a string that [`is_simple`] takes. A sixteenth byte stays zero: it ends the string.
pub(crate) const MAX_BYTES: usize = 15;

/// A one in each byte.
const ONES: u128 = u128::MAX / 0xFF;
/// The highest bit of each byte.
const HIGH: u128 = ONES << 7;

/// Whether the first `length` bytes are UTF-8 for sure: no byte of it needs a closer look.
#[inline]
pub(crate) fn is_simple(bytes: [u8; 16], length: usize) -> bool {
    debug_assert!(length <= MAX_BYTES);
    let word = u128::from_le_bytes(bytes) & ((1 << (8 * length)) - 1);
    let high = word & HIGH;
    if high == 0 {
        return true;
    }
    let (second, third, fourth) = (word << 1, word << 2, word << 3);
    let begins = high & second;
    let begins_three = begins & third;
    let begins_four = begins_three & fourth;
    let begins_two = begins & !third;
    let follows = high & !second;
    let expected = begins << 8 | begins_three << 16;
    let needs_a_look = begins_two & where_zero(word & (0x1E * ONES))
        | begins_three & where_zero(word & (0x0F * ONES))
        | begins_three & where_zero((word & (0x0F * ONES)) ^ (0x0D * ONES));
    follows == expected && begins_four | needs_a_look == 0
}

/// The highest bit of each byte that is zero; bytes are below 0x80.
fn where_zero(word: u128) -> u128 {
    !(word + 0x7F * ONES) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &[u8]) -> bool {
        let mut bytes = [0xBF; 16];
        bytes[..text.len()].copy_from_slice(text);
        is_simple(bytes, text.len())
    }

    /// Fails when a string is let through that is not UTF-8, or one sent to the standard library without
    /// need. What follows the string in the file must not count.
    #[test]
    fn every_string_of_three_bytes_is_judged_rightly() {
        for code in 0..1u32 << 24 {
            let [a, b, c, _] = code.to_le_bytes();
            let text = [a, b, c];
            let is_valid = std::str::from_utf8(&text).is_ok();
            let is_special = text.iter().any(|byte| matches!(byte, 0xE0 | 0xED | 0xF0..));
            let found = check(&text);
            assert_eq!(found, is_valid && !is_special, "{text:02x?}");
        }
    }

    #[test]
    fn strings_end_where_they_end() {
        for length in 0..=MAX_BYTES {
            let text = "é".repeat(8);
            let cut = &text.as_bytes()[..length];
            assert_eq!(check(cut), length % 2 == 0, "{length}");
            let text = "字".repeat(6);
            let cut = &text.as_bytes()[..length];
            assert_eq!(check(cut), length % 3 == 0, "{length}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn what_passes_is_utf8(text: String, at in 0..16usize, byte: u8, change: bool) {
            let mut bytes = text.into_bytes();
            bytes.truncate(MAX_BYTES);
            if let Some(place) = bytes.get_mut(at).filter(|_| change) {
                *place = byte;
            }
            if check(&bytes) {
                prop_assert!(std::str::from_utf8(&bytes).is_ok());
            }
        }
    }
}
