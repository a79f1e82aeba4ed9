// Markdown as nodes of the page. Text of a model only ever becomes text nodes and attributes that are checked: there is
// no way from here to HTML that somebody else wrote.

import { paint } from "./code.js";

const element = (name, ...children) => {
  const node = document.createElement(name);
  node.append(...children);
  return node;
};

/** A text of a model as nodes. */
export function markdown(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  return blocks(lines, 0);
}

const FENCE = /^( *)(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const TABLE_RULE = /^ *\|?( *:?-+:? *\|)+( *:?-+:? *)?$/;
// Quotes and lists within each other, deeper than anybody reads, are text.
const DEEPEST = 8;

function blocks(lines, depth) {
  const out = document.createDocumentFragment();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].trimStart().startsWith(fence[2])) end++;
      out.append(codeBlock(fence[3], lines.slice(at + 1, end).join("\n")));
      at = end + 1;
    } else if (!line.trim()) {
      at++;
    } else if (HEADING.test(line)) {
      const [, marks, text] = HEADING.exec(line);
      out.append(element(`h${Math.min(marks.length, 4)}`, inline(text)));
      at++;
    } else if (RULE.test(line)) {
      out.append(element("hr"));
      at++;
    } else if (depth < DEEPEST && /^ {0,3}>/.test(line)) {
      let end = at;
      while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
      const inner = lines.slice(at, end).map((text) => text.replace(/^ {0,3}> ?/, ""));
      out.append(element("blockquote", blocks(inner, depth + 1)));
      at = end;
    } else if (depth < DEEPEST && ITEM.test(line)) {
      const [list, end] = listFrom(lines, at, depth);
      out.append(list);
      at = end;
    } else if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) {
      const [table, end] = tableFrom(lines, at);
      out.append(table);
      at = end;
    } else {
      let end = at + 1;
      while (end < lines.length && lines[end].trim() && !begins(lines[end])) end++;
      out.append(element("p", inline(lines.slice(at, end).map((text) => text.trim()).join("\n"))));
      at = end;
    }
  }
  return out;
}

const begins = (line) => FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || /^ {0,3}>/.test(line);

function listFrom(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const list = element(ordered ? "ol" : "ul");
  if (ordered) list.start = parseInt(mark, 10);
  const belongs = (line) => {
    const item = ITEM.exec(line);
    return item && item[1].length <= indent.length + 1 && /\d/.test(item[2]) === ordered;
  };
  while (at < lines.length && belongs(lines[at])) {
    const [whole, , , first] = ITEM.exec(lines[at]);
    const width = whole.length - first.length;
    const inner = [first];
    at++;
    while (at < lines.length && !belongs(lines[at])) {
      const line = lines[at];
      const inside = line.search(/\S/) > indent.length + 1;
      const goesOn = !line.trim() ? (lines[at + 1] ?? "").search(/\S/) > indent.length + 1 : inside;
      if (!goesOn && !(line.trim() && lines[at - 1].trim() && !begins(line))) break;
      inner.push(line.slice(Math.min(width, Math.max(line.search(/\S/), 0))));
      at++;
    }
    list.append(element("li", blocks(inner, depth + 1)));
    while (at < lines.length && !lines[at].trim() && belongs(lines[at + 1] ?? "")) at++;
  }
  return [list, at];
}

function tableFrom(lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const row = (line, kind) => element("tr", ...cells(line).map((cell) => element(kind, inline(cell))));
  const table = element("table", element("thead", row(lines[at], "th")));
  const body = element("tbody");
  at += 2;
  while (at < lines.length && lines[at].includes("|")) body.append(row(lines[at++], "td"));
  table.append(body);
  return [table, at];
}

function codeBlock(language, text) {
  const copy = element("button", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  const code = element("code");
  paint(code, text, language);
  return element("figure", element("figcaption", element("span", language || "text"), copy), element("pre", code));
}

// One mark after the other: code, links, bold, italic, struck through, plain addresses.
const SPANS = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\[([^\]\n]{1,300})\]\((https?:\/\/[^\s)]{1,2000})\)|\*\*(\S|\S[^\n]*?\S)\*\*|\*(\S|\S[^*\n]*?\S)\*|~~(\S|\S[^\n]*?\S)~~|(?<![\w/])(https?:\/\/[^\s<>()"']{3,2000}[^\s<>()"'.,;:!?])|\n/;

/** Marks within a line as nodes. */
export function inline(text) {
  const out = document.createDocumentFragment();
  let rest = text;
  while (rest) {
    const found = SPANS.exec(rest);
    if (!found) break;
    out.append(rest.slice(0, found.index));
    const [whole, , code, label, address, bold, italic, struck, plain] = found;
    if (code !== undefined) out.append(element("code", code));
    else if (address) out.append(link(inline(label), address));
    else if (bold) out.append(element("strong", inline(bold)));
    else if (italic) out.append(element("em", inline(italic)));
    else if (struck) out.append(element("s", inline(struck)));
    else if (plain) out.append(link(plain, plain));
    else out.append(element("br"));
    rest = rest.slice(found.index + whole.length);
  }
  out.append(rest);
  return out;
}

/** A link to elsewhere; the pattern lets only http and https through. */
function link(label, address) {
  const node = element("a", label);
  node.href = address;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  return node;
}
