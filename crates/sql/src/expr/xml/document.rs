//! Nodes of a document: elements, attributes and texts in the order in which they begin, as places in its text.

use crate::error::ExecResult;
use crate::expr::Context;
use std::ops::Range;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of the text; its name is empty.
    Root,
    /// An element.
    Element,
    /// An attribute with a value.
    Attribute,
    /// Text of an element, of the root, or the value of an attribute.
    Text,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its kind.
    pub kind: Kind,
    /// The number of the node that it is in; the root is in itself.
    pub parent: u32,
    /// The number behind the last node in it.
    pub last: u32,
    /// Its name, or the text.
    pub name: Range<usize>,
    /// All of it.
    pub whole: Range<usize>,
}

/// A document that has been read.
#[derive(Debug)]
pub struct Document<'a> {
    /// The text.
    pub text: &'a [u8],
    /// The root, and all others in order.
    pub nodes: Vec<Node>,
}

/// Why a text is no document, and where.
#[derive(Debug)]
pub struct BadDocument(pub String);

/// A word of the text inside a tag.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    End,
    Sign(u8),
    Name(Range<usize>),
    Quoted(Range<usize>),
    Unknown,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Elements that are open.
    open: Vec<u32>,
    /// The tag of the innermost of them is open, too.
    in_tag: bool,
    /// A word of that tag that was read already.
    ahead: Option<Word>,
}

impl<'a> Document<'a> {
    /// Reads a text.
    ///
    /// # Errors
    /// The statement must stop; 3170: no memory for the nodes.
    pub fn read(text: &'a [u8], cx: &mut Context<'_>) -> ExecResult<Result<Document<'a>, BadDocument>> {
        let root = Node { kind: Kind::Root, parent: 0, last: 0, name: 0..0, whole: 0..text.len() };
        let mut reader = Reader { text, at: 0, nodes: vec![root], open: vec![0], in_tag: false, ahead: None };
        while reader.at < text.len() || reader.in_tag {
            cx.tick()?;
            let before = reader.nodes.capacity() + reader.open.capacity();
            if let Err(bad) = reader.piece() {
                return Ok(Err(bad));
            }
            let more = reader.nodes.capacity() + reader.open.capacity() - before;
            cx.ask(more * size_of::<Node>())?;
        }
        if reader.open.len() > 1 {
            return Ok(Err(reader.bad("unexpected END-OF-INPUT")));
        }
        reader.nodes[0].last = reader.nodes.len() as u32;
        Ok(Ok(Document { text, nodes: reader.nodes }))
    }

    /// The bytes of a node's name, or of a text.
    #[must_use]
    pub fn name(&self, node: u32) -> &'a [u8] {
        &self.text[self.nodes[node as usize].name.clone()]
    }

    /// The numbers of what is in a node, at any depth.
    #[must_use]
    pub fn inside(&self, node: u32) -> Range<u32> {
        node + 1..self.nodes[node as usize].last
    }
}

impl Reader<'_> {
    fn bad(&self, what: &str) -> BadDocument {
        let before = &self.text[..self.at];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        // In a line behind the first the newline before it is counted, too, as MySQL does.
        let start = before.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        BadDocument(format!("parse error at line {line} pos {}: {what}", self.at - start + 1))
    }

    fn unexpected(&self, word: &Word, wanted: &str) -> BadDocument {
        let name = match word {
            Word::End => "END-OF-INPUT".to_owned(),
            Word::Sign(sign) => format!("'{}'", char::from(*sign)),
            Word::Name(_) => "IDENT".to_owned(),
            Word::Quoted(_) => "STRING".to_owned(),
            Word::Unknown => "unknown token".to_owned(),
        };
        self.bad(&format!("{name} unexpected ({wanted} wanted)"))
    }

    /// The next word of a tag; what is none is not passed.
    fn word(&mut self) -> Word {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        let start = self.at;
        match self.text.get(start) {
            None => Word::End,
            Some(sign @ (b'/' | b'=' | b'!' | b'?' | b'<' | b'>')) => {
                self.at += 1;
                Word::Sign(*sign)
            }
            Some(quote @ (b'"' | b'\'')) => {
                let rest = &self.text[start + 1..];
                let length = rest.iter().position(|byte| byte == quote);
                let end = start + 1 + length.unwrap_or(rest.len());
                self.at = (end + 1).min(self.text.len());
                Word::Quoted(start + 1..end)
            }
            Some(byte) if starts_name(*byte) => {
                let length = self.text[start..].iter().take_while(|byte| continues_name(**byte)).count();
                self.at += length;
                Word::Name(start..self.at)
            }
            Some(_) => Word::Unknown,
        }
    }

    fn add(&mut self, kind: Kind, name: Range<usize>, whole: Range<usize>) {
        let parent = self.open.last().copied().unwrap_or(0);
        let last = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, parent, last, name, whole });
    }

    /// Reads a text, a comment, an attribute, or a tag as far as its attributes.
    fn piece(&mut self) -> Result<(), BadDocument> {
        if self.in_tag {
            return self.attribute();
        }
        let rest = &self.text[self.at..];
        let start = self.at;
        if rest.starts_with(b"<!--") {
            return self.up_to(b"-->").map(|_| ());
        }
        if rest.starts_with(b"<![CDATA[") {
            let inside = self.up_to(b"]]>")?;
            self.add(Kind::Text, start + 9..inside, start..self.at);
            return Ok(());
        }
        if rest.first() != Some(&b'<') {
            let length = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
            self.at += length;
            self.add(Kind::Text, start..self.at, start..self.at);
            return Ok(());
        }
        self.at += 1;
        match self.word() {
            Word::Sign(b'/') => self.close(),
            Word::Sign(sign @ (b'!' | b'?')) => self.declaration(sign),
            Word::Name(name) => self.element(start, name),
            other => Err(self.unexpected(&other, "ident or '/'")),
        }
    }

    /// Passes the text up to the end of a comment or CDATA section, and returns where that begins.
    fn up_to(&mut self, end: &[u8]) -> Result<usize, BadDocument> {
        match self.text[self.at..].windows(end.len()).position(|window| window == end) {
            Some(length) => {
                let inside = self.at + length;
                self.at = inside + end.len();
                Ok(inside)
            }
            None => {
                self.at = self.text.len();
                Err(self.bad("unexpected END-OF-INPUT"))
            }
        }
    }

    fn end_of_tag(&mut self) -> Result<(), BadDocument> {
        match self.word() {
            Word::Sign(b'>') => Ok(()),
            other => Err(self.unexpected(&other, "'>'")),
        }
    }

    /// A closing tag: it ends what is open, whatever its name.
    fn close(&mut self) -> Result<(), BadDocument> {
        let name = match self.word() {
            Word::Name(name) => name,
            other => return Err(self.unexpected(&other, "ident")),
        };
        if self.open.len() == 1 {
            let name = String::from_utf8_lossy(&self.text[name]).into_owned();
            return Err(self.bad(&format!("'</{name}>' unexpected (END-OF-INPUT wanted)")));
        }
        self.end_of_tag()?;
        self.leave();
        Ok(())
    }

    fn leave(&mut self) {
        if let Some(element) = self.open.pop() {
            let last = self.nodes.len() as u32;
            let node = &mut self.nodes[element as usize];
            (node.last, node.whole.end) = (last, self.at);
        }
    }

    /// `<!DOCTYPE ..>` or `<?xml ..?>`: nothing of it is a node.
    fn declaration(&mut self, sign: u8) -> Result<(), BadDocument> {
        loop {
            match self.word() {
                Word::Name(_) | Word::Quoted(_) => {}
                Word::Sign(b'=') if sign == b'?' => {}
                Word::Sign(b'?') if sign == b'?' => return self.end_of_tag(),
                Word::Sign(b'>') if sign == b'!' => return Ok(()),
                other => return Err(self.unexpected(&other, if sign == b'?' { "'?'" } else { "'>'" })),
            }
        }
    }

    fn element(&mut self, start: usize, name: Range<usize>) -> Result<(), BadDocument> {
        self.add(Kind::Element, name, start..start);
        self.open.push(self.nodes.len() as u32 - 1);
        self.in_tag = true;
        Ok(())
    }

    /// An attribute, or the end of the tag.
    fn attribute(&mut self) -> Result<(), BadDocument> {
        let mut word = self.ahead.take().unwrap_or_else(|| self.word());
        if let Word::Name(name) = word {
            let sign = self.word();
            if sign != Word::Sign(b'=') {
                // As in MySQL, of two names without a value the second is passed.
                self.ahead = Some(sign).filter(|sign| !matches!(sign, Word::Name(_)));
                return Ok(());
            }
            let value = match self.word() {
                Word::Name(value) | Word::Quoted(value) => value,
                other => return Err(self.unexpected(&other, "ident or string")),
            };
            let whole = name.start..self.at;
            self.add(Kind::Attribute, name, whole);
            let attribute = self.nodes.len() as u32 - 1;
            self.nodes.push(Node {
                kind: Kind::Text,
                parent: attribute,
                last: attribute + 2,
                name: value.clone(),
                whole: value,
            });
            self.nodes[attribute as usize].last = attribute + 2;
            return Ok(());
        }
        self.in_tag = false;
        let closed = word == Word::Sign(b'/');
        if closed {
            word = self.word();
        }
        if word != Word::Sign(b'>') {
            return Err(self.unexpected(&word, "'>'"));
        }
        if closed {
            self.leave();
        }
        Ok(())
    }
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}
