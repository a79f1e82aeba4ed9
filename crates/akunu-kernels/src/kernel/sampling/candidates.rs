//! The candidates of a choice, and the order in which a rule cuts them.
//!
//! A candidate is a finite logit. Its distance from the best one, `d = best - logit`, is all that counts: its weight is
//! `exp(-d)`, and the better it is, the smaller is d. The [`key`] of a distance is d in units of 2⁻²⁴, cut off at 256 (a
//! weight of `exp(-256)` is 0): whole numbers in the order of the distances, the same on every executor. Weights are
//! summed as whole numbers of units of 2⁻⁴⁰ ([`mass`]), so that a sum does not depend on who adds first.
//!
//! ```text
//! top-n-sigma   d <= n * standard deviation of the logits
//! top-k         the k best
//! typical       |d - mean of d| smallest first, until they weigh typical_p of all: the surprise of a token is
//!               d + ln Z and its expectation H = ln Z + mean of d, so that |surprise - H| = |d - mean of d|
//! top-p         the best, until they weigh top_p of all
//! min-p         d <= d of the best that is left - ln(min_p)
//! XTC           with a chance: nothing that is better than the least probable one of weight >= threshold
//! temperature   fixed, or least + (most - least) * (entropy / ln n)^exponent
//! ```
//!
//! Each cut sees what those before it have kept, and candidates with the key of the last one kept are kept with it.
//! Mirostat takes the place of them all: `(d / temperature + ln Z) / ln 2 <= mu`, and after the draw
//! `mu -= eta * (surprise of the drawn one - tau)`.

use akunu_types::params::SamplingRule;

use super::philox::{open_unit, philox};

/// The key beyond all distances.
pub const KEY_MAX: u32 = u32::MAX;
const MASS_UNIT: f32 = (1u64 << 40) as f32;

/// How far a logit is from the best one.
pub fn distance(best: f32, logit: f32) -> f32 {
    if logit == best { 0.0 } else { best - logit }
}

/// The key of a distance. A limit that is not a number limits nothing.
pub fn key(distance: f32) -> u32 {
    if distance < 256.0 {
        (distance.max(0.0) * (1 << 24) as f32) as u32
    } else {
        KEY_MAX
    }
}

/// A weight as a whole number.
pub fn mass(weight: f32) -> u64 {
    (weight * MASS_UNIT) as u64
}

/// A sum of weights as a number.
pub fn weight(mass: u64) -> f32 {
    mass as f32 / MASS_UNIT
}

/// The share p of a mass, p between 0 and 1; at least 1.
pub fn share(mass: u64, p: f32) -> u64 {
    let factor = (p * (1 << 24) as f32) as u64;
    ((mass >> 24) * factor + (((mass & 0xFF_FFFF) * factor) >> 24)).max(1)
}

/// Sums over candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The weights.
    pub mass: u64,
    /// Weights times distances.
    pub moment: u64,
    /// How many there are.
    pub count: u32,
}

impl Totals {
    /// The mean of the distances.
    fn center(&self) -> f32 {
        self.moment as f32 / self.mass as f32
    }
}

/// What a cut keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// Keys up to this one.
    UpTo(u32),
    /// Keys from this one on.
    From(u32),
    /// Distances that are at most `radius`, a key, away from `center`.
    Around {
        /// A distance.
        center: f32,
        /// The key of the largest difference.
        radius: u32,
    },
}

impl Cut {
    /// Whether it keeps a candidate.
    pub fn keeps(&self, distance: f32) -> bool {
        match *self {
            Cut::UpTo(last) => key(distance) <= last,
            Cut::From(first) => key(distance) >= first,
            Cut::Around { center, radius } => {
                radius == KEY_MAX || key((distance - center).abs()) <= radius
            }
        }
    }
}

/// Where the random numbers of a row come from.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The seed.
    pub seed: [u32; 2],
    /// The position of the row.
    pub position: u32,
}

impl Source {
    /// The random bits of tokens `4 group .. 4 group + 4`.
    pub fn of_tokens(&self, group: u32) -> [u32; 4] {
        philox([group, self.position, 0, 0], self.seed)
    }

    /// The random bits of a token.
    pub fn of_token(&self, token: u32) -> u32 {
        self.of_tokens(token / 4)[token as usize % 4]
    }

    /// A number that has nothing to do with a token.
    fn chance(&self) -> f32 {
        open_unit(philox([0, self.position, 1, 0], self.seed)[0])
    }
}

/// What an executor does with the candidates of a row. There is at least one.
pub trait Candidates {
    /// The standard deviation of all.
    fn deviation(&mut self) -> f32;
    /// The sums with weights `exp(-d * scale)`.
    fn totals(&mut self, scale: f32) -> Totals;
    /// The key of the best one.
    fn first_key(&mut self) -> u32;
    /// The key of the least probable one that weighs at least as much; 0 if none does.
    fn last_of_weight(&mut self, mass: u64) -> u32;
    /// Keeps what a cut keeps.
    fn keep(&mut self, cut: Cut);
    /// Keeps as many of the best, at least 1.
    fn keep_best(&mut self, n: u32);
    /// Keeps the best until they weigh as much.
    fn keep_mass(&mut self, wanted: u64);
    /// Keeps those nearest to a distance until they weigh as much.
    fn keep_nearest(&mut self, center: f32, wanted: u64);
    /// The token and the distance of the one with the largest `noise - d * scale`, the first of equals; without a
    /// source of noise the nearest.
    fn best(&mut self, noise: Option<Source>, scale: f32) -> (u32, f32);
}

/// Chooses a token, and corrects mirostat's bound. The temperature of the rule is not 0.
///
/// It is inlined with all that it calls, so that an executor's loops are compiled with the executor's instructions.
#[inline(always)]
pub fn choose(
    rule: &SamplingRule,
    position: u32,
    mu: &mut f32,
    candidates: &mut impl Candidates,
) -> u32 {
    let source = Source {
        seed: [rule.seed_lo, rule.seed_hi],
        position,
    };
    if rule.mirostat_tau > 0.0 {
        return mirostat(rule, source, mu, candidates);
    }
    cut(rule, source, candidates);
    let temperature = temperature(rule, candidates);
    if temperature > 0.0 {
        candidates.best(Some(source), 1.0 / temperature).0
    } else {
        candidates.best(None, 1.0).0
    }
}

fn cuts(p: f32) -> bool {
    p > 0.0 && p < 1.0
}

#[inline(always)]
fn cut(rule: &SamplingRule, source: Source, candidates: &mut impl Candidates) {
    if rule.n_sigma > 0.0 {
        let limit = key(rule.n_sigma * candidates.deviation());
        candidates.keep(Cut::UpTo(limit));
    }
    if rule.top_k > 0 {
        candidates.keep_best(rule.top_k);
    }
    if cuts(rule.typical_p) {
        let totals = candidates.totals(1.0);
        let center = totals.center();
        candidates.keep_nearest(center, share(totals.mass, rule.typical_p));
    }
    if cuts(rule.top_p) {
        let wanted = share(candidates.totals(1.0).mass, rule.top_p);
        candidates.keep_mass(wanted);
    }
    if rule.min_p > 0.0 {
        // Only typical sampling can have left the best one out.
        let first = if rule.typical_p > 0.0 {
            candidates.first_key()
        } else {
            0
        };
        let limit = key(-rule.min_p.ln()).saturating_add(first);
        candidates.keep(Cut::UpTo(limit));
    }
    let excludes = rule.xtc_probability > 0.0 && rule.xtc_threshold <= 0.5;
    if excludes && source.chance() <= rule.xtc_probability {
        let wanted = share(candidates.totals(1.0).mass, rule.xtc_threshold);
        let first = candidates.last_of_weight(wanted);
        candidates.keep(Cut::From(first));
    }
}

/// The temperature of the draw.
#[inline(always)]
fn temperature(rule: &SamplingRule, candidates: &mut impl Candidates) -> f32 {
    if rule.dynamic_range <= 0.0 {
        return rule.temperature;
    }
    let totals = candidates.totals(1.0);
    if totals.count < 2 {
        return rule.temperature;
    }
    let entropy = weight(totals.mass).ln() + totals.center();
    let share = (entropy / (totals.count as f32).ln()).clamp(0.0, 1.0);
    let least = (rule.temperature - rule.dynamic_range).max(0.0);
    let most = rule.temperature + rule.dynamic_range;
    least + (most - least) * share.powf(rule.dynamic_exponent)
}

#[inline(always)]
fn mirostat(
    rule: &SamplingRule,
    source: Source,
    mu: &mut f32,
    candidates: &mut impl Candidates,
) -> u32 {
    use std::f32::consts::LN_2;
    let scale = 1.0 / rule.temperature;
    let log_total = weight(candidates.totals(scale).mass).ln();
    let limit = key((*mu * LN_2 - log_total) * rule.temperature);
    candidates.keep(Cut::UpTo(limit));
    let log_total = weight(candidates.totals(scale).mass).ln();
    let (token, distance) = candidates.best(Some(source), scale);
    let surprise = (distance * scale + log_total) / LN_2;
    *mu -= rule.mirostat_eta * (surprise - rule.mirostat_tau);
    token
}
