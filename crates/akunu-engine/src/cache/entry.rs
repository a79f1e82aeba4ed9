//! The file of a page or a state.
//!
//! ```text
//! magic, version               8 + 4 bytes; all numbers are little-endian
//! format of keys and values    4
//! fingerprint of the model     32
//! kind of layers               4: all bits for a state
//! name                         16
//! the numbers                  as many bytes as the model says
//! SHA-256 of all before        32
//! ```

use std::io::ErrorKind;
use std::path::Path;

use akunu_types::KvFormat;
use sha2::{Digest, Sha256};

use crate::pool::Name;

/// What a file begins with. The line feed shows files that were sent as text.
const MAGIC: [u8; 8] = *b"akunuPS\n";
/// The version of the format. Its folders have it in their names, too.
pub(super) const VERSION: u32 = 1;
const CHECKSUM: usize = 32;
const HEADER: usize = 8 + 4 + 4 + 32 + 4 + 16;

/// Something that has a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// A page of a kind of layers.
    Page(u32, Name),
    /// A state.
    State(Name),
}

/// Of which model a file must be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub fingerprint: [u8; 32],
    pub kv: KvFormat,
}

/// What a file holds.
pub(super) enum Content {
    Whole(Vec<u8>),
    Missing,
    /// The reason.
    Unusable(String),
}

impl Identity {
    fn header(&self, part: Part) -> Vec<u8> {
        let (kind, name) = match part {
            Part::Page(kind, name) => (kind, name),
            Part::State(name) => (u32::MAX, name),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.kv.code().to_le_bytes());
        bytes.extend(self.fingerprint);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(name);
        bytes
    }

    /// A whole file.
    pub fn file(&self, part: Part, numbers: &[u8]) -> Vec<u8> {
        let mut bytes = self.header(part);
        bytes.reserve_exact(numbers.len() + CHECKSUM);
        bytes.extend(numbers);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// The numbers of a file, which must be `len` bytes.
    pub fn read(&self, path: &Path, part: Part, len: usize) -> Content {
        // The length is checked first: a file of another size is not read.
        let found = std::fs::metadata(path).map(|data| data.len());
        let wanted = (HEADER + len + CHECKSUM) as u64;
        let bytes = match found {
            Ok(found) if found == wanted => std::fs::read(path),
            Ok(found) => {
                let why = format!("it has {found} bytes where {wanted} are wanted");
                return Content::Unusable(why);
            }
            Err(error) => Err(error),
        };
        let mut bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Content::Missing,
            Err(error) => return Content::Unusable(error.to_string()),
        };
        let unusable = |why: &str| Content::Unusable(why.to_string());
        // Another program may have replaced it since its length was asked for.
        if bytes.len() as u64 != wanted || bytes[..8] != MAGIC {
            return unusable("it is no file of a cache");
        }
        if bytes[8..12] != VERSION.to_le_bytes() {
            return unusable("another version of Akunu has written it");
        }
        if bytes[..HEADER] != self.header(part)[..] {
            return unusable("it belongs to another model or other tokens");
        }
        let content = bytes.len() - CHECKSUM;
        if Sha256::digest(&bytes[..content])[..] != bytes[content..] {
            return unusable("it is damaged");
        }
        bytes.truncate(content);
        bytes.drain(..HEADER);
        Content::Whole(bytes)
    }
}
