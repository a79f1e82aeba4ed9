//! GBNF text as a tree.
//!
//! ```text
//! rule      name ::= choice          a rule ends with its line, but not within brackets or around |
//! choice    sequence | sequence …
//! item      "text"   [a-z]   [^a-z]   .   name   ( choice )      with *  +  ?  {n}  {n,}  {n,m} after it
//! ```

use super::scan::Parser;

/// A rule and its body.
pub(super) struct Rule {
    pub name: String,
    pub node: Node,
}

/// A part of a body.
pub(super) enum Node {
    Text(String),
    /// A class of characters as a regular expression has it.
    Class(String),
    /// The name of a rule, and the line in which it stands.
    Rule(String, usize),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// At least, and at most.
    Repeat(Box<Node>, u32, Option<u32>),
}

/// Most repetitions that a grammar may ask for: each of them is compiled.
const MAX_REPEAT: u32 = 2000;

impl Node {
    /// The names of rules within, with their lines.
    pub fn named(&self) -> Vec<(&str, usize)> {
        match self {
            Node::Rule(name, line) => vec![(name, *line)],
            Node::Sequence(nodes) | Node::Choice(nodes) => {
                nodes.iter().flat_map(Node::named).collect()
            }
            Node::Repeat(node, ..) => node.named(),
            Node::Text(_) | Node::Class(_) => Vec::new(),
        }
    }
}

/// Whether a character may be part of a name.
pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// The rules of a grammar, or what is wrong and in which line.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let mut parser = Parser::new(text);
    let mut rules: Vec<Rule> = Vec::new();
    loop {
        parser.skip_space(true);
        if parser.peek().is_none() {
            return Ok(rules);
        }
        let line = parser.line;
        let rule = parser.rule()?;
        if rules.iter().any(|known| known.name == rule.name) {
            return Err(format!(
                "line {line}: the rule `{}` is there twice",
                rule.name
            ));
        }
        rules.push(rule);
    }
}

impl Parser<'_> {
    /// A name, or nothing.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c)) {
            name.push(c);
            self.next();
        }
        name
    }

    fn rule(&mut self) -> Result<Rule, String> {
        let name = self.name();
        if name.is_empty() {
            let found = self.peek().unwrap_or(' ');
            return self.error(format!("`{found}` does not belong here"));
        }
        self.skip_space(false);
        for wanted in "::=".chars() {
            if self.next() != Some(wanted) {
                return self.error(format!("`::=` is missing after `{name}`"));
            }
        }
        self.skip_space(true);
        let node = self.choice(false)?;
        match self.peek() {
            None | Some('\n' | '\r') => Ok(Rule { name, node }),
            Some(c) => self.error(format!("`{c}` does not belong here")),
        }
    }

    fn choice(&mut self, in_brackets: bool) -> Result<Node, String> {
        let mut nodes = vec![self.sequence(in_brackets)?];
        while self.peek() == Some('|') {
            self.next();
            self.skip_space(true);
            nodes.push(self.sequence(in_brackets)?);
        }
        Ok(match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                nodes.extend(last);
                Node::Choice(nodes)
            }
        })
    }

    fn sequence(&mut self, in_brackets: bool) -> Result<Node, String> {
        let mut nodes = Vec::new();
        loop {
            self.skip_space(in_brackets);
            let line = self.line;
            let node = match self.peek() {
                Some('"') => Node::Text(self.text()?),
                Some('[') => Node::Class(self.class()?),
                Some('.') => {
                    self.next();
                    Node::Class(r"[^\n]".into())
                }
                Some('(') => {
                    self.next();
                    let inner = self.choice(true)?;
                    if self.next() != Some(')') {
                        return Err(format!("line {line}: a bracket is not closed"));
                    }
                    inner
                }
                Some(c @ ('*' | '+' | '?' | '{')) => {
                    return self.error(format!("there is nothing before `{c}`"));
                }
                Some(c) if is_name(c) => Node::Rule(self.name(), line),
                _ => break,
            };
            nodes.push(self.repeated(node)?);
        }
        // A line may end where another choice follows.
        if !in_brackets {
            self.skip_to_bar();
        }
        Ok(Node::Sequence(nodes))
    }

    fn repeated(&mut self, mut node: Node) -> Result<Node, String> {
        loop {
            self.skip_space(false);
            let (least, most) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => return Ok(node),
            };
            self.next();
            node = Node::Repeat(Box::new(node), least, most);
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` or `{,m}`, up to the closing bracket.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), String> {
        self.next();
        let mut inner = String::new();
        while let Some(c) = self.peek().filter(|c| !"}\n".contains(*c)) {
            inner.push(c);
            self.next();
        }
        let number = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse::<u32>().ok().map(Some),
        };
        let bounds = match inner.split_once(',') {
            Some((least, most)) => number(least).zip(number(most)),
            None => number(&inner).filter(Option::is_some).map(|n| (n, n)),
        };
        let Some((least, most)) = bounds.filter(|_| self.peek() == Some('}')) else {
            return self.error(format!("`{{{inner}}}` is no number of times"));
        };
        let least = least.unwrap_or(0);
        if most.is_some_and(|most| most < least) {
            return self.error(format!("`{{{inner}}}` has more at least than at most"));
        }
        if most.unwrap_or(0).max(least) > MAX_REPEAT {
            return self.error(format!("`{{{inner}}}` is more than {MAX_REPEAT} times"));
        }
        Ok((least, most))
    }
}
