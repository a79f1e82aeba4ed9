//! The cases of `row_attention`.

use super::*;
use crate::case::{Case, Rng};

/// Heads, their size, and what the rows are.
struct Setting<'a> {
    label: &'a str,
    heads: (u32, u32),
    head_dim: u32,
    keys: Keys<'a>,
}

enum Keys<'a> {
    /// Texts of these lengths.
    Texts(&'a [u32]),
    /// Texts of these lengths, whose rows see others that are so far away at most.
    Nearby(&'a [u32], u32),
    /// As many rows of each of these sequences, and the keys of a sequence.
    Across(&'a [u32], u32),
}

#[rustfmt::skip]
pub fn of_texts() -> Vec<Case> {
    use Keys::{Nearby, Texts};
    let settings = [
        Setting { label: "one token", heads: (1, 1), head_dim: 4, keys: Texts(&[1]) },
        Setting { label: "short and long texts", heads: (2, 2), head_dim: 32, keys: Texts(&[3, 1, 70, 5]) },
        Setting { label: "an odd head", heads: (3, 3), head_dim: 20, keys: Texts(&[33, 32]) },
        Setting { label: "shared keys", heads: (6, 2), head_dim: 64, keys: Texts(&[40, 9]) },
        Setting { label: "the largest head", heads: (1, 1), head_dim: 256, keys: Texts(&[37]) },
        Setting { label: "neighbours only", heads: (2, 2), head_dim: 32, keys: Nearby(&[3, 70, 1, 9], 1) },
        Setting { label: "a window", heads: (4, 2), head_dim: 64, keys: Nearby(&[5, 200, 17], 16) },
        Setting { label: "a window beyond the text", heads: (1, 1), head_dim: 20, keys: Nearby(&[33, 2], u32::MAX) },
    ];
    settings.iter().map(|setting| case(setting, |k| k)).collect()
}

/// Distances within the reach of the bias, just beyond it and far beyond.
#[rustfmt::skip]
pub fn of_distances() -> Vec<Case> {
    use Keys::{Nearby, Texts};
    let settings = [
        (0, Setting { label: "one bias for all", heads: (2, 2), head_dim: 32, keys: Texts(&[9, 3]) }),
        (4, Setting { label: "short and long texts", heads: (3, 3), head_dim: 20, keys: Texts(&[1, 5, 6, 70, 2]) }),
        (16, Setting { label: "shared keys", heads: (6, 2), head_dim: 64, keys: Texts(&[40, 9]) }),
        (8, Setting { label: "a window", heads: (2, 2), head_dim: 32, keys: Nearby(&[3, 150], 20) }),
        (128, Setting { label: "the largest head", heads: (1, 1), head_dim: 256, keys: Texts(&[137]) }),
    ];
    settings.iter().map(|(bias_reach, setting)| biased_case(setting, *bias_reach)).collect()
}

#[rustfmt::skip]
pub fn across() -> Vec<Case> {
    use Keys::Across;
    let settings = [
        Setting { label: "across, single rows", heads: (2, 2), head_dim: 64, keys: Across(&[1, 1, 1], 75) },
        Setting { label: "across, a prompt and others", heads: (4, 2), head_dim: 36, keys: Across(&[1, 9, 0, 2], 41) },
        Setting { label: "across, the smallest head", heads: (3, 3), head_dim: 4, keys: Across(&[2, 5], 1) },
        Setting { label: "across, the largest head", heads: (2, 1), head_dim: 256, keys: Across(&[5, 1], 64) },
    ];
    settings.iter().map(|setting| case(setting, f16::from_f32)).collect()
}

/// A case with a bias, as large as the scores.
fn biased_case(s: &Setting, bias_reach: u32) -> Case {
    let n_entries = (s.heads.0 * (2 * bias_reach + 1)) as usize;
    let bias = Rng::new(11).floats(n_entries, 3.0);
    case_of(s, bias_reach, |k| k).bind(&bias)
}

fn case<T: bytemuck::Pod>(s: &Setting, store: fn(f32) -> T) -> Case {
    case_of(s, 0, store)
}

/// Sums of at most 200 weights and values in another order, about 1e-6 relative, and exponentials good to 1e-6. The last
/// row is idle and names what there is not. `store` makes a key or a value what the kernel reads.
fn case_of<T: bytemuck::Pod>(s: &Setting, bias_reach: u32, store: fn(f32) -> T) -> Case {
    let mut rows = Vec::new();
    let mut reach = 0;
    let (n_sequences, n_keys) = match s.keys {
        Keys::Texts(lengths) | Keys::Nearby(lengths, _) => {
            for (&length, text) in lengths.iter().zip(0..) {
                rows.extend((0..length).map(|at| Row::of_text(text, at, length)));
            }
            if let Keys::Nearby(_, distance) = s.keys {
                reach = distance;
            }
            (0, 0)
        }
        Keys::Across(counts, n_keys) => {
            for (&count, sequence) in counts.iter().zip(0..) {
                rows.extend((0..count).map(|at| Row::at(sequence, 7 + at)));
            }
            (counts.len() as u32, n_keys)
        }
    };
    rows.push(Row {
        flags: 0,
        ..Row::at(u32::MAX, u32::MAX - 1)
    });
    let params = RowAttentionParams {
        n_rows: rows.len() as u32,
        n_heads: s.heads.0,
        n_kv_heads: s.heads.1,
        head_dim: s.head_dim,
        n_keys,
        n_sequences,
        scale: 1.0 / (s.head_dim as f32).sqrt(),
        reach,
        bias_reach,
        ..Default::default()
    };
    let mut rng = Rng::new(u64::from(s.head_dim));
    let n_queries = rows.len() * (s.heads.0 * s.head_dim) as usize;
    let [texts, key_rows] = n_key_rows(&params);
    let n_numbers = (texts * key_rows * s.heads.1 * s.head_dim) as usize;
    let q = rng.floats(n_queries, 3.0);
    let mut stored = |largest| -> Vec<T> {
        let numbers = rng.floats(n_numbers, largest);
        numbers.into_iter().map(store).collect()
    };
    Case::new(s.label, &params, 1e-11)
        .bind(&q)
        .bind(&stored(3.0))
        .bind(&stored(1.0))
        .bind(&vec![f32::NAN; n_queries])
        .bind(&rows)
}
