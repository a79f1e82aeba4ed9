//! `draw_f32`: draws the next token of each row from its whole vocabulary, to `tokens[i]` and to the row's history.
//!
//! [`candidates`](super::candidates) has the cuts, their order and the formulas. The draw is the largest of
//! `noise - d / temperature`, where the noise is Gumbel's and comes from Philox(seed; token, position): that is a draw from
//! the softmax of what the cuts have kept. A temperature of 0 takes the best token, the first of equals; so does a row
//! without a finite logit, or with none that is a number. An idle row gets token 0 and no history. Mirostat's bound of each
//! sequence lies in `mu`.
//!
//! Keys and random bits are the same on every executor; `exp` and `log` are not, to the last digit. A choice can differ
//! only where two sums are that close, and the cases stay away from such ties (a test sees to it).

#[cfg(feature = "testing")]
mod cases;

use akunu_types::params::{DrawParams, Row, SamplingRule};

use super::candidates::{Candidates, Cut, KEY_MAX, Source, Totals, choose, distance, key, mass};
use super::philox::gumbel;
use super::{first_largest, note_token};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: DrawParams at 3) {
        logits: read f32 = [p.n_rows, p.vocab_size],
        tokens: write u32 = [p.n_rows],
        history: change u32 = [p.n_sequences, p.history_stride],
        outputs: read u32 = [p.n_rows],
        rows: read Row = [p.row_capacity],
        rules: read SamplingRule = [p.n_sequences],
        mu: change f32 = [p.n_sequences],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("draw_f32", ""),
    family: Family::Sampling,
    source: "draw",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: DrawParams = args.params();
    let n_rows = if p.vocab_size == 0 { 0 } else { p.n_rows };
    Launch::new([n_rows, 1, 1], [chip.max_threads.min(1024), 1, 1])
}

/// The logits count once: which cuts read them again stands in the rules. Of the rest a row each is touched.
fn work(args: &Args, once: Work) -> Work {
    let p: DrawParams = args.params();
    let n = p.n_rows.min(p.n_sequences);
    let history = once.traffic[Buffers::PLACES.history]
        .written
        .min(bytes::<u32>(&[p.n_rows]));
    once.with(Buffers::PLACES.history, Traffic::written(history))
        .with(
            Buffers::PLACES.rows,
            Traffic::read(bytes::<Row>(&[p.n_rows.min(p.row_capacity)])),
        )
        .with(
            Buffers::PLACES.rules,
            Traffic::read(bytes::<SamplingRule>(&[n])),
        )
        .with(Buffers::PLACES.mu, Traffic::both(bytes::<f32>(&[n])))
}

fn twin(t: &mut Twin) {
    let p: DrawParams = t.params();
    let Slices {
        logits,
        tokens,
        history,
        outputs,
        rows,
        rules,
        mu,
    } = Slices::of(t);
    for (at, &output) in outputs.iter().enumerate() {
        let row = &rows[output as usize];
        let mut token = 0;
        if row.is_active() {
            let logits = &logits[at * p.vocab_size as usize..][..p.vocab_size as usize];
            let sequence = row.sequence as usize;
            let mu = &mut mu[sequence];
            token = draw(&rules[sequence], row.position, mu, logits);
            note_token(history, row, p.history_stride, token);
        }
        tokens[at] = token;
    }
}

/// The token that a rule takes of these logits.
fn draw(rule: &SamplingRule, position: u32, mu: &mut f32, logits: &[f32]) -> u32 {
    let place = first_largest(logits.iter().copied()).unwrap_or(0);
    let best = logits[place];
    let is_free = best > f32::NEG_INFINITY && rule.temperature > 0.0;
    if !is_free {
        return place as u32;
    }
    let finite = (0..)
        .zip(logits)
        .filter(|(_, logit)| **logit > f32::NEG_INFINITY);
    let mut list = List(
        finite
            .map(|(id, &logit)| (distance(best, logit), id))
            .collect(),
    );
    choose(rule, position, mu, &mut list)
}

/// Candidates one by one: distance and token.
struct List(Vec<(f32, u32)>);

impl List {
    /// Keys and masses, those with the least keys first.
    fn ranked(&self, key_of: impl Fn(f32) -> u32) -> Vec<(u32, u64)> {
        let pairs = self.0.iter().map(|&(d, _)| (key_of(d), mass((-d).exp())));
        let mut ranked: Vec<(u32, u64)> = pairs.collect();
        ranked.sort_unstable();
        ranked
    }

    fn limit(&self, key_of: impl Fn(f32) -> u32, wanted: u64) -> u32 {
        let mut sum = 0;
        let mut reaches = |&(_, mass): &(u32, u64)| {
            sum += mass;
            sum >= wanted
        };
        let ranked = self.ranked(key_of);
        ranked
            .iter()
            .find(|pair| reaches(pair))
            .map_or(KEY_MAX, |(key, _)| *key)
    }
}

impl Candidates for List {
    fn deviation(&mut self) -> f32 {
        let n = self.0.len() as f64;
        let distances = || self.0.iter().map(|&(d, _)| f64::from(d));
        let mean = distances().sum::<f64>() / n;
        let squares: f64 = distances().map(|d| (d - mean) * (d - mean)).sum();
        (squares / n).sqrt() as f32
    }

    fn totals(&mut self, scale: f32) -> Totals {
        let mut totals = Totals::default();
        for &(d, _) in &self.0 {
            let weight = (-d * scale).exp();
            totals.mass += mass(weight);
            totals.moment += if weight > 0.0 { mass(weight * d) } else { 0 };
            totals.count += 1;
        }
        totals
    }

    fn first_key(&mut self) -> u32 {
        self.ranked(key).first().map_or(0, |(key, _)| *key)
    }

    fn last_of_weight(&mut self, wanted: u64) -> u32 {
        let ranked = self.ranked(key);
        let heavy = ranked.iter().rfind(|(_, mass)| *mass >= wanted);
        heavy.map_or(0, |(key, _)| *key)
    }

    fn keep(&mut self, cut: Cut) {
        self.0.retain(|&(d, _)| cut.keeps(d));
    }

    fn keep_best(&mut self, n: u32) {
        let ranked = self.ranked(key);
        let limit = ranked.get(n as usize - 1).map_or(KEY_MAX, |(key, _)| *key);
        self.keep(Cut::UpTo(limit));
    }

    fn keep_mass(&mut self, wanted: u64) {
        let limit = self.limit(key, wanted);
        self.keep(Cut::UpTo(limit));
    }

    fn keep_nearest(&mut self, center: f32, wanted: u64) {
        let radius = self.limit(|d| key((d - center).abs()), wanted);
        self.keep(Cut::Around { center, radius });
    }

    fn best(&mut self, noise: Option<Source>, scale: f32) -> (u32, f32) {
        let score = |&(d, id): &(f32, u32)| {
            let noise = noise.map_or(0.0, |source| gumbel(source.of_token(id)));
            noise - d * scale
        };
        let at = first_largest(self.0.iter().map(score)).unwrap_or(0);
        let (distance, id) = self.0[at];
        (id, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;

    /// The token of each row of a case, with each rule changed.
    fn tokens(case: &Case, change: impl Fn(&mut SamplingRule)) -> Vec<u32> {
        let mut case = case.clone();
        let mut rules: Vec<SamplingRule> = bytemuck::cast_slice(case.data[5].as_ref()).to_vec();
        rules.iter_mut().for_each(change);
        case.data[5] = akunu_program::AlignedBytes::from_values(&rules);
        bytemuck::cast_slice(case.expected(&ROW)[0].1.as_ref()).to_vec()
    }

    /// The last digit of a sum or a logarithm must not decide a case: no number of a rule that changes a little may
    /// change a token. If this fails, change the case's seed or numbers.
    #[test]
    fn cases_stay_away_from_ties() {
        for case in cases::all() {
            let wanted = tokens(&case, |_| ());
            for factor in [1.0 - 2e-5, 1.0 + 2e-5] {
                let changes: [fn(&mut SamplingRule, f32); 7] = [
                    |rule, f| rule.temperature *= f,
                    |rule, f| rule.n_sigma *= f,
                    |rule, f| rule.typical_p *= f,
                    |rule, f| rule.top_p *= f,
                    |rule, f| rule.min_p *= f,
                    |rule, f| rule.xtc_threshold *= f,
                    |rule, f| rule.dynamic_range *= f,
                ];
                for (at, change) in changes.iter().enumerate() {
                    let found = tokens(&case, |rule| change(rule, factor));
                    assert_eq!(found, wanted, "{}, number {at} times {factor}", case.label);
                }
            }
        }
    }

    /// What the cuts of a rule keep, as tokens in order of their ids.
    fn kept(rule: SamplingRule, logits: &[f32]) -> Vec<u32> {
        let mut found: Vec<u32> = (0..3000)
            .map(|position| draw(&rule, position, &mut 0.0, logits))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Draws from 5 tokens of known probabilities: what a cut keeps comes, and nothing else.
    #[test]
    fn cuts_keep_what_they_say() {
        let logits = [0.1f32, 0.4, 0.05, 0.3, 0.15].map(f32::ln);
        let rule = SamplingRule::PLAIN;
        let all = vec![0, 1, 2, 3, 4];
        for (rule, wanted) in [
            (rule, all.clone()),
            (SamplingRule { top_k: 3, ..rule }, vec![1, 3, 4]),
            (SamplingRule { top_k: 9, ..rule }, all),
            (
                SamplingRule {
                    top_p: 0.69,
                    ..rule
                },
                vec![1, 3],
            ),
            (
                SamplingRule {
                    top_p: 0.71,
                    ..rule
                },
                vec![1, 3, 4],
            ),
            // Of what top-k leaves, the best has 0.57.
            (
                SamplingRule {
                    top_k: 2,
                    top_p: 0.5,
                    ..rule
                },
                vec![1],
            ),
            (
                SamplingRule {
                    min_p: 0.26,
                    ..rule
                },
                vec![1, 3, 4],
            ),
            // H is 1.39; the surprises are 2.3, 0.92, 3.0, 1.2, 1.9.
            (
                SamplingRule {
                    typical_p: 0.2,
                    ..rule
                },
                vec![3],
            ),
            (
                SamplingRule {
                    typical_p: 0.72,
                    ..rule
                },
                vec![1, 3, 4],
            ),
            (
                SamplingRule {
                    top_k: 3,
                    xtc_probability: 1.0,
                    xtc_threshold: 0.3,
                    ..rule
                },
                vec![3, 4],
            ),
            (
                SamplingRule {
                    xtc_probability: 1.0,
                    xtc_threshold: 0.09,
                    ..rule
                },
                vec![0, 2],
            ),
            (
                SamplingRule {
                    xtc_probability: 1.0,
                    xtc_threshold: 0.45,
                    ..rule
                },
                vec![0, 1, 2, 3, 4],
            ),
            (
                SamplingRule {
                    n_sigma: 0.5,
                    ..rule
                },
                vec![1, 3],
            ),
        ] {
            assert_eq!(kept(rule, &logits), wanted, "{rule:?}");
        }
    }
}
