// The npm packages `openai` and `ai` against a running server: chat, stream, tools, schema, embeddings, errors, cancellation.
//
//     node clients.mjs http://127.0.0.1:8080 talk.wav
//
// needs the packages openai, ai, @ai-sdk/openai-compatible and zod beside it, and a server of a model that generates text and of
// whisper-tiny.en. `cargo xtask clients` installs them, starts a server and runs this.

import { createReadStream } from "node:fs";
import { createRequire } from "node:module";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embedMany, generateObject, generateText, streamText, tool } from "ai";
import { z } from "zod";

const base = process.argv[2].replace(/\/$/, "");
const speech = process.argv[3];
const gpt = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const model = (await gpt.models.list()).data[0].id;
const vercel = createOpenAICompatible({
  name: "akunu", baseURL: `${base}/v1`, supportsStructuredOutputs: true, includeUsage: true });
const chat = vercel.chatModel(model);
const question = "What is the capital of France?";
const messages = [{ role: "user", content: question }];
const city = z.object({ name: z.enum(["Paris", "Rome"]), people: z.int() });

function expect(condition, what) {
  if (!condition) throw new Error(typeof what === "string" ? what : JSON.stringify(what));
}

async function metric(name) {
  const text = await (await fetch(`${base}/metrics`)).text();
  return Number(text.split("\n").find((line) => line.startsWith(`${name}{`)).split(" ").pop());
}

async function nobodyIsLeft() {
  for (let n = 0; n < 200; n++) {
    if ((await metric("akunu_requests_running")) === 0 && (await metric("akunu_pages_in_use")) === 0) return;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error("a sequence is left");
}

async function fails(asked, check) {
  let answer;
  try {
    answer = await asked();
  } catch (error) {
    expect(check(error), `another error: ${error}`);
    return;
  }
  throw new Error(`was answered: ${JSON.stringify(answer)}`);
}

const tests = {
  async openai_chat() {
    const answer = await gpt.chat.completions.create({ model, messages, temperature: 0, max_tokens: 24 });
    expect(answer.choices[0].message.content.includes("Paris"), answer);
    expect(answer.usage.total_tokens === answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage);
  },

  async openai_stream() {
    const asked = { model, messages, temperature: 0, max_tokens: 24 };
    const whole = await gpt.chat.completions.create(asked);
    let text = "";
    let usage;
    for await (const chunk of await gpt.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text === whole.choices[0].message.content, text);
    expect(usage.completion_tokens === whole.usage.completion_tokens, usage);
    const final = await gpt.chat.completions.stream(asked).finalChatCompletion();
    expect(final.choices[0].message.content === text, final);
  },

  async openai_tools() {
    const calls = [];
    const runner = gpt.chat.completions.runTools({
      model, messages, max_tokens: 200, tool_choice: { type: "function", function: { name: "get_weather" } },
      tools: [{
        type: "function",
        function: {
          name: "get_weather", description: "The weather of a city", parse: JSON.parse,
          parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
          function: ({ city }) => { calls.push(city); return "sunny, 24 degrees"; },
        },
      }],
    });
    await runner.done();
    expect(calls.length > 0 && typeof calls[0] === "string", calls);
  },

  async openai_schema() {
    const answer = await gpt.chat.completions.parse({
      model, messages, max_tokens: 60, response_format: zodResponseFormat(city, "city") });
    expect(["Paris", "Rome"].includes(answer.choices[0].message.parsed.name), answer);
  },

  async openai_embeddings() {
    const made = await gpt.embeddings.create({ model, input: ["the cat sleeps", "a cat is sleeping", "stock market"] });
    const [one, two, three] = made.data.map((item) => item.embedding);
    const dot = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0);
    expect(Math.abs(dot(one, one) - 1) < 1e-3 && dot(one, two) > dot(one, three), "vectors");
  },

  async openai_responses() {
    const answer = await gpt.responses.create({ model, input: question, temperature: 0, max_output_tokens: 40 });
    expect(answer.output_text.includes("Paris") && answer.status === "completed", answer);
  },

  async openai_audio() {
    const heard = await gpt.audio.transcriptions.create({
      model: "whisper-tiny.en", file: createReadStream(speech), response_format: "verbose_json" });
    expect(heard.text.includes("ask not what your country") && heard.segments.length > 0, heard);
  },

  async openai_errors() {
    await fails(() => gpt.chat.completions.create({ model: "no-such-model", messages }), (e) => e instanceof OpenAI.NotFoundError);
    await fails(() => gpt.chat.completions.create({ model, messages, temperature: -1 }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
    await fails(() => gpt.chat.completions.create({ model, messages: [{ role: "user", content: "word ".repeat(9000) }] }),
      (e) => e.code === "context_length_exceeded");
  },

  async openai_cancel() {
    const stream = await gpt.chat.completions.create({ model, messages, stream: true, max_tokens: 4000, ignore_eos: true });
    let n = 0;
    for await (const _ of stream) if (++n === 3) break;
    await nobodyIsLeft();
    const control = new AbortController();
    setTimeout(() => control.abort(), 200);
    await fails(() => gpt.chat.completions.create({ model, messages, max_tokens: 4000, ignore_eos: true }, { signal: control.signal }),
      (e) => e instanceof OpenAI.APIUserAbortError);
    await nobodyIsLeft();
  },

  async ai_text() {
    const answer = await generateText({ model: chat, prompt: question, temperature: 0, maxOutputTokens: 24 });
    expect(answer.text.includes("Paris") && answer.finishReason === "stop" && answer.usage.outputTokens > 0, answer);
  },

  async ai_stream() {
    const answer = streamText({ model: chat, prompt: question, temperature: 0, maxOutputTokens: 24 });
    let text = "";
    for await (const piece of answer.textStream) text += piece;
    expect(text.includes("Paris") && (await answer.usage).outputTokens > 0, text);
  },

  async ai_tools() {
    const answer = await generateText({
      model: chat, prompt: question, maxOutputTokens: 200, toolChoice: "required",
      tools: { get_weather: tool({ description: "The weather of a city", inputSchema: z.object({ city: z.string() }) }) },
    });
    expect(answer.finishReason === "tool-calls" && typeof answer.toolCalls[0].input.city === "string", answer);
  },

  async ai_schema() {
    const { object } = await generateObject({ model: chat, schema: city, prompt: question, maxOutputTokens: 60 });
    expect(["Paris", "Rome"].includes(object.name), object);
  },

  async ai_embeddings() {
    const { embeddings } = await embedMany({ model: vercel.textEmbeddingModel(model), values: ["a cat", "a dog"] });
    expect(embeddings.length === 2 && embeddings[0].length > 100, "vectors");
  },

  async ai_errors() {
    const unknown = vercel.chatModel("no-such-model");
    await fails(() => generateText({ model: unknown, prompt: question, maxRetries: 0 }),
      (e) => APICallError.isInstance(e) && e.statusCode === 404 && e.message.includes("no-such-model"));
  },

  async ai_cancel() {
    const control = new AbortController();
    const answer = streamText({
      model: chat, prompt: "Count to ten thousand.", maxOutputTokens: 4000, abortSignal: control.signal, onError: () => {} });
    let n = 0;
    for await (const part of answer.fullStream) {
      if (part.type === "text-delta" && ++n === 3) control.abort();
    }
    await nobodyIsLeft();
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  const began = performance.now();
  let outcome = "ok";
  try {
    await test();
  } catch (error) { // Each test is told, whatever went wrong.
    failed++;
    outcome = `FAILED: ${error.name}: ${error.message}`;
  }
  console.log(`${name.padEnd(20)} ${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s  ${outcome}`);
}
await nobodyIsLeft();
const read = createRequire(import.meta.url);
const version = (name) => read(`./node_modules/${name}/package.json`).version;
const total = Object.keys(tests).length;
console.log(`openai ${version("openai")} and ai ${version("ai")} of npm: ${total - failed} of ${total} passed`);
process.exit(failed > 0 ? 1 : 0);
