// The page: one conversation at a time, and what can be done with it.

import * as store from "./store.js";
import { ask, models } from "./talk.js";
import { button, messageView } from "./view.js";

const $ = (id) => document.getElementById(id);
const IDEAS = ["Explain how rain forms, in three sentences", "Write a Python function that reverses a list",
  "Suggest three names for a small black cat", "What is the capital of France?"];

let current = store.begin();
let known = [];
/** What stops the answer under way. */
let stopper = null;

// The conversation.

function show(conversation) {
  stopper?.abort();
  current = conversation;
  $("messages").replaceChildren(...current.messages.map((message, at) => view(message, at).node));
  $("welcome").hidden = current.messages.length > 0;
  showList();
  showContext(current.tokens ?? 0);
  $("log").scrollTop = $("log").scrollHeight;
}

function view(message, at) {
  return messageView(message, $("model").value, {
    edit(text) { again(at, text); },
    retry() { again(at - 1, current.messages[at - 1]?.content); },
    async copy(text) { await navigator.clipboard.writeText(text); say("Copied"); },
  });
}

/** Asks again from a question on, and forgets what followed it. */
function again(at, text) {
  if (at < 0 || !text) return;
  stopper?.abort();
  current.messages.length = at;
  $("messages").replaceChildren(...[...$("messages").children].slice(0, at));
  send(text);
}

async function send(text) {
  const conversation = current;
  const question = { role: "user", content: text };
  const answer = { role: "assistant", content: "", model: $("model").value };
  conversation.messages.push(question);
  if (conversation.messages.length === 1) conversation.title = text.split("\n")[0].slice(0, 60);
  const asked = conversation.messages.filter((message) => message.content && !message.error)
    .map(({ role, content }) => ({ role, content }));
  conversation.messages.push(answer);
  store.keep(conversation);
  showList();
  $("welcome").hidden = true;
  const n = conversation.messages.length;
  const shown = view(answer, n - 1);
  $("messages").append(view(question, n - 2).node, shown.node);
  shown.draw(true);
  scrollDown(true);
  await listen(conversation, asked, answer, shown);
}

async function listen(conversation, asked, answer, shown) {
  const mine = stopper = new AbortController();
  busy(true);
  say("The model is answering");
  const began = performance.now();
  let first = 0;
  let usage = null;
  let isDrawn = true;
  const draw = () => {
    isDrawn = true;
    shown.draw(stopper === mine);
    scrollDown(false);
  };
  const told = (what) => {
    if (what.usage) { usage = what.usage; return; }
    first ||= performance.now();
    answer.content += what.text ?? "";
    if (what.reasoning) answer.reasoning = (answer.reasoning ?? "") + what.reasoning;
    if (what.finish === "length") answer.cut = true;
    if (isDrawn) { isDrawn = false; requestAnimationFrame(draw); }
  };
  try {
    await ask(answer.model, asked, mine.signal, told);
  } catch (error) {
    if (error.name !== "AbortError") answer.error = error.message;
  }
  answer.stats = stats(answer, usage, first - began, performance.now() - first);
  if (usage) conversation.tokens = usage.total_tokens;
  store.keep(conversation);
  if (stopper === mine) {
    stopper = null;
    busy(false);
    say(answer.error ? `Failed: ${answer.error}` : "The answer is complete");
    if (usage) showContext(usage.total_tokens);
  }
  shown.draw(false);
  scrollDown(false);
}

function stats(answer, usage, wait, took) {
  if (!usage) return answer.error ? "" : "stopped";
  const n = usage.completion_tokens;
  const parts = [`${n} tokens`];
  if (n > 1 && took > 0) parts.push(`${((n - 1) / (took / 1000)).toFixed(1)} a second`);
  if (wait > 0) parts.push(`first after ${(wait / 1000).toFixed(2)} s`);
  if (answer.cut) parts.push("cut at its longest");
  return parts.join(" · ");
}

function scrollDown(always) {
  const log = $("log");
  const isNear = log.scrollHeight - log.scrollTop - log.clientHeight < 140;
  if (always || isNear) log.scrollTop = log.scrollHeight;
}

// What is around it.

function showList() {
  const item = (conversation) => {
    const li = document.createElement("li");
    if (conversation.id === current.id) li.setAttribute("aria-current", "true");
    const open = button(conversation.title, conversation.title, () => { show(conversation); openSidebar(false); }, "title");
    const remove = button(`Delete “${conversation.title}”`, "✕", () => {
      store.remove(conversation.id);
      if (conversation.id === current.id) show(store.begin());
      else showList();
    }, "icon remove");
    li.append(open, remove);
    return li;
  };
  $("conversations").replaceChildren(...store.conversations.map(item));
}

function showContext(tokens) {
  const model = known.find((one) => one.id === $("model").value);
  const most = model?.meta?.context;
  $("context").hidden = !most || !tokens;
  if (!most) return;
  $("meter").value = Math.min(1, tokens / most);
  $("context-text").textContent = `${tokens} of ${most} tokens`;
}

async function loadModels() {
  try {
    known = await models();
    const chosen = known.some((model) => model.id === store.settings.model) ? store.settings.model : known[0]?.id;
    $("model").replaceChildren(...known.map((model) => new Option(model.id, model.id, false, model.id === chosen)));
    showContext(current.tokens ?? 0);
  } catch (error) {
    say(error.message);
    $("model").replaceChildren(new Option(error.message, ""));
  }
}

function busy(isBusy) {
  $("send").hidden = isBusy;
  $("stop").hidden = !isBusy;
}

function say(text) { $("status").textContent = text; }

function openSidebar(isOpen) {
  $("sidebar").classList.toggle("open", isOpen);
  $("shade").hidden = !isOpen;
}

function grow() {
  const field = $("question");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
  $("send").disabled = !field.value.trim();
}

function theme() {
  const { theme } = store.settings;
  if (theme) document.documentElement.dataset.theme = theme;
}

// What can be done.

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("question").value.trim();
  if (!text || stopper) return;
  $("question").value = "";
  grow();
  send(text);
});
$("question").addEventListener("input", grow);
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("settings").open) return;
  stopper?.abort();
  openSidebar(false);
});
$("stop").addEventListener("click", () => stopper?.abort());
$("new").addEventListener("click", () => { show(store.begin()); openSidebar(false); $("question").focus(); });
$("open-sidebar").addEventListener("click", () => { openSidebar(true); $("new").focus(); });
$("close-sidebar").addEventListener("click", () => openSidebar(false));
$("shade").addEventListener("click", () => openSidebar(false));
$("model").addEventListener("change", () => {
  store.settings.model = $("model").value;
  store.saveSettings();
  showContext(current.tokens ?? 0);
});
$("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  store.settings.theme = isDark ? "light" : "dark";
  store.saveSettings();
  theme();
});

const FIELDS = ["system", "temperature", "top_p", "max_tokens", "seed", "key"];
$("open-settings").addEventListener("click", () => {
  for (const name of FIELDS) $(name).value = store.settings[name] ?? "";
  $("settings").showModal();
});
$("settings").addEventListener("close", () => {
  for (const name of FIELDS) store.settings[name] = $(name).value;
  store.saveSettings();
  loadModels();
});
$("forget").addEventListener("click", () => {
  if (!confirm("Delete all conversations in this browser?")) return;
  store.removeAll();
  $("settings").close();
  show(store.begin());
});

$("ideas").replaceChildren(...IDEAS.map((idea) => button(idea, idea, () => send(idea), "")));
theme();
grow();
show(current);
await loadModels();
