//! The metrics of a model, one row for each counter.

use prometheus_client::encoding::EncodeMetric;

use crate::stats::{Kind, Stats};

/// A metric of a model: its names, its help, the kinds of models that have it, and where it is. The names of counters get
/// `_total`.
pub(super) struct Row {
    pub names: &'static [&'static str],
    pub help: &'static str,
    pub of: &'static [Kind],
    pub metric: fn(&Stats) -> &dyn EncodeMetric,
}

/// A row of the models that write.
const fn written(
    names: &'static [&'static str],
    help: &'static str,
    metric: fn(&Stats) -> &dyn EncodeMetric,
) -> Row {
    Row {
        names,
        help,
        of: &[Kind::Answers],
        metric,
    }
}

/// A row of all models.
const fn of_all(
    names: &'static [&'static str],
    help: &'static str,
    metric: fn(&Stats) -> &dyn EncodeMetric,
) -> Row {
    Row {
        of: &[Kind::Answers, Kind::Texts, Kind::Recordings],
        ..written(names, help, metric)
    }
}

pub(super) const ROWS: &[Row] = &[
    of_all(
        &["akunu_requests_running", "vllm:num_requests_running"],
        "Answers, lists of texts and recordings that are worked on now.",
        |stats| &stats.running,
    ),
    of_all(
        &["akunu_requests_waiting", "vllm:num_requests_waiting"],
        "The same that wait for a place.",
        |stats| &stats.waiting,
    ),
    of_all(
        &["akunu_requests"],
        "Answers, lists of texts and recordings that were asked for.",
        |stats| &stats.requests,
    ),
    of_all(
        &["akunu_requests_given_up"],
        "Those whose clients went away.",
        |stats| &stats.given_up,
    ),
    of_all(&["akunu_requests_failed"], "Those that failed.", |stats| {
        &stats.failures
    }),
    of_all(
        &["akunu_request_seconds", "vllm:e2e_request_latency_seconds"],
        "From a request to the end of its answer.",
        |stats| &stats.whole,
    ),
    Row {
        of: &[Kind::Answers, Kind::Texts],
        ..written(
            &["akunu_prompt_tokens", "vllm:prompt_tokens"],
            "Tokens of prompts and texts.",
            |stats| &stats.prompt_tokens,
        )
    },
    Row {
        of: &[Kind::Answers, Kind::Texts],
        ..written(
            &["akunu_texts"],
            "Texts that became vectors or were ranked.",
            |stats| &stats.texts,
        )
    },
    Row {
        of: &[Kind::Recordings],
        ..written(
            &["akunu_heard_seconds"],
            "Seconds of recordings that were heard to the end.",
            |stats| &stats.heard,
        )
    },
    written(
        &["akunu_cached_tokens", "vllm:prefix_cache_hits"],
        "Tokens of prompts that needed not be read again.",
        |stats| &stats.cached_tokens,
    ),
    written(
        &["akunu_generated_tokens", "vllm:generation_tokens"],
        "Tokens of answers.",
        |stats| &stats.generated_tokens,
    ),
    written(
        &["akunu_guessed_tokens", "vllm:spec_decode_num_draft_tokens"],
        "Tokens that were guessed ahead.",
        |stats| &stats.guessed_tokens,
    ),
    written(
        &[
            "akunu_right_guesses",
            "vllm:spec_decode_num_accepted_tokens",
        ],
        "Guessed tokens that were right.",
        |stats| &stats.right_guesses,
    ),
    written(&["akunu_steps"], "Steps of the batch.", |stats| {
        &stats.steps
    }),
    written(
        &["akunu_cache_use", "vllm:kv_cache_usage_perc"],
        "Share of the tokens that all sequences could hold, 0 to 1.",
        |stats| &stats.cache_use,
    ),
    written(
        &["akunu_pages_in_use"],
        "Pages of keys and values that sequences have.",
        |stats| &stats.pages,
    ),
    written(
        &[
            "akunu_first_token_seconds",
            "vllm:time_to_first_token_seconds",
        ],
        "From a request to its first token.",
        |stats| &stats.first,
    ),
    written(
        &[
            "akunu_token_gap_seconds",
            "vllm:inter_token_latency_seconds",
        ],
        "From a token to the next of the same answer.",
        |stats| &stats.gap,
    ),
];
