//! The pages of keys and values: their owners, which are free, and which are kept for sequences with the same
//! beginning.
//!
//! ```text
//! free ── take ──▶ owned by 1, 2, … sequences ── release ──▶ free
//!                        ▲                          │
//!                        └─ find ── kept, if its content has a name ── evicted, the oldest first
//! ```
//!
//! A full page whose content depends on the tokens alone is named by a hash of all tokens up to its end. A page
//! without an owner keeps its name until its memory is needed.
//!
//! Nothing is allocated after the pool was made or has grown.

use std::collections::HashMap;

/// The name of a page's content: a hash of all tokens up to its end.
pub(crate) type Name = [u8; 16];

/// No page: the end of a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Page {
    owners: u32,
    name: Option<Name>,
    /// Neighbours in the list of kept pages.
    older: u32,
    newer: u32,
}

/// Pages of one kind of layers.
pub(crate) struct Pool {
    pages: Vec<Page>,
    free: Vec<u32>,
    by_name: HashMap<Name, u32>,
    oldest: u32,
    newest: u32,
    n_kept: u32,
}

impl Pool {
    pub fn new(n_pages: u32) -> Pool {
        let mut pool = Pool {
            pages: Vec::new(),
            free: Vec::new(),
            by_name: HashMap::new(),
            oldest: NONE,
            newest: NONE,
            n_kept: 0,
        };
        pool.grow(n_pages);
        pool
    }

    /// Has `n_pages` pages from now on; those that are there stay.
    pub fn grow(&mut self, n_pages: u32) {
        let more = self.n_pages()..n_pages.max(self.n_pages());
        self.free.reserve_exact(n_pages as usize);
        self.by_name
            .reserve(n_pages as usize - self.by_name.len().min(n_pages as usize));
        // The first ones are taken first.
        self.free.splice(0..0, more.clone().rev());
        self.pages.extend(more.map(|_| Page {
            owners: 0,
            name: None,
            older: NONE,
            newer: NONE,
        }));
    }

    pub fn n_pages(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Whether a page is free that holds nothing.
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Pages that have an owner.
    pub fn n_owned(&self) -> u32 {
        self.n_pages() - self.n_available()
    }

    /// Pages that can be taken: free ones, and those that are only kept.
    pub fn n_available(&self) -> u32 {
        self.free.len() as u32 + self.n_kept
    }

    /// A page for one owner; its content is lost.
    pub fn take(&mut self) -> Option<u32> {
        let page = match self.free.pop() {
            Some(page) => page,
            None if self.oldest != NONE => {
                let page = self.oldest;
                self.unlink(page);
                self.forget_name(page);
                page
            }
            None => return None,
        };
        self.pages[page as usize].owners = 1;
        Some(page)
    }

    /// Another owner for a page.
    pub fn share(&mut self, page: u32) {
        if self.pages[page as usize].owners == 0 {
            self.unlink(page);
        }
        self.pages[page as usize].owners += 1;
    }

    /// One owner less.
    pub fn release(&mut self, page: u32) {
        let entry = &mut self.pages[page as usize];
        entry.owners -= 1;
        if entry.owners > 0 {
            return;
        }
        match entry.name {
            Some(_) => self.link(page),
            None => self.free.push(page),
        }
    }

    /// How many own a page.
    pub fn owners(&self, page: u32) -> u32 {
        self.pages[page as usize].owners
    }

    /// Names the content of a page, unless another page has the same content.
    pub fn name(&mut self, page: u32, name: Name) {
        if self.pages[page as usize].name.is_none() && !self.by_name.contains_key(&name) {
            self.by_name.insert(name, page);
            self.pages[page as usize].name = Some(name);
        }
    }

    /// The page with this content.
    pub fn find(&self, name: &Name) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// All names, and the pages that have them.
    pub fn named(&self) -> impl Iterator<Item = (Name, u32)> + '_ {
        self.by_name.iter().map(|(&name, &page)| (name, page))
    }

    /// The content of a page is about to change.
    pub fn forget_name(&mut self, page: u32) {
        if let Some(name) = self.pages[page as usize].name.take() {
            self.by_name.remove(&name);
        }
    }

    fn link(&mut self, page: u32) {
        let newest = std::mem::replace(&mut self.newest, page);
        self.pages[page as usize].older = newest;
        self.pages[page as usize].newer = NONE;
        match self.pages.get_mut(newest as usize) {
            Some(before) => before.newer = page,
            None => self.oldest = page,
        }
        self.n_kept += 1;
    }

    fn unlink(&mut self, page: u32) {
        let Page { older, newer, .. } = self.pages[page as usize];
        match self.pages.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.pages.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.n_kept -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: u8) -> Name {
        [n; 16]
    }

    #[test]
    fn what_is_released_is_kept_under_its_name_until_its_place_is_needed() {
        let mut pool = Pool::new(2);
        let (a, b) = (pool.take().expect("room"), pool.take().expect("room"));
        assert_eq!((pool.take(), pool.n_owned()), (None, 2));
        pool.name(a, name(1));
        pool.name(b, name(2));
        pool.release(a);
        pool.release(b);
        assert_eq!((pool.n_owned(), pool.n_available()), (0, 2));
        // Found again, and so the other one is the oldest.
        assert_eq!(pool.find(&name(1)), Some(a));
        pool.share(a);
        assert_eq!(pool.take(), Some(b));
        assert_eq!(pool.find(&name(2)), None, "its place was needed");
        assert_eq!(pool.find(&name(1)), Some(a));
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut pool = Pool::new(3);
        let pages = [0; 3].map(|_| pool.take().expect("room"));
        for (n, page) in pages.into_iter().enumerate() {
            pool.name(page, name(n as u8));
        }
        for page in [pages[1], pages[0], pages[2]] {
            pool.release(page);
        }
        let taken = [0; 3].map(|_| pool.take().expect("room"));
        assert_eq!(taken, [pages[1], pages[0], pages[2]]);
    }

    #[test]
    fn a_page_with_two_owners_stays_with_the_second() {
        let mut pool = Pool::new(1);
        let page = pool.take().expect("room");
        pool.share(page);
        pool.release(page);
        assert_eq!((pool.owners(page), pool.take()), (1, None));
        pool.release(page);
        assert_eq!(pool.take(), Some(page), "without a name it is free at once");
    }

    /// A second page with the same content must not take the name: releasing it would lose the first.
    #[test]
    fn a_name_has_one_page() {
        let mut pool = Pool::new(2);
        let (a, b) = (pool.take().expect("room"), pool.take().expect("room"));
        pool.name(a, name(7));
        pool.name(b, name(7));
        assert_eq!(pool.find(&name(7)), Some(a));
        pool.forget_name(b);
        assert_eq!(pool.find(&name(7)), Some(a));
        pool.forget_name(a);
        assert_eq!(pool.find(&name(7)), None);
    }

    #[test]
    fn a_pool_that_grows_keeps_what_it_has() {
        let mut pool = Pool::new(1);
        let first = pool.take().expect("room");
        pool.grow(3);
        let more = [pool.take(), pool.take(), pool.take()];
        assert_eq!((first, more), (0, [Some(1), Some(2), None]));
    }
}
