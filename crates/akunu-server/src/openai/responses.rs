//! `/v1/responses`: one answer, as a list of items. Conversations are kept for a while, so that the next request can go on with them.

mod answer;
mod input;
mod stream;

use akunu::Message;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use self::answer::{Head, Keeping, ResponsesEcho};
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
    let before = before(&app, told.previous_response_id.as_deref())?;
    let instructions = request.instructions.clone();
    let mut conversation = Conversation {
        one_call: told.parallel_tool_calls == Some(false),
        ..request.conversation(before, &limits)?
    };
    let keeping = told.store.unwrap_or(true).then(|| Keeping {
        app: app.clone(),
        messages: conversation.messages.clone(),
    });
    // They are for this response, and not for those that go on with it.
    let told_first = instructions.map(|text| Message::new("system", text));
    conversation.messages.splice(..0, told_first);
    let answers = ask(&engine, conversation.prompt(&engine).await?, wish)?;
    let writer = Items::new(Head::new(name, told, keeping));
    Reply::new(answers, writer, is_stream, limits.answering).await
}

/// The conversation that a response goes on with.
fn before(app: &App, previous: Option<&str>) -> Result<Vec<Message>, ApiError> {
    let Some(id) = previous else {
        return Ok(Vec::new());
    };
    app.kept.get(id).ok_or_else(|| {
        let message = format!(
            "previous_response_id: the response `{id}` is not kept here, or not any more; send the whole conversation as input"
        );
        ApiError::bad_field("previous_response_id", message)
            .with_code("previous_response_not_found")
    })
}

impl ResponsesRequest {
    /// What is asked, after these messages.
    fn conversation(
        self,
        mut messages: Vec<Message>,
        limits: &Limits,
    ) -> Result<Conversation, ApiError> {
        messages.extend(input::messages(self.input)?);
        let (tools, must_call) = tools(self.tools, self.tool_choice, limits)?;
        let format = self.text.and_then(|text| text.format);
        Ok(Conversation {
            messages,
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
