//! The file of a saved session, version 3, or 4 with images.
//!
//! ```text
//! magic, version                  8 + 4 bytes; all numbers are little-endian
//! fingerprint of the model        32
//! identity of its adapters        32: zeros for none
//! format of keys and values       4: 0 for f16, 2 for q8; 1 was q8 when all keys were stored as they are
//! n_tokens, n_cached              4 each
//! the tokens                      4 * n_tokens
//! in version 4: the images        as in images.rs
//! for each attention: k, then v       (slots, n_kv_heads) heads, each its numbers and then, in q8, its scales; the
//!                                 last slots of n_cached: all of them, or the window
//! for each layer with a state     its numbers after n_cached tokens, if there are any
//! SHA-256 of all before           32
//! ```
//!
//! The length of a file follows from its header and the model, and is checked before anything is
//! allocated. Images take what is left of it.

use std::ops::Range;

use akunu_arch as arch;
use akunu_types::KvFormat;

use crate::adapter::Adapters;
use crate::error::SavedSessionError;
use crate::model::Model;

/// What a file begins with. The line feed shows files that were sent as text.
const MAGIC: [u8; 8] = *b"akunuKV\n";
const VERSION: u32 = 3;
/// The same with images.
const WITH_IMAGES: u32 = 4;
/// Keys and values in 8 bits as they were once stored: keys with all that they have in common.
const EARLIER_Q8: u32 = 1;
/// Bytes of the checksum.
pub(super) const CHECKSUM: usize = 32;

/// The beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub fingerprint: [u8; 32],
    /// A hash that identifies the adapters.
    pub adapters: [u8; 32],
    pub kv: KvFormat,
    pub n_tokens: u32,
    pub n_cached: u32,
    /// Bytes of the images; 0 without any.
    pub image_bytes: u64,
}

impl Header {
    pub const BYTES: usize = 8 + 4 + 32 + 32 + 3 * 4;

    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let version = match self.image_bytes {
            0 => VERSION,
            _ => WITH_IMAGES,
        };
        bytes.extend(version.to_le_bytes());
        bytes.extend(self.fingerprint);
        bytes.extend(self.adapters);
        for number in [self.kv.code(), self.n_tokens, self.n_cached] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// Reads the header of a file of `len` bytes that is for `model` with these adapters.
    pub fn parse(
        bytes: &[u8; Header::BYTES],
        len: u64,
        model: &Model,
        adapters: &Adapters,
    ) -> Result<Header, SavedSessionError> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..8] != MAGIC {
            return Err(SavedSessionError::Foreign);
        }
        if ![VERSION, WITH_IMAGES].contains(&word(8)) {
            return Err(SavedSessionError::Version {
                found: word(8),
                wanted: VERSION,
            });
        }
        if bytes[12..44] != model.fingerprint() {
            return Err(SavedSessionError::OtherModel);
        }
        if bytes[44..76] != adapters.identity() {
            return Err(SavedSessionError::OtherAdapters);
        }
        let wanted = model.kv_format();
        let found = KvFormat::ALL.into_iter().find(|kv| kv.code() == word(76));
        let Some(found) = found else {
            return Err(match word(76) {
                EARLIER_Q8 => SavedSessionError::EarlierFormat,
                unknown => SavedSessionError::Damaged {
                    why: format!("it has keys and values of an unknown format, {unknown}"),
                },
            });
        };
        if found != wanted {
            return Err(SavedSessionError::OtherFormat { found, wanted });
        }
        let mut header = Header {
            fingerprint: model.fingerprint(),
            adapters: adapters.identity(),
            kv: found,
            n_tokens: word(80),
            n_cached: word(84),
            image_bytes: 0,
        };
        if word(8) == WITH_IMAGES {
            // A file that is too short is refused below.
            header.image_bytes = len.saturating_sub(header.file_bytes(model.config())).max(1);
        }
        header.check(len, model.config())?;
        Ok(header)
    }

    fn check(&self, len: u64, model: &arch::Model) -> Result<(), SavedSessionError> {
        let damaged = |why: String| Err(SavedSessionError::Damaged { why });
        let (n_tokens, n_cached) = (self.n_tokens, self.n_cached);
        if n_cached > n_tokens {
            return damaged(format!("it has {n_cached} keys for {n_tokens} tokens"));
        }
        let wanted = self.file_bytes(model);
        if len != wanted {
            return damaged(format!("it has {len} bytes where {wanted} are wanted"));
        }
        Ok(())
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self, model: &arch::Model) -> u64 {
        let of_layer = |attention: &arch::Attention| {
            let slot = 2 * attention.slot_bytes(self.kv) as u64;
            slot * self.slots(attention.window).len() as u64
        };
        let layers: u64 = model.cached_attention().map(of_layer).sum();
        let states = match self.n_cached {
            0 => 0,
            _ => model.state_bytes(),
        };
        let tokens = 4 * u64::from(self.n_tokens);
        let rest = Header::BYTES as u64 + CHECKSUM as u64;
        tokens + self.image_bytes + layers + states + rest
    }

    /// The slots of a layer with this window that are stored.
    pub fn slots(&self, window: Option<u32>) -> Range<usize> {
        let window = window.unwrap_or(u32::MAX);
        self.n_cached.saturating_sub(window) as usize..self.n_cached as usize
    }
}
