// Conversations and settings, in this browser only.

const CONVERSATIONS = "akunu.conversations";
const SETTINGS = "akunu.settings";
const MOST = 200;

function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export const settings = read(SETTINGS, {});
export const saveSettings = () => write(SETTINGS, settings);

/** The newest first: `{ id, title, messages: [{ role, content, reasoning?, stats?, error? }] }`. */
export let conversations = read(CONVERSATIONS, []);

export function save() {
  conversations.length = Math.min(conversations.length, MOST);
  // Where the browser has no more room, the oldest go.
  while (!write(CONVERSATIONS, conversations) && conversations.length > 1) conversations.pop();
}

export function begin() {
  const id = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  return { id, title: "New conversation", messages: [] };
}

/** Puts a conversation first. */
export function keep(conversation) {
  conversations = [conversation, ...conversations.filter((other) => other.id !== conversation.id)];
  save();
}

export function remove(id) {
  conversations = conversations.filter((other) => other.id !== id);
  save();
}

export function removeAll() {
  conversations = [];
  save();
}
