//! The candidates of a row: all its logits at first, and a list once a cut has left few of them.
//!
//! A cut of the whole vocabulary reads the logits in blocks, and most blocks fall at one comparison with the largest logit
//! of the block. Whoever is left goes to the list, as `distance << 32 | token`: numbers in the order of the distances,
//! and of the tokens among equals.
//!
//! Only the passes over all logits are compiled for a level of instructions: to find blocks, to add up, and to draw.

use akunu_kernels::kernel::sampling::candidates::{
    Candidates, Cut, KEY_MAX, Source, Totals, distance, key, mass, weight,
};

use super::argmax::largest_of;
use super::noise::{self, EnterAll};
use crate::isa::Level;
use crate::simd::{self, Lanes, WithLanes, exp};

/// Logits that are looked at together.
const BLOCK: usize = 256;
/// Units of a mass.
const MASS_UNIT: f64 = (1u64 << 40) as f64;
/// Lists that are sorted rather than divided.
const SHORT: usize = 64;

/// The candidates of a row.
pub(super) struct Field<'a> {
    logits: &'a [f32],
    best: f32,
    place: usize,
    /// Room for all of them.
    list: &'a mut [u64],
    /// How many are in the list; `None` while all finite logits are candidates.
    n: Option<usize>,
    level: Level,
}

fn pack(distance: f32, token: usize) -> u64 {
    u64::from(distance.to_bits()) << 32 | token as u64
}

fn distance_in(packed: u64) -> f32 {
    f32::from_bits((packed >> 32) as u32)
}

/// The first block of logits, from one on, that has a logit which is not below a floor.
struct NextBlock<'a> {
    logits: &'a [f32],
    from: usize,
    floor: f32,
}

impl WithLanes for NextBlock<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Option<usize> {
        let blocks = self.logits.chunks(BLOCK).enumerate();
        for (at, block) in blocks.skip(self.from) {
            // A floor that is no number keeps every block.
            let falls = largest_of::<L>(block) < self.floor;
            if !falls {
                return Some(at);
            }
        }
        None
    }
}

/// Three numbers of each of some logits, to be added up. A closure would not become part of the loop over them: it has not
/// the instructions of its caller.
trait Summand {
    fn of<L: Lanes>(&self, logits: L) -> [L; 3];
}

/// How many candidates there are, their distances, and the squares of those from a mean.
struct Distances {
    best: f32,
    mean: f32,
}

impl Summand for Distances {
    #[inline(always)]
    fn of<L: Lanes>(&self, logits: L) -> [L; 3] {
        let (none, zero) = (L::splat(f32::NEG_INFINITY), L::splat(0.0));
        let d = L::splat(self.best).sub(logits);
        let off = d.sub(L::splat(self.mean));
        [
            none.if_less(logits, L::splat(1.0), zero),
            none.if_less(logits, d, zero),
            none.if_less(logits, off.mul(off), zero),
        ]
    }
}

/// The weights of candidates, their products with the distances, and how many there are.
struct Weights {
    best: f32,
    scale: f32,
}

impl Summand for Weights {
    #[inline(always)]
    fn of<L: Lanes>(&self, logits: L) -> [L; 3] {
        let (none, zero) = (L::splat(f32::NEG_INFINITY), L::splat(0.0));
        let one = none.if_less(logits, L::splat(1.0), zero);
        // Beyond 1e4 a weight is 0 at every scale that matters, and its product with d would be no number.
        let d = L::splat(self.best).sub(logits).min(L::splat(1e4));
        let weight = exp(d.mul(L::splat(-self.scale))).mul(one);
        [weight, weight.mul(d), one]
    }
}

impl<'a> Field<'a> {
    /// All logits, of which the one at `place` is the best, and finite or infinite.
    pub fn new(level: Level, logits: &'a [f32], place: usize, list: &'a mut [u64]) -> Field<'a> {
        Field {
            logits,
            best: logits[place],
            place,
            list,
            n: None,
            level,
        }
    }

    /// The logarithm of how many times as probable as the best one all candidates are together.
    pub fn log_sum(&mut self) -> f32 {
        weight(self.totals(1.0).mass).ln()
    }

    /// The list, best first.
    pub fn sorted(&mut self) -> impl Iterator<Item = u32> + use<'_> {
        self.make_list();
        let n = self.n.unwrap_or(0);
        self.list[..n].sort_unstable();
        self.list[..n].iter().map(|&packed| packed as u32)
    }

    /// Calls `see` with every candidate that may be at most so far away, and perhaps with others: from the whole
    /// vocabulary with all of a block that has such a one.
    fn see(&self, limit: f32, mut see: impl FnMut(f32, usize)) {
        if let Some(n) = self.n {
            for &packed in &self.list[..n] {
                see(distance_in(packed), packed as u32 as usize);
            }
            return;
        }
        // Rounded down twice: no candidate within the limit is below it.
        let floor = (self.best - limit).next_down().next_down();
        let mut from = 0;
        while let Some(at) = self.next_block(from, floor) {
            for (i, &logit) in self.block(at).iter().enumerate() {
                if logit > f32::NEG_INFINITY {
                    see(distance(self.best, logit), at * BLOCK + i);
                }
            }
            from = at + 1;
        }
    }

    /// The logits of a block.
    fn block(&self, at: usize) -> &'a [f32] {
        let first = at * BLOCK;
        &self.logits[first..self.logits.len().min(first + BLOCK)]
    }

    /// The first block, from one on, that has a logit which is not below a floor.
    fn next_block(&self, from: usize, floor: f32) -> Option<usize> {
        let next = NextBlock {
            logits: self.logits,
            from,
            floor,
        };
        simd::run(self.level, next)
    }

    /// Puts all candidates up to a key into the list; those beyond are no candidates any more.
    fn list_up_to(&mut self, last: u32) {
        if self.n.is_some() {
            return self.retain(|d| key(d) <= last);
        }
        let limit = if last == KEY_MAX {
            f32::INFINITY
        } else {
            ((f64::from(last) + 2.0) / f64::from(1 << 24)) as f32
        };
        let list = std::mem::take(&mut self.list);
        let mut n = 0;
        self.see(limit.next_up(), |d, token| {
            list[n] = pack(d, token);
            n += usize::from(key(d) <= last);
        });
        self.list = list;
        self.n = Some(n);
    }

    fn make_list(&mut self) {
        if self.n.is_none() {
            self.list_up_to(KEY_MAX);
        }
    }

    fn retain(&mut self, keeps: impl Fn(f32) -> bool) {
        self.make_list();
        let mut kept = 0;
        for at in 0..self.n.unwrap_or(0) {
            let packed = self.list[at];
            self.list[kept] = packed;
            kept += usize::from(keeps(distance_in(packed)));
        }
        self.n = Some(kept);
    }

    /// The n-th smallest distance of the whole vocabulary, by a list of 2 n that is halved whenever it is full.
    fn nth_of_all(&mut self, n: usize) -> f32 {
        let mut found = 0;
        let mut floor = f32::NEG_INFINITY;
        let mut from = 0;
        while let Some(at) = self.next_block(from, floor.next_up()) {
            from = at + 1;
            for &logit in self.block(at) {
                self.list[found] = pack(distance(self.best, logit), 0);
                found += usize::from(logit > floor);
                if found == 2 * n {
                    let (_, &mut nth, _) = self.list[..found].select_nth_unstable(n - 1);
                    found = n;
                    // Rounded down twice: nothing that is nearer is below it.
                    floor = (self.best - distance_in(nth)).next_down().next_down();
                }
            }
        }
        if found < n {
            return f32::INFINITY;
        }
        let (_, &mut nth, _) = self.list[..found].select_nth_unstable(n - 1);
        distance_in(nth)
    }

    /// The least key up to which the list weighs as much: it is divided in two until the half in which that happens is
    /// short.
    fn limit(&mut self, key_of: impl Fn(f32) -> u32, wanted: u64) -> u32 {
        let list = &mut self.list[..self.n.unwrap_or(0)];
        let key_of = |packed: &u64| key_of(distance_in(*packed));
        let mass_of = |packed: &u64| mass((-distance_in(*packed)).exp());
        let (mut first, mut end, mut before) = (0, list.len(), 0);
        while end - first > SHORT {
            let half = (end - first) / 2;
            list[first..end].select_nth_unstable_by_key(half, key_of);
            let sum: u64 = list[first..first + half].iter().map(mass_of).sum();
            if before + sum >= wanted {
                end = first + half;
            } else {
                before += sum;
                first += half;
            }
        }
        list[first..end].sort_unstable_by_key(key_of);
        for packed in &list[first..end] {
            before += mass_of(packed);
            if before >= wanted {
                return key_of(packed);
            }
        }
        KEY_MAX
    }
}

/// Three sums over all logits; a logit that is no candidate is -inf.
struct Sums<'a, S> {
    logits: &'a [f32],
    what: S,
}

impl<S: Summand> WithLanes for Sums<'_, S> {
    type Output = [f64; 3];

    #[inline(always)]
    fn run<L: Lanes>(self) -> [f64; 3] {
        let mut sums = [0f64; 3];
        for block in self.logits.chunks(BLOCK) {
            // SAFETY: `reach`: a whole chunk has `N` elements, and so has the rest in its copy.
            unsafe {
                let none = L::splat(f32::NEG_INFINITY);
                let mut of_block = [L::splat(0.0); 3];
                let mut copy = [f32::NEG_INFINITY; 16];
                for logits in block.chunks(L::N) {
                    let mut whole = logits.as_ptr();
                    if logits.len() < L::N {
                        copy[..logits.len()].copy_from_slice(logits);
                        whole = copy.as_ptr();
                    }
                    let [a, b, c] = self.what.of(L::load(whole).max(none));
                    let [sum_a, sum_b, sum_c] = of_block;
                    of_block = [sum_a.add(a), sum_b.add(b), sum_c.add(c)];
                }
                for (sum, of_block) in sums.iter_mut().zip(of_block) {
                    *sum += f64::from(of_block.sum());
                }
            }
        }
        sums
    }
}

impl Field<'_> {
    fn sums(&self, what: impl Summand) -> [f64; 3] {
        let logits = self.logits;
        simd::run(self.level, Sums { logits, what })
    }
}

impl Candidates for Field<'_> {
    fn deviation(&mut self) -> f32 {
        // Only the first cut asks, when all are candidates.
        let best = self.best;
        let [count, sum, _] = self.sums(Distances { best, mean: 0.0 });
        let mean = (sum / count) as f32;
        let [.., squares] = self.sums(Distances { best, mean });
        (squares / count).sqrt() as f32
    }

    fn totals(&mut self, scale: f32) -> Totals {
        if !self.best.is_finite() {
            self.make_list();
        }
        if let Some(n) = self.n {
            let mut totals = Totals::default();
            for &packed in &self.list[..n] {
                let d = distance_in(packed);
                let weight = (-d * scale).exp();
                totals.mass += mass(weight);
                totals.moment += if weight > 0.0 { mass(weight * d) } else { 0 };
                totals.count += 1;
            }
            return totals;
        }
        let best = self.best;
        let [weights, moments, count] = self.sums(Weights { best, scale });
        Totals {
            mass: (weights * MASS_UNIT) as u64,
            moment: (moments * MASS_UNIT) as u64,
            count: count as u32,
        }
    }

    fn first_key(&mut self) -> u32 {
        let mut first = KEY_MAX;
        self.see(0.0, |d, _| first = first.min(key(d)));
        first
    }

    fn last_of_weight(&mut self, wanted: u64) -> u32 {
        // Nothing beyond this weighs as much.
        let limit = -(wanted as f64 / MASS_UNIT).ln() + 0.001;
        let mut last = 0;
        self.see(limit as f32, |d, _| {
            if mass((-d).exp()) >= wanted {
                last = last.max(key(d));
            }
        });
        last
    }

    fn keep(&mut self, cut: Cut) {
        match cut {
            Cut::UpTo(KEY_MAX) | Cut::From(0) => {}
            Cut::UpTo(last) => self.list_up_to(last),
            cut => self.retain(|d| cut.keeps(d)),
        }
    }

    fn keep_best(&mut self, n: u32) {
        let n = n as usize;
        if n >= self.n.unwrap_or(self.logits.len()) {
            return;
        }
        let few = self.best.is_finite() && 2 * n < self.logits.len();
        let nth = if self.n.is_none() && few {
            self.nth_of_all(n)
        } else {
            self.make_list();
            let list = &mut self.list[..self.n.unwrap_or(0)];
            if n > list.len() {
                return;
            }
            distance_in(*list.select_nth_unstable(n - 1).1)
        };
        self.keep(Cut::UpTo(key(nth)));
    }

    fn keep_mass(&mut self, wanted: u64) {
        if self.n.is_none() {
            // As many candidates of less than this weight are together less than what may be left out.
            let left_out = self.totals(1.0).mass.saturating_sub(wanted);
            let least = left_out as f64 / MASS_UNIT / self.logits.len() as f64;
            self.list_up_to(key((0.001 - least.ln()) as f32));
        }
        let limit = self.limit(key, wanted);
        self.keep(Cut::UpTo(limit));
    }

    fn keep_nearest(&mut self, center: f32, wanted: u64) {
        self.make_list();
        let radius = self.limit(|d| key((d - center).abs()), wanted);
        self.keep(Cut::Around { center, radius });
    }

    fn best(&mut self, source: Option<Source>, scale: f32) -> (u32, f32) {
        let Some(source) = source else {
            self.make_list();
            let nearest = self.list[..self.n.unwrap_or(0)].iter().min();
            let packed = nearest.copied().unwrap_or(pack(0.0, self.place));
            return (packed as u32, distance_in(packed));
        };
        let mut race = noise::Race::new(source, scale);
        match self.n {
            Some(n) => {
                for &packed in &self.list[..n] {
                    race.enter(distance_in(packed), packed as u32);
                }
            }
            None => {
                race.enter(0.0, self.place as u32);
                let all = EnterAll {
                    race: &mut race,
                    best: self.best,
                    logits: self.logits,
                };
                simd::run(self.level, all);
            }
        }
        race.winner().unwrap_or((self.place as u32, 0.0))
    }
}
