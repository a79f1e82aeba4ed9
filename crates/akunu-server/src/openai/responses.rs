//! `/v1/responses`: one answer, as a list of items. Nothing is kept here, so that `previous_response_id` cannot be had.

mod answer;
mod input;
mod stream;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use self::answer::{Head, ResponsesEcho};
use self::input::InputItem;
use self::stream::Items;
use super::format::ResponseFormat;
use super::tools::{Function, ToolChoice, tools};
use crate::app::App;
use crate::body::All;
use crate::content::Content;
use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Conversation, Draw, Format, Wish, ask};
use crate::stream::Reply;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResponsesRequest {
    model: Option<String>,
    input: Content<InputItem>,
    instructions: Option<String>,
    #[schemars(range(min = 1))]
    max_output_tokens: Option<usize>,
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    top_p: Option<f32>,
    /// Here the function is not in an object of its own.
    #[serde(default)]
    tools: Vec<Function>,
    tool_choice: Option<ToolChoice>,
    text: Option<ResponsesText>,
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize, JsonSchema)]
struct ResponsesText {
    format: Option<ResponseFormat>,
}

/// Answers.
pub(crate) async fn responses(
    State(app): State<App>,
    All((request, told)): All<(ResponsesRequest, ResponsesEcho)>,
) -> Result<Reply<Items>, ApiError> {
    let limits = app.options.limits;
    let wish = Wish {
        max_tokens: request.max_output_tokens,
        draw: Draw {
            temperature: request.temperature,
            top_p: request.top_p,
            ..Draw::default()
        },
        ..Wish::default()
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let is_stream = request.stream;
    let conversation = Conversation {
        one_call: told.parallel_tool_calls == Some(false),
        ..request.conversation(&limits)?
    };
    let answers = ask(&engine, conversation.prompt(&engine).await?, wish)?;
    let writer = Items::new(Head::new(name, told));
    Reply::new(answers, writer, is_stream, limits.answering).await
}

impl ResponsesRequest {
    fn conversation(self, limits: &Limits) -> Result<Conversation, ApiError> {
        if self.previous_response_id.is_some() {
            let message = "previous_response_id: this server keeps no answers; send the whole conversation as input";
            return Err(ApiError::bad_field("previous_response_id", message));
        }
        let (tools, must_call) = tools(self.tools, self.tool_choice, limits)?;
        let format = self.text.and_then(|text| text.format);
        Ok(Conversation {
            messages: input::messages(self.instructions, self.input)?,
            tools,
            format: match format {
                _ if must_call => Format::Call,
                Some(format) => format.format("text.format")?,
                None => Format::Free,
            },
            ..Conversation::default()
        })
    }
}
