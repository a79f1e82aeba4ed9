//! GBNF as Lark.
//!
//! ```text
//! root ::= "a" item+          start: "a" ITEM+
//! item ::= [a-z] | "-"   →    ITEM: /[a-z]/ | "-"
//! ```
//!
//! GBNF speaks of characters. Lark has a lexer, which takes the longest piece of text that a *terminal* (in capitals)
//! matches, and *rules* over terminals. A rule of GBNF that leads to no recursion is a regular expression, and becomes a
//! terminal: within it the lexer makes no decisions. So a grammar without recursion means exactly the same in both.
//! In others the lexer cuts where a recursive rule has more than one way to go on with the same characters.

mod parse;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use self::parse::{Node, Rule, parse};

/// Whether a grammar is written in GBNF: its rules have `::=`, which means nothing in Lark outside of a string.
pub(super) fn is_gbnf(text: &str) -> bool {
    let is_rule = |line: &str| {
        let Some((name, _)) = line.split_once("::=") else {
            return false;
        };
        let name = name.trim();
        !name.is_empty() && name.chars().all(parse::is_name)
    };
    text.lines().any(is_rule)
}

/// The same grammar in Lark, or what is wrong and in which line.
pub(super) fn to_lark(text: &str) -> Result<String, String> {
    let rules = parse(text)?;
    let by_name: BTreeMap<&str, &Rule> = rules
        .iter()
        .map(|rule| (rule.name.as_str(), rule))
        .collect();
    if !by_name.contains_key("root") {
        return Err("it has no rule `root`, with which every answer begins".into());
    }
    let reached = reached_from("root", &by_name)?;
    let terminals = without_recursion(&reached, &by_name);
    let mut names = Names::default();
    for &name in &reached {
        names.add(name, terminals.contains(name));
    }
    let mut lark = format!("start: {}\n", names.of("root"));
    for name in &reached {
        if let Some(rule) = by_name.get(name) {
            let mut body = String::new();
            write_node(&rule.node, &names, &mut body);
            // Writing to a string cannot fail.
            let _ = writeln!(lark, "{}: {body}", names.of(name));
        }
    }
    Ok(lark)
}

/// The names of rules in Lark.
#[derive(Default)]
struct Names<'t> {
    names: BTreeMap<&'t str, String>,
}

impl<'t> Names<'t> {
    /// Lark takes letters, digits and underlines; capitals make a terminal. A number keeps names apart.
    fn add(&mut self, name: &'t str, is_terminal: bool) {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let n = self.names.len();
        let lark = if is_terminal {
            format!("T{n}_{}", plain.to_ascii_uppercase())
        } else {
            format!("r{n}_{}", plain.to_ascii_lowercase())
        };
        self.names.insert(name, lark);
    }

    fn of(&self, name: &str) -> &str {
        self.names.get(name).map_or("", String::as_str)
    }
}

/// All rules that one leads to, itself included, or the first that is not there.
fn reached_from<'t>(
    first: &'t str,
    rules: &BTreeMap<&'t str, &'t Rule>,
) -> Result<BTreeSet<&'t str>, String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![first]);
    while let Some(name) = open.pop() {
        if !reached.insert(name) {
            continue;
        }
        let Some(rule) = rules.get(name) else {
            continue;
        };
        for (named, line) in rule.node.named() {
            if !rules.contains_key(named) {
                return Err(format!("line {line}: there is no rule `{named}`"));
            }
            open.push(named);
        }
    }
    Ok(reached)
}

/// The rules that lead to no recursion: those that name no rule, or only such rules.
fn without_recursion<'t>(
    names: &BTreeSet<&'t str>,
    rules: &BTreeMap<&'t str, &'t Rule>,
) -> BTreeSet<&'t str> {
    // Of each rule, how many of those that it names are not known to be such, and who names it.
    let (mut n_unknown, mut named_by) = (BTreeMap::new(), BTreeMap::<&str, Vec<&str>>::new());
    for &name in names {
        let named = rules.get(name).map_or(vec![], |rule| rule.node.named());
        n_unknown.insert(name, named.len());
        for (other, _) in named {
            named_by.entry(other).or_default().push(name);
        }
    }
    let none = n_unknown.iter().filter(|(_, n)| **n == 0);
    let mut open: Vec<&str> = none.map(|(name, _)| *name).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        found.insert(name);
        for &by in named_by.get(name).into_iter().flatten() {
            if let Some(n) = n_unknown.get_mut(by) {
                *n -= 1;
                if *n == 0 {
                    open.push(by);
                }
            }
        }
    }
    found
}

fn write_node(node: &Node, names: &Names, out: &mut String) {
    match node {
        Node::Text(text) => out.push_str(&quoted(text)),
        Node::Class(class) => {
            // In a regular expression of Lark the slash ends it.
            let _ = write!(out, "/{}/", class.replace('/', "\\/"));
        }
        Node::Rule(name, _) => out.push_str(names.of(name)),
        Node::Sequence(nodes) => write_all(nodes, " ", names, out),
        Node::Choice(nodes) => {
            out.push('(');
            write_all(nodes, " | ", names, out);
            out.push(')');
        }
        Node::Repeat(node, least, most) => {
            out.push('(');
            write_node(node, names, out);
            out.push(')');
            let _ = match (least, most) {
                (0, None) => write!(out, "*"),
                (1, None) => write!(out, "+"),
                (0, Some(1)) => write!(out, "?"),
                (least, None) => write!(out, "{{{least},}}"),
                (least, Some(most)) => write!(out, "{{{least},{most}}}"),
            };
        }
    }
}

fn write_all(nodes: &[Node], between: &str, names: &Names, out: &mut String) {
    if nodes.is_empty() {
        out.push_str("\"\"");
    }
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        write_node(node, names, out);
    }
}

/// A string as Lark writes it, which is as JSON does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_of_both_kinds_are_told_apart() {
        assert!(is_gbnf("# a comment\nroot ::= \"a\""));
        assert!(is_gbnf("root\t::=\n  \"a\""));
        assert!(!is_gbnf("start: \"a ::= b\""));
        assert!(!is_gbnf("start: /a/"));
    }

    /// Fails when a rule that leads to itself becomes a terminal, which Lark would refuse, or another becomes a rule.
    #[test]
    fn rules_without_recursion_become_terminals() {
        let lark =
            to_lark("root ::= item+ nested?\nnested ::= \"(\" nested? \")\"\nitem ::= [a-z/]");
        let lark = lark.expect("fine");
        let lines: Vec<&str> = lark.lines().collect();
        assert_eq!(
            lines,
            [
                "start: r2_root",
                "T0_ITEM: /[a-z\\/]/",
                "r1_nested: \"(\" (r1_nested)? \")\"",
                "r2_root: (T0_ITEM)+ (r1_nested)?",
            ]
        );
    }

    /// Fails when rules that lead to each other, or a rule that leads to them, become terminals; or when a rule that is named
    /// twice, and leads to nothing, does not.
    #[test]
    fn recursion_is_found_behind_other_rules() {
        let lark =
            to_lark("root ::= a c c\na ::= \"x\" b?\nb ::= \"y\" a?\nc ::= d d\nd ::= \"z\"");
        let lark = lark.expect("fine");
        let names: Vec<&str> = lark
            .lines()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names, ["start", "r0_a", "r1_b", "T2_C", "T3_D", "r4_root"]);
    }

    /// Takes minutes when the time to find recursive rules grows with the square of their number.
    #[test]
    fn many_rules_that_lead_to_each_other_end() {
        let n_rules = 10_000;
        let names: Vec<String> = (0..n_rules).map(|n| format!("r{n}")).collect();
        let bodies = (0..n_rules).map(|n| format!("r{n} ::= \"x{n}\" root\n"));
        let bodies: String = bodies.collect();
        let lark = to_lark(&format!("root ::= {}\n{bodies}", names.join(" | ")));
        assert_eq!(lark.expect("fine").lines().count(), n_rules + 2);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, wanted) in [
            ("item ::= \"a\"", "no rule `root`"),
            (
                "root ::= \"a\"\n  | item",
                "line 2: there is no rule `item`",
            ),
            ("root ::= \"a\nb\"", "line 1: the string has no end"),
            (
                "root ::= [a-z\nb ::= \"c\"",
                "line 1: the class of characters has no end",
            ),
            ("root ::= (\"a\"", "line 1: a bracket is not closed"),
            ("root ::= \"a\" )", "line 1: `)` does not belong here"),
            (
                "root ::= \"a\"{3,1}",
                "line 1: `{3,1}` has more at least than at most",
            ),
            ("root ::= *", "line 1: there is nothing before `*`"),
            ("root ::= <[12]>", "line 1: `<` does not belong here"),
            ("root ::= \"\\q\"", "line 1: `\\q` is no escape"),
            ("\nroot = \"a\"", "line 2: `::=` is missing after `root`"),
            (
                "root ::= \"a\"\nroot ::= \"b\"",
                "line 2: the rule `root` is there twice",
            ),
        ] {
            let error = to_lark(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
