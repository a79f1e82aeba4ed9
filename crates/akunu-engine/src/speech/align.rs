//! When each token was spoken, from where the decoder looks.
//!
//! Some heads of cross-attention look at the place of the recording that the next token is spoken at. Their
//! probabilities, as a matrix of tokens and positions (of 0.02 s), are normalised over the tokens, smoothed by a median
//! over positions, and averaged over heads. The path from the first token at the first position to the last at the last
//! that collects the most, going on in tokens, in positions or in both (dynamic time warping), says from where to where
//! each token lasts.

/// Positions of the median filter.
const MEDIAN: usize = 7;

/// Queries and keys of one head that aligns.
#[derive(Clone, Debug)]
pub struct AlignmentHead {
    /// (n_tokens, head_dim).
    pub queries: Vec<f32>,
    /// (n_positions, head_dim).
    pub keys: Vec<f32>,
    /// Elements of a head.
    pub head_dim: usize,
}

/// The position at which each of the tokens begins, without the first `skipped`, and the one after the last. Only the
/// first `n_positions` are looked at: the rest of the window is silence behind the end of the recording.
pub fn align(heads: &[AlignmentHead], skipped: usize, n_positions: usize) -> Vec<usize> {
    let n_all = heads.first().map_or(0, AlignmentHead::n_tokens);
    let n_tokens = n_all.saturating_sub(skipped);
    if n_tokens == 0 || n_positions == 0 {
        return vec![0; n_tokens + 1];
    }
    let mut sum = vec![0.0f32; n_tokens * n_positions];
    for head in heads {
        let mut weights = probabilities(head, n_positions);
        normalise(&mut weights, n_positions);
        let rows = weights.chunks_exact(n_positions).skip(skipped);
        for (row, into) in rows.zip(sum.chunks_exact_mut(n_positions)) {
            for (value, into) in median(row).into_iter().zip(into) {
                *into += value / heads.len() as f32;
            }
        }
    }
    warp(&sum, n_tokens, n_positions)
}

impl AlignmentHead {
    fn n_tokens(&self) -> usize {
        self.queries.len() / self.head_dim
    }
}

/// `softmax(q · k / sqrt(head_dim))` over the positions.
fn probabilities(head: &AlignmentHead, n_positions: usize) -> Vec<f32> {
    let dim = head.head_dim;
    let scale = 1.0 / (dim as f32).sqrt();
    let mut weights = Vec::with_capacity(head.n_tokens() * n_positions);
    for query in head.queries.chunks_exact(dim) {
        let keys = head.keys.chunks_exact(dim).take(n_positions);
        let dot = |key: &[f32]| key.iter().zip(query).map(|(k, q)| k * q).sum::<f32>();
        let scores: Vec<f32> = keys.map(|key| scale * dot(key)).collect();
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f32> = scores.iter().map(|score| (score - max).exp()).collect();
        let total: f32 = powers.iter().sum();
        weights.extend(powers.into_iter().map(|power| power / total));
    }
    weights
}

/// Subtracts the mean over the tokens and divides by the deviation, at each position.
fn normalise(weights: &mut [f32], n_positions: usize) {
    let n_tokens = (weights.len() / n_positions.max(1)) as f32;
    for at in 0..n_positions {
        let column = || weights.iter().skip(at).step_by(n_positions);
        let mean = column().sum::<f32>() / n_tokens;
        let variance = column().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n_tokens;
        let deviation = variance.sqrt().max(1e-12);
        for value in weights.iter_mut().skip(at).step_by(n_positions) {
            *value = (*value - mean) / deviation;
        }
    }
}

/// The median of each value and its neighbours; the row is mirrored at its ends.
fn median(row: &[f32]) -> Vec<f32> {
    let half = MEDIAN / 2;
    if row.len() <= half {
        return row.to_vec();
    }
    let last = row.len() - 1;
    let mirrored = |at: isize| {
        let at = at.unsigned_abs();
        if at > last { 2 * last - at } else { at }
    };
    let of = |at: usize| {
        let mut window = [0.0f32; MEDIAN];
        for (i, value) in window.iter_mut().enumerate() {
            *value = row[mirrored(at as isize + i as isize - half as isize)];
        }
        window.sort_unstable_by(f32::total_cmp);
        window[half]
    };
    (0..row.len()).map(of).collect()
}

/// The step by which a cell of the path was reached.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Both,
    Token,
    Position,
}

/// The path through `gain`, (n_tokens, n_positions), that collects the most: where each token begins, and the end.
fn warp(gain: &[f32], n_tokens: usize, n_positions: usize) -> Vec<usize> {
    let width = n_positions + 1;
    // What the best path to each cell costs; the first row and column lie before the matrix.
    let mut before = vec![f32::INFINITY; width];
    before[0] = 0.0;
    let mut steps = vec![Step::Both; n_tokens * n_positions];
    for (token, row) in gain.chunks_exact(n_positions).enumerate() {
        let mut costs = vec![f32::INFINITY; width];
        for (at, gain) in row.iter().enumerate() {
            let options = [
                (before[at], Step::Both),
                (before[at + 1], Step::Token),
                (costs[at], Step::Position),
            ];
            let (cost, step) = options
                .into_iter()
                .reduce(|best, other| if other.0 < best.0 { other } else { best })
                .unwrap_or((0.0, Step::Both));
            costs[at + 1] = cost - gain;
            steps[token * n_positions + at] = step;
        }
        before = costs;
    }
    trace(&steps, n_tokens, n_positions)
}

/// Follows the steps back from the last cell.
fn trace(steps: &[Step], n_tokens: usize, n_positions: usize) -> Vec<usize> {
    let mut begins = vec![0; n_tokens + 1];
    begins[n_tokens] = n_positions;
    let (mut token, mut at) = (n_tokens - 1, n_positions - 1);
    loop {
        begins[token] = at;
        let step = steps[token * n_positions + at];
        if token == 0 && (at == 0 || step != Step::Position) {
            break;
        }
        if step != Step::Position {
            token = token.saturating_sub(1);
        }
        if step != Step::Token {
            at = at.saturating_sub(1);
        }
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of four elements, whose queries look exactly at given positions.
    fn head(places: &[usize], n_positions: usize) -> AlignmentHead {
        let angle = |at: usize| at as f32 * 3.0 / n_positions as f32;
        let vector = |at: usize, height: f32| {
            let angle = angle(at);
            [height * angle.cos(), height * angle.sin(), 0.0, 0.0]
        };
        AlignmentHead {
            queries: places.iter().flat_map(|&at| vector(at, 400.0)).collect(),
            keys: (0..n_positions).flat_map(|at| vector(at, 1.0)).collect(),
            head_dim: 4,
        }
    }

    /// Fails when the path leaves where the heads look by more than a few positions, or goes back.
    #[test]
    fn tokens_begin_where_the_heads_look() {
        let places = [4, 30, 31, 60, 90];
        let heads = [head(&places, 100), head(&places, 100)];
        let begins = align(&heads, 0, 100);
        assert_eq!(begins.len(), 6);
        assert_eq!((begins[0], begins[5]), (0, 100));
        assert!(begins.windows(2).all(|pair| pair[0] <= pair[1]));
        for (token, &place) in places.iter().enumerate() {
            let (from, to) = (begins[token], begins[token + 1]);
            assert!(from <= place + 4 && place <= to + 4, "{begins:?}");
        }
    }

    /// Fails when the path through a plain matrix is not the best one.
    #[test]
    fn the_path_collects_the_most() {
        // Two tokens: the first is looked for in 0..3, the second in 3..5.
        let gain = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0, 1.0];
        assert_eq!(warp(&gain, 2, 5), [0, 3, 5]);
    }

    /// Fails when an outlier survives, or when the ends of a row are read beyond.
    #[test]
    fn the_median_removes_single_peaks() {
        let row = [0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(median(&row), [0.0; 8]);
        assert_eq!(median(&[1.0, 2.0]), [1.0, 2.0]);
    }

    /// Fails when nothing to align causes a panic.
    #[test]
    fn nothing_is_aligned_with_nothing() {
        assert_eq!(align(&[], 0, 0), [0]);
        assert_eq!(align(&[], 3, 5), [0]);
        assert_eq!(align(&[head(&[1, 2, 3], 9)], 1, 0), [0, 0, 0]);
        assert_eq!(align(&[head(&[1, 2, 3], 9)], 7, 9), [0]);
        assert_eq!(align(&[head(&[1, 2, 3], 9)], 1, 1).len(), 3);
    }
}
