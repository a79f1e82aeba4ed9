//! `/metrics`, as Prometheus reads it: OpenMetrics.
//!
//! Names that begin with `akunu_` are ours. Those that begin with `vllm:` are what routers in front of several servers
//! look for.

mod rows;

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

use self::rows::ROWS;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{Answer, Content, MediaType};
use crate::stats::{HttpRequests, Kind, Stats};

/// What `Content-Type` calls this format, and with which parameters.
const FORMAT: &str = "application/openmetrics-text";
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters as text.
pub(crate) struct Exposition(String);

/// All counters: of HTTP requests, and of all models that have been loaded.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Exposition, ApiError> {
    let entries = app.models.all().iter();
    let models = entries.filter_map(|entry| {
        let kind = *entry.stats.kind.get()?;
        Some(Counted {
            name: entry.name.clone(),
            kind,
            stats: Arc::clone(&entry.stats),
        })
    });
    let text = render(models.collect(), &app.http_requests);
    let text = text.map_err(|error| ApiError::internal(&error))?;
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

fn render(models: Vec<Counted>, http: &HttpRequests) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register(
        "akunu_http_requests",
        "HTTP requests by method, path and status",
        http.0.clone(),
    );
    registry.register_collector(Box::new(AllCounted(models)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// A model that has been loaded.
#[derive(Debug)]
struct Counted {
    name: String,
    kind: Kind,
    stats: Arc<Stats>,
}

#[derive(Debug)]
struct AllCounted(Vec<Counted>);

impl Collector for AllCounted {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for row in ROWS {
            let having = || self.0.iter().filter(|model| row.of.contains(&model.kind));
            let Some(first) = having().next() else {
                continue;
            };
            for name in row.names {
                let kind = (row.metric)(&first.stats).metric_type();
                let mut family = encoder.encode_descriptor(name, row.help, None, kind)?;
                for model in having() {
                    let labels = [("model_name", model.name.as_str())];
                    (row.metric)(&model.stats).encode(family.encode_family(&labels)?)?;
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
        let stats = Arc::new(Stats::default());
        stats.first_token(Duration::from_millis(20));
        stats.first_token(Duration::from_secs(100));
        let counted = |name: &str, kind, stats| Counted {
            name: name.into(),
            kind,
            stats,
        };
        let models = vec![
            counted("a \"quoted\" name", Kind::Answers, stats),
            counted("b", Kind::Answers, Arc::default()),
            counted("c", Kind::Recordings, Arc::default()),
        ];
        let text = render(models, &HttpRequests::default()).expect("metrics");
        let values = text.lines().filter(|line| !line.starts_with('#'));
        let values = values.filter(|line| !line.starts_with("process_"));
        for value in values {
            let (name, number) = value.rsplit_once(' ').expect("a number");
            assert!(number.parse::<f64>().is_ok(), "{value}");
            let is_labelled = ["a \\\"quoted\\\" name", "b", "c"]
                .iter()
                .any(|model| name.contains(&format!("model_name=\"{model}\"")));
            assert!(is_labelled, "{value}");
        }
        for row in ROWS {
            for name in row.names {
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
        assert!(text.contains("akunu_heard_seconds_total{model_name=\"c\"} 0"));
        assert!(!text.contains("akunu_generated_tokens_total{model_name=\"c\"}"));
        assert!(text.ends_with("# EOF\n"));
    }
}
