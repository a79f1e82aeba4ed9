//! The pages of sequences: given when they are written, shared by those that begin alike, given back when they are
//! passed.

use std::ops::Range;
use std::sync::Arc;

use akunu_program::Slice;

use super::sizes::{PAGE, WINDOW_SLACK, cache_bytes, sequence_pages};
use super::state::Runtime;
use crate::cache::Part;
use crate::error::EngineError;
use crate::images::Content;
use crate::sequence::Sequence;

/// Pages that hold these slots.
fn pages_of(slots: Range<usize>) -> Range<usize> {
    match slots.is_empty() {
        true => slots.start / PAGE..slots.start / PAGE,
        false => slots.start / PAGE..slots.end.div_ceil(PAGE),
    }
}

impl Runtime {
    /// The first slot that a row at `position` sees.
    fn first_seen(&self, kind: usize, position: usize) -> usize {
        let window = self.memory.maps[kind].window;
        window.map_or(0, |window| (position + 1).saturating_sub(window as usize))
    }

    /// Makes sure that there are pages enough for one sequence of `context` tokens that is read in pieces of `chunk`.
    pub fn want_pages(&mut self, context: usize, chunk: usize) -> Result<(), EngineError> {
        for kind in 0..self.pools.len() {
            let window = self.memory.maps[kind].window;
            let wanted = self.limited(sequence_pages(window, context, chunk));
            if wanted > self.pools[kind].n_pages() {
                self.grow_pool(kind, wanted)?;
            }
        }
        Ok(())
    }

    fn limited(&self, pages: u32) -> u32 {
        let most = self.max_positions.map(|positions| positions / PAGE as u32);
        most.map_or(pages, |most| pages.min(most))
    }

    fn grow_pool(&mut self, kind: usize, n_pages: u32) -> Result<(), EngineError> {
        self.keep_chains();
        let device = self.device.as_mut();
        self.memory.grow_pages(&self.model, kind, n_pages, device)?;
        self.pools[kind].grow(n_pages);
        self.forget_seats();
        Ok(())
    }

    /// A page of a kind; the pool grows if it may.
    pub(super) fn take_page(&mut self, kind: usize) -> Result<u32, EngineError> {
        if let Some(page) = self.pools[kind].take() {
            return Ok(page);
        }
        let has = self.pools[kind].n_pages();
        let wanted = self.limited((2 * has).max(16));
        if wanted <= has {
            return Err(EngineError::PoolFull {
                positions: has as usize * PAGE,
            });
        }
        self.grow_pool(kind, wanted)?;
        self.pools[kind].take().ok_or(EngineError::PoolFull {
            positions: has as usize * PAGE,
        })
    }

    /// Whether there are pages for another `len` tokens.
    pub fn has_pages(&self, len: usize) -> bool {
        let wanted = len as u32 / PAGE as u32 + 1;
        let mut kinds = 0..self.pools.len();
        kinds.all(|kind| {
            let pool = &self.pools[kind];
            // A pool without a limit grows.
            self.max_positions.is_none() || pool.n_available() >= wanted
        })
    }

    /// Gives the sequence pages of its own for the slots from `cached` up to `len`.
    pub fn reserve(&mut self, sequence: &mut Sequence, len: usize) -> Result<(), EngineError> {
        for kind in 0..self.pools.len() {
            for index in pages_of(sequence.cached..len) {
                if sequence.pages[kind].len() <= index {
                    sequence.pages[kind].resize(index + 1, None);
                }
                match sequence.pages[kind][index] {
                    None => {
                        let page = self.take_page(kind)?;
                        self.set_page(sequence, kind, index, Some(page));
                    }
                    Some(page) if self.pools[kind].owners(page) > 1 => {
                        self.copy_page(sequence, kind, index, page)?;
                    }
                    // What the page holds is about to change.
                    Some(page) => self.pools[kind].forget_name(page),
                }
            }
        }
        Ok(())
    }

    /// A page of its own with the content of one that others have too.
    fn copy_page(
        &mut self,
        sequence: &mut Sequence,
        kind: usize,
        index: usize,
        from: u32,
    ) -> Result<(), EngineError> {
        let to = self.take_page(kind)?;
        let window = self.memory.maps[kind].window;
        let model = Arc::clone(&self.model);
        let layers = model
            .config
            .cached_attention()
            .zip(self.memory.caches.clone());
        for (attention, cache) in layers.filter(|(attention, _)| attention.window == window) {
            let bytes = cache_bytes(attention, model.kv, 1);
            let place = |buffer, page: u32| Slice {
                buffer,
                offset: page as usize * bytes,
            };
            for buffer in [cache.k, cache.v] {
                let copied = self
                    .device
                    .copy(place(buffer, from), place(buffer, to), bytes);
                if let Err(error) = copied {
                    self.pools[kind].release(to);
                    return Err(error.into());
                }
            }
        }
        self.pools[kind].release(from);
        self.set_page(sequence, kind, index, Some(to));
        Ok(())
    }

    /// Takes note of a page of a sequence, in the page table too if it has a seat.
    fn set_page(&mut self, sequence: &mut Sequence, kind: usize, index: usize, page: Option<u32>) {
        sequence.pages[kind][index] = page;
        if self.is_seated(sequence) {
            self.table.set_page(kind, sequence.seat, index as u32, page);
        }
    }

    /// Gives up the page at this place.
    fn drop_page(&mut self, sequence: &mut Sequence, kind: usize, index: usize) {
        if let Some(page) = sequence.pages[kind].get(index).copied().flatten() {
            self.set_page(sequence, kind, index, None);
            self.pools[kind].release(page);
        }
    }

    /// The keys and values of `tokens`, after those that were there, have been stored: full pages get a name, and what
    /// a window has passed is given back.
    pub fn stored(&mut self, sequence: &mut Sequence, tokens: &[u32]) {
        let before = sequence.cached;
        sequence.tokens.truncate(before);
        sequence.tokens.extend_from_slice(tokens);
        sequence.cached = sequence.tokens.len();
        self.settle_states(sequence);
        let full = before / PAGE..sequence.cached.min(sequence.pure) / PAGE;
        for index in full {
            let name = sequence.name(index, PAGE);
            for kind in 0..self.pools.len() {
                if let Some(page) = sequence.pages[kind][index] {
                    self.pools[kind].name(page, name);
                }
            }
        }
        // Pages before were given back when they were passed.
        for kind in 0..self.pools.len() {
            let [passed, kept] = [before, sequence.cached].map(|at| self.first_kept(kind, at));
            for index in passed..kept {
                self.drop_page(sequence, kind, index);
            }
        }
    }

    /// The first page that a sequence of `len` tokens keeps.
    fn first_kept(&self, kind: usize, len: usize) -> usize {
        self.first_seen(kind, len).saturating_sub(WINDOW_SLACK) / PAGE
    }

    /// Gives back all pages that windows have passed at `len`, filled or not.
    pub fn pass_windows(&mut self, sequence: &mut Sequence, len: usize) {
        for kind in 0..self.pools.len() {
            for index in 0..self.first_seen(kind, len) / PAGE {
                self.drop_page(sequence, kind, index);
            }
        }
    }

    /// Forgets all but the first `len` tokens.
    pub fn truncate(&mut self, sequence: &mut Sequence, len: usize) {
        if len >= sequence.tokens.len() && sequence.images.end_before(len) {
            return;
        }
        sequence.forget_after(len, PAGE);
        self.cut_to_state(sequence);
        self.drop_pages_after(sequence);
    }

    /// Gives back the pages behind the tokens that are cached.
    pub(super) fn drop_pages_after(&mut self, sequence: &mut Sequence) {
        for kind in 0..self.pools.len() {
            let kept = sequence.cached.div_ceil(PAGE);
            for index in kept..sequence.pages[kind].len() {
                self.drop_page(sequence, kind, index);
            }
            sequence.pages[kind].truncate(kept);
        }
    }

    /// Gives back all pages.
    pub fn free(&mut self, sequence: &mut Sequence) {
        sequence.cached = 0;
        self.free_states(sequence);
        self.drop_pages_after(sequence);
        self.leave_seat(sequence);
    }

    /// The most of the first `len` tokens from which the sequence can go on: `len`, or where there is a state before it; 0 if a
    /// window has lost what it would see there.
    pub fn returnable(&mut self, sequence: &mut Sequence, len: usize) -> usize {
        let len = self.last_state(sequence, len);
        if len < sequence.floor {
            return 0;
        }
        for kind in 0..self.pools.len() {
            for index in pages_of(self.first_seen(kind, len)..len) {
                let has = sequence.pages[kind].get(index).copied().flatten().is_some();
                if !has && !self.adopt_page(sequence, kind, index) {
                    return 0;
                }
            }
        }
        match self.adopt_state(sequence, len) {
            true => len,
            false => 0,
        }
    }

    /// Takes over a page with the same content, if one is kept.
    fn adopt_page(&mut self, sequence: &mut Sequence, kind: usize, index: usize) -> bool {
        let end = (index + 1) * PAGE;
        if end > sequence.tokens.len().min(sequence.pure) {
            return false;
        }
        let name = sequence.name(index, PAGE);
        let Some(page) = self.pools[kind].find(&name) else {
            return false;
        };
        self.pools[kind].share(page);
        if sequence.pages[kind].len() <= index {
            sequence.pages[kind].resize(index + 1, None);
        }
        self.set_page(sequence, kind, index, Some(page));
        true
    }

    /// Takes over pages that hold a beginning of some content beyond what the sequence holds itself; returns how many
    /// tokens it then holds, at most `most`. All before `sequence.cached` is the same. The images of the content are those of
    /// the sequence from then on: the rest is read next.
    pub fn adopt(&mut self, sequence: &mut Sequence, content: &Content, most: usize) -> usize {
        let (before, pure) = (sequence.cached, sequence.pure);
        let n_lost = self.n_lost();
        sequence.images.clone_from(&content.images);
        if pure < before {
            return before;
        }
        sequence.tokens.truncate(before);
        sequence.tokens.extend_from_slice(&content.tokens[before..]);
        // The last page that every kind of layers can go on from.
        let mut end = before / PAGE;
        while (end + 1) * PAGE <= most && self.is_kept(sequence, end) {
            end += 1;
        }
        let end = self.last_state(sequence, end * PAGE) / PAGE;
        let len = (end * PAGE).max(before);
        let mut reached = before;
        if len > before {
            let all = (0..self.pools.len()).all(|kind| {
                let first = self.first_seen(kind, len) / PAGE;
                (first..end).all(|index| {
                    self.has_full_page(sequence, kind, index)
                        || self.adopt_over(sequence, kind, index)
                })
            });
            if all && self.adopt_state(sequence, len) {
                reached = len;
            }
        }
        sequence.tokens.truncate(reached);
        sequence.cached = reached;
        // Other tokens may follow.
        sequence.forget_names_after(reached, PAGE);
        self.drop_pages_after(sequence);
        // Without the file that could not be read: the pages before it are still there.
        match self.n_lost() > n_lost {
            true => self.adopt(sequence, content, most),
            false => reached,
        }
    }

    /// Whether the page at this place is full and the sequence's own.
    fn has_full_page(&self, sequence: &Sequence, kind: usize, index: usize) -> bool {
        let has = sequence.pages[kind].get(index).copied().flatten().is_some();
        has && (index + 1) * PAGE <= sequence.cached
    }

    /// Takes over a page in the place of one that holds less.
    fn adopt_over(&mut self, sequence: &mut Sequence, kind: usize, index: usize) -> bool {
        let name = sequence.name(index, PAGE);
        if self.pools[kind].find(&name).is_none() && !self.fetch_page(kind, name) {
            return false;
        }
        self.drop_page(sequence, kind, index);
        self.adopt_page(sequence, kind, index)
    }

    /// Whether all layers without a window have the content of this page somewhere; what windows see is looked for
    /// afterwards.
    fn is_kept(&mut self, sequence: &mut Sequence, index: usize) -> bool {
        let name = sequence.name(index, PAGE);
        let any_whole = self.memory.maps.iter().any(|map| map.window.is_none());
        let wanted = |map: &akunu_program::PageMap| map.window.is_none() || !any_whole;
        let kinds: Vec<usize> = (0..self.pools.len())
            .filter(|&kind| wanted(&self.memory.maps[kind]))
            .collect();
        kinds.into_iter().all(|kind| {
            self.pools[kind].find(&name).is_some() || self.is_cached(Part::Page(kind as u32, name))
        })
    }

    /// Another sequence with the same tokens and pages.
    pub fn fork(&mut self, sequence: &Sequence) -> Sequence {
        let mut fork = self.new_sequence();
        fork.set_adapters(sequence.adapters().clone());
        fork.replace(sequence.tokens.clone(), sequence.cached, sequence.pure);
        fork.images.clone_from(&sequence.images);
        fork.floor = sequence.floor;
        fork.rule = sequence.rule.clone();
        fork.pages.clone_from(&sequence.pages);
        for (pool, pages) in self.pools.iter_mut().zip(&fork.pages) {
            pages.iter().flatten().for_each(|&page| pool.share(page));
        }
        self.fork_states(sequence, &mut fork);
        self.drop_pages_after(&mut fork);
        fork
    }

    /// Whether every slot from the first on still has its page, and tokens can be dropped: no window has given any back, and no
    /// state remembers them.
    pub fn is_whole(&self, sequence: &Sequence) -> bool {
        let n = sequence.cached.div_ceil(PAGE);
        let all = |pages: &Vec<Option<u32>>| pages.iter().take(n).flatten().count() == n;
        !self.has_states() && sequence.floor == 0 && sequence.pages.iter().all(all)
    }
}
