//! `/metrics`, as Prometheus reads it.
//!
//! Names that begin with `akunu_` are ours. Those that begin with `vllm:` are what routers in front of several servers
//! look for.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::engine::{BOUNDS, Histogram, Stats};
use crate::router::App;

/// A counter or gauge: its names, its kind, its help, its value.
struct Row {
    names: &'static [&'static str],
    kind: &'static str,
    help: &'static str,
    value: fn(&Stats) -> f64,
}

fn load(counter: &AtomicU64) -> f64 {
    counter.load(Relaxed) as f64
}

const ROWS: &[Row] = &[
    Row {
        names: &["akunu_requests_running", "vllm:num_requests_running"],
        kind: "gauge",
        help: "Sequences that step now.",
        value: |stats| load(&stats.running),
    },
    Row {
        names: &["akunu_requests_waiting", "vllm:num_requests_waiting"],
        kind: "gauge",
        help: "Sequences that wait for a place.",
        value: |stats| load(&stats.waiting),
    },
    Row {
        names: &["akunu_cache_use", "vllm:kv_cache_usage_perc"],
        kind: "gauge",
        help: "Share of the tokens that all sequences could hold, 0 to 1.",
        value: |stats| load(&stats.held_tokens) / stats.most_tokens.max(1) as f64,
    },
    Row {
        names: &["akunu_pages_in_use"],
        kind: "gauge",
        help: "Pages of keys and values that sequences have.",
        value: |stats| load(&stats.pages),
    },
    Row {
        names: &["akunu_requests_total"],
        kind: "counter",
        help: "Answers that were asked for.",
        value: |stats| load(&stats.requests),
    },
    Row {
        names: &["akunu_requests_given_up_total"],
        kind: "counter",
        help: "Answers whose clients went away.",
        value: |stats| load(&stats.given_up),
    },
    Row {
        names: &["akunu_requests_failed_total"],
        kind: "counter",
        help: "Answers that failed.",
        value: |stats| load(&stats.failures),
    },
    Row {
        names: &["akunu_prompt_tokens_total", "vllm:prompt_tokens_total"],
        kind: "counter",
        help: "Tokens of prompts.",
        value: |stats| load(&stats.prompt_tokens),
    },
    Row {
        names: &["akunu_cached_tokens_total", "vllm:prefix_cache_hits_total"],
        kind: "counter",
        help: "Tokens of prompts that needed not be read again.",
        value: |stats| load(&stats.cached_tokens),
    },
    Row {
        names: &[
            "akunu_generated_tokens_total",
            "vllm:generation_tokens_total",
        ],
        kind: "counter",
        help: "Tokens of answers.",
        value: |stats| load(&stats.generated_tokens),
    },
    Row {
        names: &[
            "akunu_guessed_tokens_total",
            "vllm:spec_decode_num_draft_tokens_total",
        ],
        kind: "counter",
        help: "Tokens that were guessed ahead.",
        value: |stats| load(&stats.guessed_tokens),
    },
    Row {
        names: &[
            "akunu_right_guesses_total",
            "vllm:spec_decode_num_accepted_tokens_total",
        ],
        kind: "counter",
        help: "Guessed tokens that were right.",
        value: |stats| load(&stats.right_guesses),
    },
    Row {
        names: &["akunu_steps_total"],
        kind: "counter",
        help: "Steps of the batch.",
        value: |stats| load(&stats.steps),
    },
];

/// All counters of all models that are loaded.
pub(crate) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    let entries = app.models.all().iter();
    let loaded = entries.filter_map(|entry| Some((entry.name.clone(), entry.loaded()?)));
    let loaded: Vec<_> = loaded.collect();
    let models: Vec<(&str, &Stats)> = loaded
        .iter()
        .map(|(name, engine)| (name.as_str(), &*engine.stats))
        .collect();
    let text = render(&models) + &memory();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// What this process has in memory, where the system says so, under the name that all exporters give it.
fn memory() -> String {
    let mut out = String::new();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    if let Some(kilobytes) = kilobytes {
        let name = "process_resident_memory_bytes";
        head(&mut out, name, "gauge", "Bytes of this process in memory.");
        let _ = writeln!(out, "{name} {}", kilobytes * 1024);
    }
    out
}

fn render(models: &[(&str, &Stats)]) -> String {
    let mut out = String::new();
    for row in ROWS {
        for name in row.names {
            head(&mut out, name, row.kind, row.help);
            for (model, stats) in models {
                line(&mut out, name, &labels(model), (row.value)(stats));
            }
        }
    }
    for (names, help, of) in HISTOGRAMS {
        for name in *names {
            head(&mut out, name, "histogram", help);
            for (model, stats) in models {
                histogram(&mut out, name, model, of(stats));
            }
        }
    }
    out
}

/// A histogram: its names, its help, and where it is.
type Times = (
    &'static [&'static str],
    &'static str,
    fn(&Stats) -> &Histogram,
);

const HISTOGRAMS: &[Times] = &[
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

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(out: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(out, "{name}{{{labels}}} {value}");
}

fn labels(model: &str) -> String {
    let escaped = model.replace('\\', "\\\\").replace('"', "\\\"");
    format!("model_name=\"{}\"", escaped.replace('\n', " "))
}

fn histogram(out: &mut String, name: &str, model: &str, times: &Histogram) {
    let model = labels(model);
    let bucket = format!("{name}_bucket");
    for (bound, count) in BOUNDS.iter().zip(times.up_to()) {
        line(
            out,
            &bucket,
            &format!("{model},le=\"{bound}\""),
            count as f64,
        );
    }
    let count = times.count() as f64;
    line(out, &bucket, &format!("{model},le=\"+Inf\""), count);
    line(out, &format!("{name}_sum"), &model, times.seconds());
    line(out, &format!("{name}_count"), &model, count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_the_process_is_told() {
        let told = memory();
        let bytes = told.trim_end().rsplit(' ').next().expect("a number");
        assert!(bytes.parse::<u64>().expect("bytes") > 1 << 20, "{told}");
    }

    /// Breaks when a line is not of the form that Prometheus reads.
    #[test]
    fn every_line_has_a_name_labels_and_a_number() {
        let stats = Stats::new(8, 4096);
        stats.first_token(std::time::Duration::from_millis(20));
        let text = render(&[("a \"quoted\" name", &stats)]);
        let values = text.lines().filter(|line| !line.starts_with('#'));
        for value in values {
            let (name, number) = value.rsplit_once(' ').expect("a number");
            assert!(number.parse::<f64>().is_ok(), "{value}");
            assert!(
                name.contains("{model_name=\"a \\\"quoted\\\" name\""),
                "{value}"
            );
        }
        assert!(text.contains("akunu_first_token_seconds_bucket"));
        assert!(text.contains("le=\"0.025\"} 1\n") && text.contains("le=\"0.01\"} 0\n"));
    }
}
