//! `/health`

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// Whether requests can be answered.
pub(crate) async fn health(State(_): State<App>) -> Result<Json<Health>, ApiError> {
    Ok(Json(Health { status: "ok" }))
}
