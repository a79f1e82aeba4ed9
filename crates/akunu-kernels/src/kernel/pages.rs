//! Pages: where the key or the value of a slot lies.
//!
//! The keys of a layer are (n_pages, n_kv_heads, page, head_dim) numbers, the values as many; a page has
//! `page = 1 << page_shift` slots, a multiple of 32. The page table (n_sequences, table_stride) says which
//! pages a sequence has: slot s of sequence q lies in page `table[q * table_stride + s / page]`, at place
//! `s % page`. The host has proven that all pages exist and that every slot in use has one.
//!
//! The numbers are halves or, with [`Constant::KvQ8`], 8 bits each, and behind those of each head of a page come
//! their scales ([`KvFormat`]). Bindings of pools are halves in both cases: a kernel for 8 bits looks at
//! them as bytes.

use akunu_types::KvFormat;
use akunu_types::kv_format::{Q8_BLOCK, Q8_LARGEST};
use akunu_types::params::{AttentionParams, DecodeAttentionParams, KVShiftParams, RopeStoreParams};
use half::f16;

use crate::constant::{Constant, Constants};
use crate::extent::{bytes, product};

/// The smallest page has 32 slots: a tile of 32 keys that begins at a multiple of 32 lies in one page.
pub const MIN_PAGE_SHIFT: u32 = 5;

/// The largest head that the kernels store in 8 bits.
const MAX_Q8_HEAD_DIM: u32 = 576;

/// The pool of pages of a layer, and the table of who has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// A page has `1 << page_shift` slots.
    pub page_shift: u32,
    /// Pages of a sequence in the table.
    pub table_stride: u32,
    /// Number of key and value heads.
    pub n_kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Pages of the pool.
    pub n_pages: u32,
    /// Sequences of the table.
    pub n_sequences: u32,
    /// How numbers are stored.
    pub format: KvFormat,
}

/// Where one head of a slot lies in a pool, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAt {
    /// The first number.
    pub numbers: usize,
    /// The first scale, where there are scales.
    pub scales: usize,
}

/// The format that a specialisation is for.
pub fn format(constants: &Constants) -> KvFormat {
    if constants.bool(Constant::KvQ8) {
        KvFormat::Q8
    } else {
        KvFormat::F16
    }
}

/// The same constants for a format. Halves are what there is without a constant.
pub fn with_format(constants: Constants, format: KvFormat) -> Constants {
    match format {
        KvFormat::F16 => constants,
        KvFormat::Q8 => constants.with_bool(Constant::KvQ8, true),
    }
}

/// The fields have the same names in all params; the format is a constant.
macro_rules! pages_of {
    ($($params:ty),*) => {
        $(impl From<(&$params, &Constants)> for Pages {
            fn from((p, constants): (&$params, &Constants)) -> Pages {
                Pages {
                    page_shift: p.page_shift,
                    table_stride: p.table_stride,
                    n_kv_heads: p.n_kv_heads,
                    head_dim: p.head_dim,
                    n_pages: p.n_pages,
                    n_sequences: p.n_sequences,
                    format: format(constants),
                }
            }
        })*
    };
}

pages_of!(
    AttentionParams,
    DecodeAttentionParams,
    KVShiftParams,
    RopeStoreParams
);

impl Pages {
    /// Whether a page is a multiple of 32 slots, their number fits in 32 bits, and the format takes the
    /// heads. Other shapes get an empty grid, which the plan check refuses.
    pub fn are_usable(&self) -> bool {
        let takes_head = match self.format {
            KvFormat::F16 => true,
            KvFormat::Q8 => self.format.takes(self.head_dim) && self.head_dim <= MAX_Q8_HEAD_DIM,
        };
        takes_head && (MIN_PAGE_SHIFT..u32::BITS).contains(&self.page_shift)
    }

    /// Slots of a page.
    fn page(&self) -> u32 {
        1u32.checked_shl(self.page_shift).unwrap_or(u32::MAX)
    }

    /// Slots that one sequence can have.
    pub fn max_slots(&self) -> u32 {
        self.table_stride.saturating_mul(self.page())
    }

    /// Bytes of the pool of keys, or of values.
    pub fn pool_bytes(&self) -> usize {
        self.slot_bytes(&[self.n_pages, self.page()])
    }

    /// Bytes of all heads of as many slots, of keys or of values.
    pub fn slot_bytes(&self, n_slots: &[u32]) -> usize {
        let of_a_head = self.format.bytes_per_slot(self.head_dim);
        bytes::<u8>(n_slots)
            .saturating_mul(self.n_kv_heads as usize)
            .saturating_mul(of_a_head)
    }

    /// Entries of the page table.
    pub fn table_len(&self) -> usize {
        product(&[self.n_sequences, self.table_stride])
    }

    /// Where one head of a slot lies in the pool.
    #[inline]
    pub fn slot_at(&self, table: &[u32], sequence: u32, slot: usize, head: usize) -> SlotAt {
        let (page, place) = (slot >> self.page_shift, slot & (self.page() as usize - 1));
        let id = table[sequence as usize * self.table_stride as usize + page] as usize;
        self.place_at(id * self.n_kv_heads as usize + head, place)
    }

    /// Where a place of one head of a page lies; these are counted through the pool.
    #[inline]
    fn place_at(&self, page_head: usize, place: usize) -> SlotAt {
        let page = self.page() as usize;
        let (numbers, all) = (
            self.format.number_bytes(self.head_dim),
            self.format.bytes_per_slot(self.head_dim),
        );
        let first = page_head * page * all;
        SlotAt {
            numbers: first + place * numbers,
            scales: first + page * numbers + place * (all - numbers),
        }
    }

    /// The numbers of one head of a slot.
    pub fn load(&self, pool: &[u8], at: SlotAt) -> Vec<f32> {
        let head_dim = self.head_dim as usize;
        let half = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
        match self.format {
            KvFormat::F16 => {
                let halves = pool[at.numbers..].chunks_exact(2);
                halves.take(head_dim).map(half).collect()
            }
            KvFormat::Q8 => {
                let numbers = pool[at.numbers..][..head_dim].iter().enumerate();
                let scale = |d: usize| half(&pool[at.scales + 2 * (d / Q8_BLOCK as usize)..]);
                numbers
                    .map(|(d, &q)| scale(d) * f32::from(q as i8))
                    .collect()
            }
        }
    }

    /// Stores the numbers of one head of a slot.
    pub fn store(&self, pool: &mut [u8], at: SlotAt, numbers: &[f32]) {
        match self.format {
            KvFormat::F16 => {
                for (to, &x) in pool[at.numbers..].chunks_exact_mut(2).zip(numbers) {
                    to.copy_from_slice(&f16::from_f32(x).to_le_bytes());
                }
            }
            KvFormat::Q8 => {
                for (at_block, block) in numbers.chunks(Q8_BLOCK as usize).enumerate() {
                    let scale = q8_scale(block);
                    let to = at.scales + 2 * at_block;
                    pool[to..][..2].copy_from_slice(&scale.to_le_bytes());
                    let to = &mut pool[at.numbers + at_block * Q8_BLOCK as usize..];
                    for (to, &x) in to.iter_mut().zip(block) {
                        let q = (x / scale.to_f32()).round_ties_even();
                        let q = q.clamp(-Q8_LARGEST, Q8_LARGEST);
                        *to = if scale == f16::ZERO { 0 } else { q as i8 as u8 };
                    }
                }
            }
        }
    }

    /// Copies one head of a slot to another.
    pub fn copy(&self, pool: &mut [u8], from: SlotAt, to: SlotAt) {
        let numbers = self.format.number_bytes(self.head_dim);
        let scales = self.format.bytes_per_slot(self.head_dim) - numbers;
        pool.copy_within(from.numbers..from.numbers + numbers, to.numbers);
        pool.copy_within(from.scales..from.scales + scales, to.scales);
    }
}

/// The scale of a block of 8-bit numbers.
fn q8_scale(block: &[f32]) -> f16 {
    let larger = |largest: f32, x: &f32| largest.max(x.abs());
    f16::from_f32(block.iter().fold(0.0, larger) / Q8_LARGEST)
}

#[cfg(feature = "testing")]
mod cases {
    use super::{Pages, SlotAt};
    use crate::case::Rng;

    impl Pages {
        /// All numbers of a pool.
        pub(crate) fn numbers(&self, pool: &[u8]) -> Vec<f32> {
            self.places().flat_map(|at| self.load(pool, at)).collect()
        }

        fn places(&self) -> impl Iterator<Item = SlotAt> {
            let (page_heads, page) = (self.n_pages * self.n_kv_heads, self.page());
            (0..page_heads as usize).flat_map(move |head| {
                (0..page as usize).map(move |place| self.place_at(head, place))
            })
        }

        /// A pool with numbers in `-1 .. 1` everywhere.
        pub(crate) fn case_pool(&self, rng: &mut Rng) -> Vec<u8> {
            let mut pool = vec![0; self.pool_bytes()];
            for at in self.places() {
                self.store(&mut pool, at, &rng.floats(self.head_dim as usize, 1.0));
            }
            pool
        }

        /// The table of a case in which these slots, each with its sequence, are used: pages in a random
        /// order, so that those of several sequences interleave. Where no slot is used there is a page that
        /// does not exist.
        pub(crate) fn case_table(&self, rng: &mut Rng, used: &[(u32, u32)]) -> Vec<u32> {
            let mut free: Vec<u32> = (0..self.n_pages).collect();
            let mut table = vec![u32::MAX; (self.n_sequences * self.table_stride) as usize];
            for (sequence, slot) in used {
                let at = sequence * self.table_stride + (slot >> self.page_shift);
                let entry = &mut table[at as usize];
                if *entry == u32::MAX {
                    *entry = free.swap_remove(rng.below(free.len() as u32) as usize);
                }
            }
            table
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Rng;

    const PAGES: Pages = Pages {
        page_shift: 5,
        table_stride: 3,
        n_kv_heads: 2,
        head_dim: 8,
        n_pages: 4,
        n_sequences: 2,
        format: KvFormat::F16,
    };

    /// In 8 bits a page of one head has 32 * 64 numbers and 32 * 2 scales.
    const Q8: Pages = Pages {
        head_dim: 64,
        format: KvFormat::Q8,
        ..PAGES
    };

    #[test]
    fn a_slot_lies_in_the_page_of_its_sequence() {
        let table = [3, 0, 9, 1, 2, 9];
        let at = |sequence, slot, head| PAGES.slot_at(&table, sequence, slot, head).numbers;
        assert_eq!(at(0, 0, 0), 3 * 2 * 32 * 8 * 2);
        assert_eq!(at(0, 33, 1), (32 + 1) * 8 * 2);
        assert_eq!(at(1, 63, 0), (2 * 2 * 32 + 31) * 8 * 2);
        assert_eq!(PAGES.max_slots(), 96);
        assert_eq!(PAGES.pool_bytes(), 4 * 2 * 32 * 8 * 2);
        assert_eq!(PAGES.table_len(), 2 * 3);
    }

    #[test]
    fn scales_lie_behind_the_numbers_of_their_head() {
        let page_head = 32 * (64 + 4);
        let at = Q8.slot_at(&[3, 0, 9, 1, 2, 9], 0, 33, 1);
        assert_eq!(at.numbers, page_head + 64);
        assert_eq!(at.scales, page_head + 32 * 64 + 4);
        assert_eq!(Q8.pool_bytes(), 4 * 2 * page_head);
    }

    /// Of each block the largest number comes back to f16's precision, and the others to half a step.
    #[test]
    fn eight_bits_come_back_within_half_a_step() {
        let mut pool = vec![0xFF; Q8.pool_bytes()];
        let at = Q8.slot_at(&[0, 1, 2, 3, 0, 0], 0, 40, 1);
        let mut numbers = Rng::new(5).floats(64, 3.0);
        numbers[32..].fill(0.0);
        Q8.store(&mut pool, at, &numbers);
        let step = 3.0 / 127.0;
        for (found, x) in Q8.load(&pool, at).into_iter().zip(numbers) {
            assert!((found - x).abs() <= 0.51 * step, "{found} instead of {x}");
        }
        let to = Q8.slot_at(&[0, 1, 2, 3, 0, 0], 1, 3, 0);
        Q8.copy(&mut pool, at, to);
        assert_eq!(Q8.load(&pool, to), Q8.load(&pool, at));
        let untouched = pool.iter().filter(|&&byte| byte == 0xFF).count();
        assert!(untouched >= pool.len() - 2 * 68);
    }

    #[test]
    fn eight_bits_want_whole_blocks() {
        for (head_dim, usable) in [
            (32, true),
            (80, false),
            (96, true),
            (512, true),
            (576, true),
            (608, false),
        ] {
            let pages = Pages { head_dim, ..Q8 };
            assert_eq!(pages.are_usable(), usable, "{head_dim}");
        }
    }

    /// Shifts from params must not overflow.
    #[test]
    fn pages_that_no_kernel_can_read() {
        for (page_shift, usable) in [(0, false), (4, false), (5, true), (31, true), (40, false)] {
            let pages = Pages {
                page_shift,
                ..PAGES
            };
            assert_eq!(pages.are_usable(), usable, "{page_shift}");
            assert!(pages.pool_bytes() > 0 && pages.max_slots() > 0);
        }
    }

    /// Every page has one owner, and what is not used would be found out.
    #[test]
    fn the_table_of_a_case() {
        let table = PAGES.case_table(&mut Rng::new(1), &[(0, 33), (1, 0), (1, 40), (1, 41)]);
        let mut pages: Vec<u32> = table.iter().copied().filter(|&id| id < 4).collect();
        assert_eq!([table[0], table[2], table[5]], [u32::MAX; 3]);
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 3);
    }
}
