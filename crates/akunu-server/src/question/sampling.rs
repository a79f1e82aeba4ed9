//! How tokens are drawn: what a request says, over what suits the model.

use akunu::{Sampling, SamplingOptions, careful_sampling};

use crate::error::ApiError;

/// What a request says about drawing tokens; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draw {
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<i64>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub frequency_penalty: Option<f32>,
    pub presence_penalty: Option<f32>,
    pub seed: Option<i64>,
    /// Further values: the field of the request, the engine's name of it, and the value.
    pub further: Vec<(&'static str, &'static str, f64)>,
}

impl Draw {
    /// The request's values over those that suit a model with these suggestions.
    pub fn sampling(&self, suggested: &SamplingOptions) -> Result<Sampling, ApiError> {
        let share = |p: f32| (0.0..=1.0).contains(&p);
        let check = |name: &'static str, value: Option<f32>, holds: bool, wanted: &str| match value
        {
            Some(found) if !holds => Err(ApiError::bad_field(
                name,
                format!("{name} is {found}, which must be {wanted}"),
            )),
            _ => Ok(()),
        };
        let holds = |value: Option<f32>, test: &dyn Fn(f32) -> bool| value.is_none_or(test);
        let (t, p, m) = (self.temperature, self.top_p, self.min_p);
        let r = self.repetition_penalty;
        let warm = |t| (0.0..=100.0).contains(&t);
        check("temperature", t, holds(t, &warm), "0 or more")?;
        check("top_p", p, holds(p, &share), "0 to 1")?;
        check("min_p", m, holds(m, &share), "0 to 1")?;
        let above = |x: f32| x > 0.0 && x <= 100.0;
        check("repetition_penalty", r, holds(r, &above), "above 0")?;
        let (f, o) = (self.frequency_penalty, self.presence_penalty);
        let small = |x: f32| (-2.0..=2.0).contains(&x);
        check("frequency_penalty", f, holds(f, &small), "-2 to 2")?;
        check("presence_penalty", o, holds(o, &small), "-2 to 2")?;
        let mut options = SamplingOptions {
            temperature: t,
            top_p: p.map(|p| p.max(f32::MIN_POSITIVE)),
            top_k: self.top_k.map(|k| k.clamp(0, i64::from(u32::MAX)) as u32),
            min_p: m,
            repetition_penalty: r,
            frequency_penalty: f,
            presence_penalty: o,
            seed: self.seed.map(i64::cast_unsigned),
            ..SamplingOptions::default()
        };
        for (field, name, value) in &self.further {
            let set = options.set(name, *value);
            set.map_err(|error| ApiError::bad_field(*field, format!("{field}: {error}")))?;
        }
        Ok(options.over(careful_sampling(suggested)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(draw: &Draw) -> String {
        let refused = draw.sampling(&SamplingOptions::default());
        refused.expect_err("out of range").message
    }

    /// Breaks when a value that the engine refuses gets through: a stream would begin and then fail.
    #[test]
    fn values_out_of_range_are_named() {
        let mut draw = Draw {
            temperature: Some(-1.0),
            ..Draw::default()
        };
        assert_eq!(wrong(&draw), "temperature is -1, which must be 0 or more");
        draw.temperature = Some(f32::NAN);
        assert!(wrong(&draw).starts_with("temperature is NaN"));
        draw = Draw {
            top_p: Some(1.5),
            ..Draw::default()
        };
        assert_eq!(wrong(&draw), "top_p is 1.5, which must be 0 to 1");
        draw = Draw {
            presence_penalty: Some(-3.0),
            ..Draw::default()
        };
        assert_eq!(
            wrong(&draw),
            "presence_penalty is -3, which must be -2 to 2"
        );
    }

    #[test]
    fn what_is_not_said_suits_the_model() {
        let suggested = SamplingOptions {
            top_k: Some(20),
            ..SamplingOptions::default()
        };
        let draw = Draw {
            top_p: Some(0.0),
            seed: Some(-1),
            ..Draw::default()
        };
        let sampling = draw.sampling(&suggested).expect("in range");
        assert_eq!((sampling.top_k, sampling.seed), (20, u64::MAX));
        assert!(sampling.top_p > 0.0, "the engine wants more than nothing");
        let greedy = Draw {
            temperature: Some(0.0),
            seed: Some(0),
            ..Draw::default()
        };
        let sampling = greedy.sampling(&suggested).expect("in range");
        assert_eq!(sampling, Sampling::greedy());
    }
}
