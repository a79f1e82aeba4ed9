//! Pages and states that are kept in a folder, too.

use akunu_program::Slice;

use super::sizes::cache_bytes;
use super::state::Runtime;
use crate::cache::{Cache, Part};
use crate::error::EngineError;
use crate::pool::Name;

impl Runtime {
    /// Keeps pages and states in this cache from now on.
    pub fn set_cache(&mut self, cache: Cache) {
        self.cache = Some(cache);
    }

    /// The cache, if there is one.
    pub fn cache(&mut self) -> Option<&mut Cache> {
        self.cache.as_mut()
    }

    /// Pages and states that could not be read although they were in the folder.
    pub(super) fn n_lost(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.n_lost)
    }

    /// Gives pages and states that are not in the folder yet to its writer, as many as may wait there. Returns whether there are
    /// more.
    pub fn save_kept(&mut self) -> Result<bool, EngineError> {
        let Some(mut cache) = self.cache.take() else {
            return Ok(false);
        };
        let saved = self.save_to(&mut cache);
        self.cache = Some(cache);
        saved
    }

    fn save_to(&mut self, cache: &mut Cache) -> Result<bool, EngineError> {
        let pages = self.pools.iter().zip(0..);
        let pages = pages.flat_map(|(pool, kind)| {
            let named = pool.named();
            named.map(move |(name, page)| (Part::Page(kind, name), page))
        });
        let states = self.states.named();
        let states = states.map(|(name, block)| (Part::State(name), block));
        let all: Vec<(Part, u32)> = pages.chain(states).collect();
        for (part, place) in all {
            if cache.is_off() {
                return Ok(false);
            }
            if cache.has(part) {
                continue;
            }
            if !cache.has_room() {
                return Ok(true);
            }
            let mut bytes = vec![0; self.part_bytes(part)];
            let mut rest = &mut bytes[..];
            for (slice, len) in self.part_places(part, place) {
                let (own, others) = rest.split_at_mut(len);
                self.device.read(slice.buffer, slice.offset, own)?;
                rest = others;
            }
            cache.write(part, bytes);
        }
        Ok(false)
    }

    /// Whether the folder has a page, or a state.
    pub(super) fn is_cached(&mut self, part: Part) -> bool {
        let cache = self.cache.as_mut();
        cache.is_some_and(|cache| cache.has(part))
    }

    /// Brings a page into its pool from the folder, without an owner. Returns whether it is there.
    pub(super) fn fetch_page(&mut self, kind: usize, name: Name) -> bool {
        let part = Part::Page(kind as u32, name);
        let Some(bytes) = self.cached_bytes(part) else {
            return false;
        };
        let Ok(page) = self.take_page(kind) else {
            return false;
        };
        let is_whole = self.put(part, page, &bytes).is_ok();
        if is_whole {
            self.pools[kind].name(page, name);
        }
        self.pools[kind].release(page);
        is_whole
    }

    /// The same of a state.
    pub(super) fn fetch_state(&mut self, name: Name) -> bool {
        let part = Part::State(name);
        let Some(bytes) = self.cached_bytes(part) else {
            return false;
        };
        let Ok(block) = self.take_block() else {
            return false;
        };
        let is_whole = self.put(part, block, &bytes).is_ok();
        if is_whole {
            self.states.name(block, name);
        }
        self.states.release(block);
        is_whole
    }

    fn cached_bytes(&mut self, part: Part) -> Option<Vec<u8>> {
        let len = self.part_bytes(part);
        let cache = self.cache.as_mut()?;
        cache.has(part).then(|| cache.read(part, len)).flatten()
    }

    fn put(&mut self, part: Part, place: u32, mut bytes: &[u8]) -> Result<(), EngineError> {
        for (slice, len) in self.part_places(part, place) {
            let (own, rest) = bytes.split_at(len);
            self.device.write(slice.buffer, slice.offset, own)?;
            bytes = rest;
        }
        Ok(())
    }

    fn part_bytes(&self, part: Part) -> usize {
        let places = self.part_places(part, 0);
        places.iter().map(|(_, len)| len).sum()
    }

    /// Where a page or a state lies, and how many bytes each piece of it has.
    fn part_places(&self, part: Part, place: u32) -> Vec<(Slice, usize)> {
        let config = &self.model.config;
        match part {
            Part::Page(kind, _) => {
                let window = self.memory.maps[kind as usize].window;
                let layers = config.cached_attention().zip(&self.memory.caches);
                let layers = layers.filter(|(attention, _)| attention.window == window);
                let pieces = layers.flat_map(|(attention, cache)| {
                    let len = cache_bytes(attention, self.model.kv, 1);
                    let offset = place as usize * len;
                    [cache.k, cache.v].map(|buffer| (Slice { buffer, offset }, len))
                });
                pieces.collect()
            }
            Part::State(_) => {
                let places = self.memory.state_places(config, place);
                let piece = |place: super::memory::StatePlace| {
                    let (buffer, offset) = (place.buffer, place.offset);
                    (Slice { buffer, offset }, place.bytes)
                };
                places.into_iter().map(piece).collect()
            }
        }
    }
}
