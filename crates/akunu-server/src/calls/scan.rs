//! Reads a section of calls by the description of a style.

use super::cursor::{Cursor, Read, Stop};
use super::object::object;
use super::style::{Element, Style};
use super::tool::{Tool, ToolCall};
use super::value::arguments;
use super::written::Written;

/// What a text begins with.
#[derive(Debug)]
pub(crate) enum Scanned {
    /// Calls, which end at this byte.
    Whole(Vec<ToolCall>, usize),
    /// Something that may go on as calls, and those that are known already; the last may be incomplete.
    More(Vec<ToolCall>),
    /// Anything else. A call that had begun ends at this byte.
    Other(usize),
}

/// Reads the calls that a text begins with, in a style.
pub(crate) fn scan(style: &Style, text: &str, tools: &[Tool]) -> Scanned {
    let mut section = Section {
        style,
        tools,
        calls: Vec::new(),
        end: 0,
    };
    let mut from = Cursor::new(text);
    let read = section.read(&mut from);
    let Section { calls, end, .. } = section;
    let has_whole = calls.first().is_some_and(|call| call.is_whole);
    match read {
        Ok(()) => Scanned::Whole(calls, from.at),
        Err(Stop::Incomplete) => Scanned::More(calls),
        Err(Stop::Mismatch) if has_whole && calls.iter().all(|call| call.is_whole) => {
            Scanned::Whole(calls, end)
        }
        Err(Stop::Mismatch) => Scanned::Other(from.at),
    }
}

struct Section<'s> {
    style: &'s Style,
    tools: &'s [Tool],
    calls: Vec<ToolCall>,
    /// Where the last whole call ends.
    end: usize,
}

impl Section<'_> {
    fn read(&mut self, from: &mut Cursor) -> Read<()> {
        self.elements(self.style.open, from)?;
        loop {
            self.elements(self.style.call, from)?;
            self.end = from.at;
            // A section that has no mark of its own ends with its first call: the next one is another.
            if self.style.open.is_empty() {
                return Ok(());
            }
            let mut ahead = from.clone();
            match self.close(&mut ahead) {
                Err(Stop::Mismatch) => {}
                Err(stop) => return Err(stop),
                Ok(()) => {
                    *from = ahead;
                    return Ok(());
                }
            }
            self.elements(self.style.between, from)?;
        }
    }

    /// The end of the section. One that has no end ends where no call follows.
    fn close(&mut self, from: &mut Cursor) -> Read<()> {
        if self.style.close.is_empty() {
            return Err(Stop::Mismatch);
        }
        self.elements(self.style.close, from)
    }

    fn elements(&mut self, elements: &[Element], from: &mut Cursor) -> Read<()> {
        elements
            .iter()
            .try_for_each(|element| self.element(element, from))
    }

    fn element(&mut self, element: &Element, from: &mut Cursor) -> Read<()> {
        match element {
            Element::Mark(text) | Element::Text(text) => from.words(text),
            Element::Space => {
                from.skip_space();
                Ok(())
            }
            Element::OneOf(ways) => self.one_of(ways, from),
            Element::Name => self.name(from),
            Element::Id => {
                from.skip_space();
                from.run(|c| c.is_alphanumeric() || "_-.:".contains(c));
                from.peek().map(|_| ())
            }
            Element::Arguments(notation) => {
                let tools = self.tools;
                let Some(call) = self.calls.last_mut() else {
                    return Err(Stop::Mismatch);
                };
                let tool = tools.iter().find(|tool| tool.name == call.name);
                let mut written = Written::default();
                let read = arguments(notation, from, tool.ok_or(Stop::Mismatch)?, &mut written);
                call.is_whole = read.is_ok();
                (call.arguments, call.complete) = (written.json, written.complete);
                read
            }
            Element::Object(_) => object(from, self.tools, &mut self.calls),
        }
    }

    fn one_of(&mut self, ways: &[&[Element]], from: &mut Cursor) -> Read<()> {
        for way in ways {
            let mut ahead = from.clone();
            match self.elements(way, &mut ahead) {
                Err(Stop::Mismatch) => {}
                Err(stop) => return Err(stop),
                Ok(()) => {
                    *from = ahead;
                    return Ok(());
                }
            }
        }
        Err(Stop::Mismatch)
    }

    /// The longest name of a tool that comes next.
    fn name(&mut self, from: &mut Cursor) -> Read<()> {
        from.skip_space();
        let rest = from.rest();
        let mut names = self.tools.iter().map(|tool| tool.name.as_str());
        if names
            .clone()
            .any(|name| name.len() > rest.len() && name.starts_with(rest))
        {
            return Err(Stop::Incomplete);
        }
        let mut found: Vec<&str> = names
            .by_ref()
            .filter(|name| rest.starts_with(name))
            .collect();
        found.sort_by_key(|name| name.len());
        let name = *found.last().ok_or(Stop::Mismatch)?;
        from.at += name.len();
        // A longer word is another name.
        if from
            .peek()
            .map(|c| c.is_alphanumeric() || "_-".contains(c))?
        {
            return Err(Stop::Mismatch);
        }
        self.calls.push(ToolCall {
            name: name.to_string(),
            ..ToolCall::default()
        });
        Ok(())
    }
}
