//! Saving a session to a file and restoring it.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use akunu_kernels::Buffer;

use super::Session;
use super::content::Content;
use super::file::{Header, SavedSessionError};
use crate::error::EngineError;
use crate::memory::LayerCache;

impl Session<'_> {
    /// Saves the tokens and what the cache knows of them. A file that is there already is replaced
    /// when the new one is complete.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), EngineError> {
        let path = path.as_ref();
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let saved = self.write_file(&part);
        let saved = saved.and_then(|()| Ok(fs::rename(&part, path)?));
        if saved.is_err() {
            // There may be none; the first error is the one to tell.
            let _ = fs::remove_file(&part);
        }
        saved.map_err(|error| error.of(path))
    }

    /// Makes a saved session the whole content of this one, which may have another context size. A
    /// file that is refused or cannot be read leaves the session as it was; if the device fails, the
    /// session is empty.
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<(), EngineError> {
        let path = path.as_ref();
        self.read_file(path).map_err(|error| error.of(path))
    }

    fn write_file(&self, path: &Path) -> Result<(), SavedSessionError> {
        let content = &self.content;
        // A cache that cannot go on from its last token is not worth keeping.
        let n_cached = self.returnable(content.cached);
        let header = Header {
            fingerprint: *self.model.fingerprint(),
            n_tokens: content.tokens.len() as u32,
            n_cached: n_cached as u32,
            has_logits: content.has_logits && n_cached == content.tokens.len(),
        };
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&header.to_bytes())?;
        for token in &content.tokens {
            out.write_all(&token.to_le_bytes())?;
        }
        let device = self.model.device();
        self.each_head(&header, |buffer, bytes| {
            let mut values = vec![0; bytes.len()];
            device.read(buffer, bytes.start, &mut values)?;
            Ok(out.write_all(&values)?)
        })?;
        if header.has_logits {
            let mut logits = vec![0; 4 * self.model.config().vocab_size as usize];
            device.read(self.memory.logits, 0, &mut logits)?;
            out.write_all(&logits)?;
        }
        out.flush()?;
        Ok(out.get_ref().sync_all()?)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), SavedSessionError> {
        let mut file = BufReader::new(File::open(path)?);
        let header = self.read_header(&mut file)?;
        let tokens = self.read_tokens(&mut file, &header)?;
        let values = self.read_values(&mut file, &header)?;
        // From here on the cache is overwritten, and no longer that of the tokens there were.
        self.clear();
        self.write_values(&header, &tokens, &values)?;
        let mut layers = self.model.config().layers.iter();
        let is_partial = layers.any(|layer| header.n_positions(layer) < header.n_cached);
        let cached = header.n_cached as usize;
        self.content = Content {
            tokens,
            cached,
            written: cached,
            floor: if is_partial { cached } else { 0 },
            has_logits: header.has_logits,
        };
        Ok(())
    }

    fn read_header(&self, file: &mut BufReader<File>) -> Result<Header, SavedSessionError> {
        let len = file.get_ref().metadata()?.len();
        let mut bytes = [0; Header::BYTES];
        if len < bytes.len() as u64 {
            return Err(SavedSessionError::Foreign);
        }
        file.read_exact(&mut bytes)?;
        let (model, context) = (self.model, self.sizes.context);
        let header = Header::parse(&bytes, len, model.fingerprint(), model.config())?;
        // The token that was chosen last needs no place in the cache yet.
        let needed = header.n_cached.max(header.n_tokens.saturating_sub(1));
        if needed > context {
            return Err(SavedSessionError::TooLong { needed, context });
        }
        Ok(header)
    }

    fn read_tokens(
        &self,
        file: &mut BufReader<File>,
        header: &Header,
    ) -> Result<Vec<u32>, SavedSessionError> {
        let mut tokens = vec![0u32; header.n_tokens as usize];
        file.read_exact(bytemuck::cast_slice_mut(&mut tokens))?;
        let vocab_size = self.model.config().vocab_size;
        match tokens.iter().find(|&&token| token >= vocab_size) {
            None => Ok(tokens),
            Some(token) => Err(SavedSessionError::Damaged {
                why: format!("token {token} is beyond the vocabulary of {vocab_size}"),
            }),
        }
    }

    /// All that follows the tokens: keys, values and logits. The whole of it is read before any of it is
    /// used, so that a file that cannot be read to its end changes nothing.
    fn read_values(
        &self,
        file: &mut BufReader<File>,
        header: &Header,
    ) -> Result<Vec<u8>, SavedSessionError> {
        let before = Header::BYTES as u64 + 4 * u64::from(header.n_tokens);
        let len = header.file_bytes(self.model.config()) - before;
        let too_large = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| too_large())?;
        values.resize(len, 0);
        file.read_exact(&mut values)?;
        Ok(values)
    }

    /// Puts what a file holds into the device's memory.
    fn write_values(
        &self,
        header: &Header,
        tokens: &[u32],
        values: &[u8],
    ) -> Result<(), SavedSessionError> {
        let mut device = self.model.device();
        device.write(self.memory.history, 0, bytemuck::cast_slice(tokens))?;
        let mut rest = values;
        self.each_head(header, |buffer, bytes| {
            let (head, after) = rest.split_at(bytes.len());
            rest = after;
            Ok(device.write(buffer, bytes.start, head)?)
        })?;
        if header.has_logits {
            device.write(self.memory.logits, 0, rest)?;
        }
        Ok(())
    }

    /// Calls `act` with each run of bytes of the cache that a file holds, in its order.
    fn each_head(
        &self,
        header: &Header,
        mut act: impl FnMut(Buffer, Range<usize>) -> Result<(), SavedSessionError>,
    ) -> Result<(), SavedSessionError> {
        let config = self.model.config();
        let position = 2 * config.head_dim as usize;
        for (layer, cache) in config.layers.iter().zip(&self.memory.layers) {
            let slots = slots(header.n_cached, header.n_positions(layer), cache);
            for buffer in [cache.k, cache.v] {
                for head in 0..config.n_kv_heads as usize {
                    let first = head * cache.slots as usize;
                    for run in &slots {
                        act(
                            buffer,
                            (first + run.start) * position..(first + run.end) * position,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Where the last `n` of `len` positions lie in a ring: one run of slots, or two.
fn slots(len: u32, n: u32, cache: &LayerCache) -> Vec<Range<usize>> {
    let (ring, n) = (cache.slots as usize, n as usize);
    let begin = (len as usize - n) % ring;
    let end = (begin + n).min(ring);
    let wrapped = n - (end - begin);
    let runs = [begin..end, 0..wrapped];
    runs.into_iter().filter(|run| !run.is_empty()).collect()
}
