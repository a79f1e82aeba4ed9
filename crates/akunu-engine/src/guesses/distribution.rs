//! What is said with guesses is drawn as without them.

use akunu_kernels::case::Rng;

use super::Tree;

const N_TOKENS: usize = 5;
/// What a sum of 24 degrees of freedom exceeds once in a thousand times.
const LIMIT: f64 = 52.0;

/// A random model: how likely each token is after another one.
fn probability(after: u32, token: u32) -> f64 {
    let weight = |token: u32| f64::from(1 + (7 * after + 5 * token + after * token) % 11);
    let sum: f64 = (0..N_TOKENS as u32).map(weight).sum();
    weight(token) / sum
}

/// A token after another one, with the noise of a position.
fn draw(after: u32, noise: f64) -> u32 {
    let mut left = noise;
    let mut tokens = 0..N_TOKENS as u32;
    let token = tokens.find(|&token| {
        left -= probability(after, token);
        left < 0.0
    });
    token.unwrap_or(N_TOKENS as u32 - 1)
}

/// The chi-squared distance of the next two tokens from the model's probabilities, over some answers with random trees of
/// guesses, for a rule of acceptance.
fn distance(n: usize, accept: impl Fn(&Tree, &[u32]) -> Vec<u32>) -> f64 {
    let mut rng = Rng::new(11);
    let mut noise = || f64::from(rng.below(1 << 24)) / f64::from(1 << 24);
    let mut counts = [[0.0; N_TOKENS]; N_TOKENS];
    for _ in 0..n {
        let guess = |noise: f64| (noise * N_TOKENS as f64) as u32;
        let mut tree = Tree::chain(&[guess(noise()), guess(noise())]);
        tree.add(None, &[guess(noise()), guess(noise())]);
        tree.add(Some(0), &[guess(noise())]);
        // Rows of one position have the same noise.
        let noises = [noise(), noise(), noise()];
        let mut chosen = vec![draw(0, noises[0])];
        let tokens: Vec<u32> = tree.tokens().collect();
        chosen.extend((0..tree.len()).map(|node| draw(tokens[node], noises[1 + tree.depth(node)])));
        let mut said = accept(&tree, &chosen);
        if said.len() < 2 {
            said.push(draw(said[0], noises[1]));
        }
        counts[said[0] as usize][said[1] as usize] += 1.0;
    }
    let mut sum = 0.0;
    for (a, counts) in (0..).zip(counts) {
        for (b, count) in (0..).zip(counts) {
            let expected = n as f64 * probability(0, a) * probability(a, b);
            sum += (count - expected) * (count - expected) / expected;
        }
    }
    sum
}

/// What is said with trees of guesses has the model's distribution. Fails for a rule that keeps guesses which were not
/// chosen: the planted rules show it.
#[test]
fn acceptance_keeps_the_distribution() {
    let right = distance(100_000, |tree, chosen| tree.accept(chosen).tokens);
    assert!(right < LIMIT, "{right}");
    // The first guess is kept whenever it is as likely as what was chosen.
    let hopeful = distance(20_000, |tree, chosen| {
        let first = tree.nodes[0].token;
        match probability(0, first) >= probability(0, chosen[0]) {
            true => vec![first, chosen[1]],
            false => tree.accept(chosen).tokens,
        }
    });
    assert!(hopeful > 2.0 * LIMIT, "{hopeful}");
    // A row that sees the trunk instead of its own branch.
    let seeing = distance(20_000, |tree, chosen| {
        let accepted = tree.accept(chosen);
        match accepted.path.first() {
            Some(2) => vec![accepted.tokens[0], chosen[1]],
            _ => accepted.tokens,
        }
    });
    assert!(seeing > 2.0 * LIMIT, "{seeing}");
}
