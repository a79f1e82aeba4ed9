// Asking the server.

import { settings } from "./store.js";

function headers() {
  const all = { "Content-Type": "application/json" };
  if (settings.key) all.Authorization = `Bearer ${settings.key}`;
  return all;
}

async function failure(response) {
  let message = `the server answered ${response.status}`;
  try {
    message = (await response.json()).error.message ?? message;
  } catch { /* It said nothing that we understand. */ }
  if (response.status === 401) message += " (Settings have a place for it)";
  return new Error(message);
}

/** The models of the server. */
export async function models() {
  const response = await fetch("/v1/models", { headers: headers() });
  if (!response.ok) throw await failure(response);
  return (await response.json()).data;
}

/** What a request says besides its messages. */
function wishes() {
  const wish = {};
  for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
    const value = settings[name];
    if (value !== undefined && value !== null && value !== "") wish[name] = Number(value);
  }
  return wish;
}

/** Asks, and calls `on` with what comes: `{ text }`, `{ reasoning }`, `{ usage }`, `{ finish }`. */
export async function ask(model, messages, signal, on) {
  const told = settings.system ? [{ role: "system", content: settings.system }] : [];
  const body = { model, messages: [...told, ...messages], stream: true, stream_options: { include_usage: true }, ...wishes() };
  const response = await fetch("/v1/chat/completions", {
    method: "POST", headers: headers(), body: JSON.stringify(body), signal,
  });
  if (!response.ok) throw await failure(response);
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) on({ usage: chunk.usage });
    const choice = chunk.choices?.[0];
    if (choice?.delta?.reasoning_content) on({ reasoning: choice.delta.reasoning_content });
    if (choice?.delta?.content) on({ text: choice.delta.content });
    if (choice?.finish_reason) on({ finish: choice.finish_reason });
  }
}

/** The data of server-sent events, one after the other. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const whole = held.split("\n\n");
    held = whole.pop();
    for (const event of whole) {
      if (event.startsWith("data: ")) yield event.slice(6);
    }
  }
}
