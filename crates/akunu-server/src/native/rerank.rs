//! `/v1/rerank`, `/v2/rerank` and `/rerank`: documents by how well they answer a question, as Jina and Cohere have it.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::blocking::elsewhere;
use crate::body::Json;
use crate::clock::new_id;
use crate::error::ApiError;
use crate::loaded::Loaded;
use crate::openai::PromptUsage;
use crate::stats::Task;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RerankRequest {
    model: Option<String>,
    query: String,
    #[schemars(length(min = 1, max = 2048))]
    documents: Vec<Document>,
    /// Only so many of the best.
    top_n: Option<usize>,
    #[serde(default)]
    return_documents: bool,
}

/// A document, as a text or in an object.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text or an object with text is wanted")]
enum Document {
    Text(String),
    Object { text: String },
}

/// The best documents first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ranking {
    id: String,
    model: String,
    results: Vec<RankedDocument>,
    usage: PromptUsage,
}

#[derive(Serialize, JsonSchema)]
struct RankedDocument {
    index: usize,
    relevance_score: f32,
    /// If documents were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<RankedText>,
}

#[derive(Serialize, JsonSchema)]
struct RankedText {
    text: String,
}

/// Ranks documents.
pub(crate) async fn rerank(
    State(app): State<App>,
    Json(request): Json<RerankRequest>,
) -> Result<axum::Json<Ranking>, ApiError> {
    let entry = std::sync::Arc::clone(app.models.find(request.model.as_deref())?);
    let Loaded::Reranker(reranker) = app.models.load(request.model.as_deref()).await? else {
        let message = "this model ranks nothing; a reranker (a cross-encoder) does";
        return Err(ApiError::bad_field("model", message));
    };
    let (n_documents, max) = (request.documents.len(), app.options.limits.texts);
    if n_documents == 0 || n_documents > max {
        let message = format!("there are {n_documents} documents; there must be 1 to {max}");
        return Err(ApiError::bad_field("documents", message));
    }
    let documents: Vec<String> = request.documents.into_iter().map(Document::text).collect();
    let query = request.query;
    let mut task = Task::new(&entry.stats);
    task.run();
    let ranked = elsewhere(move || {
        let rankings = reranker.rank(&query, &documents, false);
        let rankings = rankings.map_err(|error| match error {
            akunu::Error::Engine(akunu::EngineError::EmptyText) => {
                ApiError::bad_field("query", "the query is empty")
            }
            akunu::Error::EmptyText { .. } => ApiError::bad_field("documents", error.to_string()),
            other => other.into(),
        });
        Ok((rankings?, documents))
    })
    .await;
    task.end_with(&ranked);
    let (rankings, documents) = ranked?;
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by(|&a, &b| rankings[b].score.total_cmp(&rankings[a].score));
    order.truncate(request.top_n.unwrap_or(usize::MAX));
    let results = order.into_iter().map(|at| RankedDocument {
        index: at,
        relevance_score: relevance(rankings[at].score),
        document: request.return_documents.then(|| RankedText {
            text: documents[at].clone(),
        }),
    });
    let n_tokens = rankings.iter().map(|ranking| ranking.n_tokens).sum();
    entry.stats.read(n_documents, n_tokens);
    Ok(axum::Json(Ranking {
        id: new_id("rank_"),
        model: entry.name.clone(),
        results: results.collect(),
        usage: PromptUsage::new(n_tokens),
    }))
}

impl Document {
    fn text(self) -> String {
        match self {
            Document::Text(text) | Document::Object { text } => text,
        }
    }
}

/// The model's own number as a share from 0 to 1.
fn relevance(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}
