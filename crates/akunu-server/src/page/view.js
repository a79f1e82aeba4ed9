// Messages as nodes of the page.

import { markdown } from "./markdown.js";

function make(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

export function button(label, text, onClick, className = "icon") {
  const node = make("button", className, text);
  node.type = "button";
  node.setAttribute("aria-label", label);
  node.title = label;
  node.addEventListener("click", onClick);
  return node;
}

/** A message that can be drawn again as it grows. `acts` has `edit`, `retry` and `copy`. */
export function messageView(message, model, acts) {
  const node = make("li", `message ${message.role}`);
  const body = make("div", "body");
  const tools = make("div", "tools");
  if (message.role === "user") {
    body.textContent = message.content;
    const edit = button("Edit this question and ask again", "Edit", () => editing(node, body, tools, message, acts.edit));
    tools.append(edit, button("Copy this question", "Copy", () => acts.copy(message.content)));
    node.append(make("span", "hidden", "You:"), body, tools);
    return { node, draw() {} };
  }
  const who = make("div", "who", message.model ?? model ?? "Assistant");
  node.append(who, body, tools);
  const view = { node, draw: (isOpen) => drawAnswer(message, body, tools, acts, isOpen) };
  view.draw(false);
  return view;
}

function drawAnswer(message, body, tools, acts, isOpen) {
  const wasOpen = body.querySelector("details")?.open;
  body.replaceChildren();
  body.classList.toggle("waiting", isOpen && !message.content);
  if (message.reasoning) {
    const details = make("details", "reasoning", make("summary", "", "Thoughts"), make("p", "", message.reasoning));
    details.open = wasOpen ?? (isOpen && !message.content);
    body.append(details);
  }
  body.append(markdown(message.content));
  if (message.error) body.append(make("p", "error", message.error));
  tools.replaceChildren();
  if (isOpen) return;
  tools.append(
    button("Answer again", "↻ Retry", acts.retry),
    button("Copy this answer", "Copy", () => acts.copy(message.content)),
  );
  if (message.stats) tools.append(make("span", "stats", message.stats));
}

/** Turns a question into a field, and back. */
function editing(node, body, tools, message, edit) {
  const field = document.createElement("textarea");
  field.value = message.content;
  field.rows = Math.min(12, message.content.split("\n").length + 1);
  field.setAttribute("aria-label", "Edit the question");
  const end = () => { field.replaceWith(body); actions.replaceWith(tools); };
  const send = () => { const text = field.value.trim(); end(); if (text) edit(text); };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); end(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
  });
  const actions = make("div", "tools", button("Do not change it", "Cancel", end), button("Ask this instead", "Send", send));
  body.replaceWith(field);
  tools.replaceWith(actions);
  field.focus();
}
