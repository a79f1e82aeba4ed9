//! How a model writes calls, as data: the reader and the grammar of calls both follow from it.
//!
//! ```text
//! answer = … section …
//! section = open call (between call)* close
//! ```

/// A way of writing calls.
#[derive(Debug)]
pub(crate) struct Style {
    /// For errors.
    pub name: &'static str,
    pub place: Place,
    /// What an answer begins with that has to be a call, before the section.
    pub lead: &'static [Element],
    pub open: &'static [Element],
    pub call: &'static [Element],
    pub between: &'static [Element],
    pub close: &'static [Element],
}

/// Where in an answer a section may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Anywhere,
    /// At the beginning of a line.
    Line,
    /// At the beginning of the answer, or of what follows a thought or a call.
    Start,
}

/// A part of a section. Between any two there may be white space when it is read; where [`Element::Space`] is, the model may
/// also write some.
#[derive(Debug)]
pub(crate) enum Element {
    /// A control token where the vocabulary has it, or else its text.
    Mark(&'static str),
    Text(&'static str),
    Space,
    /// The first of these that fits; an empty one always does.
    OneOf(&'static [&'static [Element]]),
    /// The name of a tool.
    Name,
    /// Names a call. What it is does not matter.
    Id,
    Arguments(Notation),
    /// A JSON object with the name and the arguments.
    Object(Fields),
}

/// The fields of a call that is a JSON object, as models are trained to write them.
#[derive(Debug)]
pub(crate) struct Fields {
    pub name: &'static str,
    pub arguments: &'static str,
    /// A field that may come besides, and the pattern of its text.
    pub id: Option<(&'static str, &'static str)>,
}

/// How arguments are written.
#[derive(Debug)]
pub(crate) enum Notation {
    /// `{"city": "Rome", "days": 3}`
    Json,
    /// `(city="Rome", days=3)`
    Python,
    /// `{city:<|"|>Rome<|"|>,days:3}`, with this mark around texts.
    Quoted(&'static str),
    /// `<parameter=city>Rome</parameter><parameter=days>3</parameter>`
    Tagged(Tags),
}

/// What is around the arguments that have a tag each.
#[derive(Debug)]
pub(crate) struct Tags {
    pub before_name: &'static str,
    /// After the name of a text, and of any other value.
    pub after_name: [&'static str; 2],
    /// Around the value.
    pub padding: &'static str,
    pub after_value: &'static str,
}

impl Style {
    /// All that a section has up to the end of its first call.
    fn first(&self) -> impl Iterator<Item = &'static Element> {
        self.open.iter().chain(self.call)
    }

    /// The text with which a section begins.
    pub fn trigger(&self) -> &'static str {
        match self.first().next() {
            Some(Element::Mark(text) | Element::Text(text)) => text,
            _ => "{",
        }
    }

    /// Whether it begins with something that nothing else begins with.
    pub fn has_mark(&self) -> bool {
        self.place == Place::Anywhere
    }

    /// The texts of all marks.
    pub fn marks(&self) -> Vec<&'static str> {
        let parts = [self.lead, self.open, self.call, self.between, self.close];
        let mut open: Vec<&'static Element> = parts.into_iter().flatten().collect();
        let mut marks = Vec::new();
        while let Some(element) = open.pop() {
            match element {
                Element::Mark(text) => marks.push(*text),
                Element::Arguments(Notation::Quoted(text)) => marks.push(*text),
                Element::Arguments(Notation::Tagged(tags)) => {
                    marks.extend([tags.before_name, tags.after_value]);
                }
                Element::OneOf(ways) => open.extend(ways.iter().copied().flatten()),
                Element::Text(_)
                | Element::Space
                | Element::Name
                | Element::Id
                | Element::Arguments(Notation::Json | Notation::Python)
                | Element::Object(_) => {}
            }
        }
        marks
    }

    /// The texts and marks that every section begins with, up to the end of its first call.
    pub fn literals(&self) -> Vec<&'static str> {
        let mut open: Vec<&'static Element> = self.first().collect();
        let mut found = Vec::new();
        while let Some(element) = open.pop() {
            match element {
                Element::Mark(text) | Element::Text(text) => found.push(*text),
                Element::OneOf([way]) => open.extend(way.iter()),
                _ => {}
            }
        }
        found
    }

    /// The field of a JSON object that has the arguments.
    pub fn arguments_field(&self) -> Option<&'static str> {
        self.call.iter().find_map(|element| match element {
            Element::Object(fields) => Some(fields.arguments),
            _ => None,
        })
    }
}
