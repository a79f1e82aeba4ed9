//! `/metrics`, as Prometheus reads it: OpenMetrics.
//!
//! Names that begin with `akunu_` are ours. Those that begin with `vllm:` are what routers in front of several servers
//! look for.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use schemars::SchemaGenerator;

use crate::app::App;
use crate::engine::Stats;
use crate::error::ApiError;
use crate::reply::{Answer, Content, MediaType};

/// What `Content-Type` calls this format, and with which parameters.
const FORMAT: &str = "application/openmetrics-text";
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters as text.
pub(crate) struct Exposition(String);

/// What is told of a model: its names, its help, and where it is. The names of counters get `_total`.
type Row = (
    &'static [&'static str],
    &'static str,
    fn(&Stats) -> &dyn EncodeMetric,
);

const ROWS: &[Row] = &[
    (
        &["akunu_requests_running", "vllm:num_requests_running"],
        "Sequences that step now.",
        |stats| &stats.running,
    ),
    (
        &["akunu_requests_waiting", "vllm:num_requests_waiting"],
        "Sequences that wait for a place.",
        |stats| &stats.waiting,
    ),
    (
        &["akunu_cache_use", "vllm:kv_cache_usage_perc"],
        "Share of the tokens that all sequences could hold, 0 to 1.",
        |stats| &stats.cache_use,
    ),
    (
        &["akunu_pages_in_use"],
        "Pages of keys and values that sequences have.",
        |stats| &stats.pages,
    ),
    (
        &["akunu_requests"],
        "Answers that were asked for.",
        |stats| &stats.requests,
    ),
    (
        &["akunu_requests_given_up"],
        "Answers whose clients went away.",
        |stats| &stats.given_up,
    ),
    (
        &["akunu_requests_failed"],
        "Answers that failed.",
        |stats| &stats.failures,
    ),
    (
        &["akunu_prompt_tokens", "vllm:prompt_tokens"],
        "Tokens of prompts.",
        |stats| &stats.prompt_tokens,
    ),
    (
        &["akunu_cached_tokens", "vllm:prefix_cache_hits"],
        "Tokens of prompts that needed not be read again.",
        |stats| &stats.cached_tokens,
    ),
    (
        &["akunu_generated_tokens", "vllm:generation_tokens"],
        "Tokens of answers.",
        |stats| &stats.generated_tokens,
    ),
    (
        &["akunu_guessed_tokens", "vllm:spec_decode_num_draft_tokens"],
        "Tokens that were guessed ahead.",
        |stats| &stats.guessed_tokens,
    ),
    (
        &[
            "akunu_right_guesses",
            "vllm:spec_decode_num_accepted_tokens",
        ],
        "Guessed tokens that were right.",
        |stats| &stats.right_guesses,
    ),
    (&["akunu_steps"], "Steps of the batch.", |stats| {
        &stats.steps
    }),
    (
        &[
            "akunu_first_token_seconds",
            "vllm:time_to_first_token_seconds",
        ],
        "From a request to its first token.",
        |stats| &stats.first,
    ),
    (
        &[
            "akunu_token_gap_seconds",
            "vllm:inter_token_latency_seconds",
        ],
        "From a token to the next of the same answer.",
        |stats| &stats.gap,
    ),
];

/// All counters of all models that are loaded.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Exposition, ApiError> {
    let entries = app.models.all().iter();
    let loaded = entries.filter_map(|entry| {
        let engine = entry.loaded()?;
        Some((entry.name.clone(), Arc::clone(&engine.stats)))
    });
    let text = render(loaded.collect()).map_err(|error| ApiError::internal(&error))?;
    Ok(Exposition(text))
}

impl IntoResponse for Exposition {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, CONTENT_TYPE)], self.0).into_response()
    }
}

impl Answer for Exposition {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        Content::from([(FORMAT, MediaType::of::<str>(schemas))])
    }
}

fn render(models: Vec<(String, Arc<Stats>)>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Loaded(models)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// The models that are loaded now, with their counters.
#[derive(Debug)]
struct Loaded(Vec<(String, Arc<Stats>)>);

impl Collector for Loaded {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (names, help, metric) in ROWS {
            for name in *names {
                let Some((_, first)) = self.0.first() else {
                    continue;
                };
                let kind = metric(first).metric_type();
                let mut family = encoder.encode_descriptor(name, help, None, kind)?;
                for (model, stats) in &self.0 {
                    let labels = [("model_name", model.as_str())];
                    metric(stats).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        // The name that all exporters give it.
        let Some(bytes) = resident_bytes() else {
            return Ok(());
        };
        let gauge = ConstGauge::new(bytes);
        let (name, help) = (
            "process_resident_memory_bytes",
            "Bytes of this process in memory.",
        );
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}

/// What this process has in memory, where the system says so.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_the_process_is_told() {
        let bytes = resident_bytes().expect("a number");
        assert!(bytes > 1 << 20, "{bytes}");
    }

    /// Breaks when a line is not of the form that Prometheus reads, when a name is told of twice, or when a time is counted in
    /// another bucket.
    #[test]
    fn every_line_has_a_name_labels_and_a_number() {
        let stats = Arc::new(Stats::new(8, 4096));
        stats.first_token(Duration::from_millis(20));
        stats.first_token(Duration::from_secs(100));
        let other = Arc::new(Stats::new(1, 1));
        let text = render(vec![
            ("a \"quoted\" name".into(), stats),
            ("b".into(), other),
        ]);
        let text = text.expect("metrics");
        let values = text.lines().filter(|line| !line.starts_with('#'));
        let values = values.filter(|line| !line.starts_with("process_"));
        for value in values {
            let (name, number) = value.rsplit_once(' ').expect("a number");
            assert!(number.parse::<f64>().is_ok(), "{value}");
            let is_labelled = ["a \\\"quoted\\\" name", "b"]
                .iter()
                .any(|model| name.contains(&format!("model_name=\"{model}\"")));
            assert!(is_labelled, "{value}");
        }
        for (names, ..) in ROWS {
            for name in *names {
                let head = format!("# TYPE {name} ");
                assert_eq!(text.matches(&head).count(), 1, "{name}");
            }
        }
        let buckets = |name: &str| -> Vec<u64> {
            let lines = text.lines().filter(|line| line.starts_with(name));
            let lines = lines.filter(|line| line.contains("quoted"));
            let counts = lines.map(|line| line.rsplit(' ').next().unwrap_or_default().parse());
            counts.map(|count| count.expect("a count")).collect()
        };
        assert_eq!(
            buckets("akunu_first_token_seconds_bucket"),
            [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]
        );
        assert!(text.contains("akunu_generated_tokens_total{model_name=\"b\"} 0\n"));
        assert!(text.ends_with("# EOF\n"));
    }
}
