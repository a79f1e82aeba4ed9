//! Logits as log probabilities, on the host: `logit - max - ln Σ exp(logit - max)`.
//!
//! It stands here and not in the engine because tests compile the engine without optimisation, and score long texts.

/// What turns the logits of a row into log probabilities.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    max: f32,
    /// ln Σ exp(logit - max)
    log_sum: f64,
}

impl LogScale {
    /// The scale of these logits, which are all that there are.
    pub fn of(logits: &[f32]) -> LogScale {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let terms = logits.iter().map(|&logit| f64::from((logit - max).exp()));
        let log_sum = terms.sum::<f64>().ln();
        LogScale { max, log_sum }
    }

    /// The log probability of one of them.
    pub fn log_probability(&self, logit: f32) -> f32 {
        (f64::from(logit - self.max) - self.log_sum) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::LogScale;

    fn log_probability(logits: &[f32], token: usize) -> f32 {
        LogScale::of(logits).log_probability(logits[token])
    }

    #[test]
    fn probabilities_of_a_row_sum_to_one_whatever_its_offset() {
        for offset in [0.0, 1e4, -1e4] {
            let logits = [1.0, 2.0, -3.0, 0.5].map(|logit| logit + offset);
            let sum: f32 = (0..4)
                .map(|token| log_probability(&logits, token).exp())
                .sum();
            assert!((sum - 1.0).abs() < 1e-3, "{sum} at {offset}");
        }
    }

    #[test]
    fn equal_logits_share() {
        assert_eq!(log_probability(&[0.25; 8], 3), -(8f32.ln()));
    }
}
