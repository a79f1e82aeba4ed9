//! Saving a session to a file and restoring it.
//!
//! Everything is read from the device before the file is opened, so that the device does not wait for the disk.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use akunu_arch::Attention;
use akunu_types::KvFormat;
use sha2::{Digest, Sha256};

use super::file::{CHECKSUM, Header};
use super::images;
use super::state::Session;
use crate::error::{EngineError, SavedSessionError};
use crate::replace_file::replace_file;
use crate::runtime::PAGE;

impl Session {
    /// Saves the tokens and what the pages know of them. A file that is there already is replaced
    /// when the new one is complete.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), EngineError> {
        let path = path.as_ref();
        let bytes = self.file_bytes().map_err(|error| error.of(path))?;
        replace_file(path, &bytes).map_err(|error| SavedSessionError::from(error).of(path))
    }

    /// Makes a saved session the whole content of this one, which may have another context size. A
    /// file that is refused or cannot be read leaves the session as it was; if the device fails, the
    /// session is empty.
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<(), EngineError> {
        let path = path.as_ref();
        let restored = self
            .read_file(path)
            .and_then(|(header, bytes)| self.set(&header, &bytes));
        restored.map_err(|error| error.of(path))
    }

    /// A whole file.
    fn file_bytes(&mut self) -> Result<Vec<u8>, SavedSessionError> {
        let fingerprint = self.model.fingerprint();
        let mut runtime = self.model.runtime();
        let sequence = &mut self.sequence;
        let content = sequence.content();
        let images = images::to_bytes(&content.images);
        // Pages that cannot be gone on from are not worth keeping.
        let n_cached = runtime.returnable(sequence, sequence.common(&content));
        let config = self.model.config();
        let header = Header {
            fingerprint,
            adapters: sequence.adapters().identity(),
            kv: self.model.kv_format(),
            n_tokens: sequence.tokens.len() as u32,
            n_cached: n_cached as u32,
            image_bytes: images.len() as u64,
        };
        let mut bytes = Vec::with_capacity(header.file_bytes(config) as usize);
        bytes.extend(header.to_bytes());
        bytes.extend(sequence.tokens.iter().flat_map(|token| token.to_le_bytes()));
        bytes.extend(images);
        for (layer, attention) in config.cached_attention().enumerate() {
            let heads = Heads::of(attention, header.kv);
            let slots = header.slots(attention.window);
            for which in [0, 1] {
                for index in pages(&slots) {
                    let page = runtime.read_page(sequence, layer, which, index)?;
                    heads.take_slots(&page, in_page(&slots, index), &mut bytes);
                }
            }
        }
        bytes.extend(runtime.read_states(sequence, n_cached)?);
        drop(runtime);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        Ok(bytes)
    }

    /// The header of a file and all of its bytes, which are whole and for this model.
    fn read_file(&self, path: &Path) -> Result<(Header, Vec<u8>), SavedSessionError> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut start = [0; Header::BYTES];
        if len < start.len() as u64 {
            return Err(SavedSessionError::Foreign);
        }
        file.read_exact(&mut start)?;
        let header = Header::parse(&start, len, &self.model, self.sequence.adapters())?;
        // The token that was chosen last needs no place in the pages yet.
        let needed = header.n_cached.max(header.n_tokens.saturating_sub(1));
        let context = self.context();
        if needed > context {
            return Err(SavedSessionError::TooLong { needed, context });
        }
        let too_large = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let rest = usize::try_from(len - Header::BYTES as u64).map_err(|_| too_large())?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(Header::BYTES + rest)
            .map_err(|_| too_large())?;
        bytes.extend(start);
        bytes.resize(Header::BYTES + rest, 0);
        file.read_exact(&mut bytes[Header::BYTES..])?;
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if Sha256::digest(content)[..] != *checksum {
            let why = "its checksum is another".into();
            return Err(SavedSessionError::Damaged { why });
        }
        bytes.truncate(bytes.len() - CHECKSUM);
        Ok((header, bytes))
    }

    /// Takes over the content of a file.
    fn set(&mut self, header: &Header, bytes: &[u8]) -> Result<(), SavedSessionError> {
        let (tokens, values) = bytes[Header::BYTES..].split_at(4 * header.n_tokens as usize);
        let words = tokens.chunks_exact(4);
        let tokens: Vec<u32> = words.map(bytemuck::pod_read_unaligned).collect();
        let vocab_size = self.model.config().vocab_size;
        if let Some(token) = tokens.iter().find(|&&token| token >= vocab_size) {
            return Err(SavedSessionError::Damaged {
                why: format!("token {token} is beyond the vocabulary of {vocab_size}"),
            });
        }
        let (images, values) = values.split_at(header.image_bytes as usize);
        let images = images::from_bytes(images, self.model.config(), tokens.len())?;
        // From here on the pages are overwritten, and no longer those of the tokens there were.
        self.clear();
        let written = self.write_pages(header, values);
        // What comes from a file is nobody else's beginning.
        let cached = if written.is_ok() {
            header.n_cached as usize
        } else {
            0
        };
        let tokens = if written.is_ok() { tokens } else { Vec::new() };
        self.sequence.replace(tokens, cached, 0);
        if written.is_ok() {
            self.sequence.images = images;
        }
        let mut windows = self.model.config().windows();
        let is_partial = windows.any(|window| header.slots(window).start > 0);
        self.sequence.floor = if is_partial { cached } else { 0 };
        if written.is_err() {
            self.model.runtime().free(&mut self.sequence);
        }
        written
    }

    fn write_pages(&mut self, header: &Header, values: &[u8]) -> Result<(), SavedSessionError> {
        let mut runtime = self.model.runtime();
        let sequence = &mut self.sequence;
        runtime.reserve(sequence, header.n_cached as usize)?;
        let config = self.model.config();
        let mut rest = values;
        for (layer, attention) in config.cached_attention().enumerate() {
            let heads = Heads::of(attention, header.kv);
            let slots = header.slots(attention.window);
            for which in [0, 1] {
                for index in pages(&slots) {
                    let mut page = vec![0; heads.page_bytes()];
                    rest = heads.put_slots(rest, in_page(&slots, index), &mut page);
                    runtime.write_page(sequence, layer, which, index, &page)?;
                }
            }
        }
        runtime.pass_windows(sequence, header.n_cached as usize);
        runtime.write_states(sequence, header.n_cached as usize, rest)?;
        Ok(())
    }
}

/// The pages that hold these slots.
fn pages(slots: &Range<usize>) -> Range<usize> {
    match slots.is_empty() {
        true => 0..0,
        false => slots.start / PAGE..slots.end.div_ceil(PAGE),
    }
}

/// Those of the slots that lie in a page, counted within it.
fn in_page(slots: &Range<usize>, index: usize) -> Range<usize> {
    let first = index * PAGE;
    slots.start.max(first) - first..slots.end.min(first + PAGE) - first
}

/// The heads of a page, each with the numbers of all slots and then their scales, if there are any. A file has
/// (slots, n_kv_heads) heads, each with its numbers and its scales.
struct Heads {
    n_heads: usize,
    /// Bytes of the numbers of a head at one slot.
    numbers: usize,
    /// Bytes of its scales.
    scales: usize,
}

impl Heads {
    fn of(attention: &Attention, kv: KvFormat) -> Heads {
        let numbers = kv.number_bytes(attention.head_dim);
        Heads {
            n_heads: attention.kv_heads as usize,
            numbers,
            scales: kv.bytes_per_slot(attention.head_dim) - numbers,
        }
    }

    fn page_bytes(&self) -> usize {
        self.n_heads * PAGE * (self.numbers + self.scales)
    }

    /// The parts of a page that hold some slots: of each slot, of each of its heads, the numbers and then the scales.
    fn places(&self, slots: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let of_slot = 2 * self.n_heads;
        (slots.start * of_slot..slots.end * of_slot).map(move |at| {
            let (slot, head) = (at / of_slot, at % of_slot / 2);
            let first = head * PAGE * (self.numbers + self.scales);
            let (begin, bytes) = match at % 2 {
                0 => (first, self.numbers),
                _ => (first + PAGE * self.numbers, self.scales),
            };
            begin + slot * bytes..begin + (slot + 1) * bytes
        })
    }

    fn take_slots(&self, page: &[u8], slots: Range<usize>, into: &mut Vec<u8>) {
        for place in self.places(slots) {
            into.extend_from_slice(&page[place]);
        }
    }

    /// Fills slots of a page from the front of `from`; returns what is left.
    fn put_slots<'a>(&self, mut from: &'a [u8], slots: Range<usize>, page: &mut [u8]) -> &'a [u8] {
        for place in self.places(slots) {
            let (values, rest) = from.split_at(place.len());
            page[place].copy_from_slice(values);
            from = rest;
        }
        from
    }
}
