//! Where two devices choose different tokens: a near tie, or a fault.
//!
//! Devices add numbers in different orders, so that their logits differ a little. Two tokens whose logits are closer than that can
//! change places on a correct device, and the texts go apart from there on.

/// What becomes of a token when logits are as far apart as those of two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The token that was expected, and the one that was chosen.
    pub tokens: [u32; 2],
    /// The logits of both where the first was chosen.
    pub expected: [f32; 2],
    /// The logits of both where the second was chosen.
    pub found: [f32; 2],
    /// The largest difference of any logit between the two devices.
    pub difference: f32,
}

impl Choice {
    /// Compares two choices from the logits of both devices; `None` if a token is beyond them.
    pub fn new(tokens: [u32; 2], expected: &[f32], found: &[f32]) -> Option<Choice> {
        let of = |logits: &[f32]| {
            let [a, b] = tokens.map(|token| logits.get(token as usize).copied());
            Some([a?, b?])
        };
        let pairs = expected.iter().zip(found);
        let difference = pairs.map(|(e, f)| (e - f).abs()).fold(0.0, f32::max);
        Some(Choice {
            tokens,
            expected: of(expected)?,
            found: of(found)?,
            difference,
        })
    }

    /// Whether both tokens could be the best: each logit may be wrong by the difference of the devices.
    pub fn is_near_tie(&self) -> bool {
        let gap = |[a, b]: [f32; 2]| (a - b).abs();
        gap(self.expected).max(gap(self.found)) <= 2.0 * self.difference
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([a, b], [ea, eb], [fa, fb]) = (self.tokens, self.expected, self.found);
        write!(
            f,
            "token {b} instead of {a}: logits {ea} and {eb} expected, {fa} and {fb} found, any logit differs by at most {}",
            self.difference
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when rounding fails a device, or a device with other logits passes.
    #[test]
    fn only_logits_within_the_difference_are_a_tie() {
        let tie = Choice::new([0, 1], &[5.0, 4.999, 1.0], &[4.999, 5.0, 1.001]).unwrap();
        assert!(tie.is_near_tie());
        assert!(
            tie.to_string()
                .starts_with("token 1 instead of 0: logits 5 and 4.999")
        );
        let fault = Choice::new([0, 1], &[5.0, 3.0], &[5.001, 3.001]).unwrap();
        assert!(!fault.is_near_tie());
        assert_eq!(Choice::new([0, 7], &[1.0], &[1.0]), None);
    }
}
