// Colours for code: comments, strings, numbers and the words that most languages share. One pattern for all of them, which
// is right often enough to read by.

const WORDS = new Set(("abstract and as assert async await bool boolean break case catch char class const continue crate def " +
  "default del do double elif else enum export extends extern false False finally float fn for foreach from func function " +
  "global go if impl implements import in include int interface is lambda let long loop match mod module mut namespace new nil " +
  "none None not null number of or override package pass private protected pub public raise range return self Self short " +
  "static str string struct super switch this throw trait true True try type typeof union unsafe unsigned use using var void " +
  "where while with yield").split(" "));
const SQL = new Set("select from where insert into values update set delete join left right inner outer on group by order limit create table and or not null as distinct having".split(" "));

const HASH_COMMENTS = /^(python|py|sh|bash|shell|ruby|rb|yaml|yml|toml|r|perl|make|makefile|dockerfile|zsh)$/i;
const TOKENS = {
  hash: /(#[^\n]*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\b(\d[\w.]*)|([A-Za-z_]\w*)/g,
  slash: /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|<!--[\s\S]*?(?:-->|$)|--[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\b(\d[\w.]*)|([A-Za-z_]\w*)/g,
};

/** Puts a program's text into a node, in colours. */
export function paint(node, text, language) {
  const isSql = /^sql$/i.test(language);
  const pattern = HASH_COMMENTS.test(language) ? TOKENS.hash : TOKENS.slash;
  // A decrement in C and its kin is no comment.
  let done = 0;
  for (const found of text.matchAll(pattern)) {
    const [whole, comment, string, number, word] = found;
    const isDashes = whole.startsWith("--") && !isSql && !/^(lua|haskell|hs)$/i.test(language);
    let kind = null;
    if (comment && !isDashes) kind = "comment";
    else if (string) kind = "string";
    else if (number) kind = "number";
    else if (word && (WORDS.has(word) || (isSql && SQL.has(word.toLowerCase())))) kind = "keyword";
    if (!kind) continue;
    node.append(text.slice(done, found.index));
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = whole;
    node.append(span);
    done = found.index + whole.length;
  }
  node.append(text.slice(done));
}
