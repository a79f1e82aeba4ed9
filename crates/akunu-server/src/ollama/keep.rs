//! How long a model stays loaded after a request: `keep_alive`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;

/// Seconds, or a time such as `5m`. 0 unloads the model; every other time is that of the server.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "seconds or a time such as 5m is wanted")]
pub(super) enum KeepAlive {
    Seconds(f64),
    Time(String),
}

/// Units of times, as Go writes them.
const UNITS: [&str; 6] = ["ms", "us", "ns", "s", "m", "h"];

impl KeepAlive {
    /// Whether the model is to be unloaded.
    pub fn is_none(given: Option<&KeepAlive>) -> Result<bool, ApiError> {
        match given {
            None => Ok(false),
            Some(KeepAlive::Seconds(n)) => Ok(*n == 0.0),
            Some(KeepAlive::Time(text)) => {
                let unit = UNITS.iter().find_map(|unit| text.strip_suffix(unit));
                let n: Result<f64, _> = unit.unwrap_or(text).parse();
                let wrong = |_| {
                    let message = format!("keep_alive: `{text}` is not a time such as 5m or 30s");
                    ApiError::bad_field("keep_alive", message)
                };
                Ok(n.map_err(wrong)? == 0.0)
            }
        }
    }

    /// Unloads the model, if that is wanted, as soon as it has answered what it was asked.
    pub fn apply(given: Option<&KeepAlive>, app: &App, model: &str) -> Result<bool, ApiError> {
        let is_none = KeepAlive::is_none(given)?;
        if is_none {
            app.models.find(Some(model))?.forget();
        }
        Ok(is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nothing_unloads() {
        let read = |text: &str| {
            let given: KeepAlive = serde_json::from_str(text).ok()?;
            KeepAlive::is_none(Some(&given)).ok()
        };
        for text in ["0", "0.0", "\"0\"", "\"0s\"", "\"0m\""] {
            assert_eq!(read(text), Some(true), "{text}");
        }
        for text in ["-1", "300", "\"5m\"", "\"-1\"", "\"1h\"", "\"100ms\""] {
            assert_eq!(read(text), Some(false), "{text}");
        }
        for text in ["\"soon\"", "\"\"", "true", "\"5 minutes\""] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
