//! HTTP requests, by how they were answered.

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// The HTTP requests of a server, by endpoint and status.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpRequests(pub Family<Answered, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    method: &'static str,
    path: String,
    status: u32,
}

/// The label of methods and paths that no endpoint has: clients can send any.
const OTHER: &str = "other";

impl HttpRequests {
    /// Counts a request with the path of its endpoint.
    pub fn count(&self, method: &Method, path: Option<&MatchedPath>, status: StatusCode) {
        let known = ["GET", "POST", "HEAD", "OPTIONS"];
        let found = known.into_iter().find(|known| method == known);
        let answered = Answered {
            method: found.unwrap_or(OTHER),
            path: path.map_or(OTHER, MatchedPath::as_str).to_string(),
            status: status.as_u16().into(),
        };
        self.0.get_or_create(&answered).inc();
    }
}
