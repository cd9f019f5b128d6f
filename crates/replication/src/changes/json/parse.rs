//! Parses a JSON text into a tree that borrows from it. Numbers stay digits, so that nothing is rounded before its type
//! is known.
//!
//! Any input gives a tree or an error; the depth is limited.

use std::borrow::Cow;

/// The maximum nesting: documents in JSON columns are limited to 100.
const DEEPEST: usize = 128;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// The number's text.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// The members in order, each with its value's own text.
    Object(Vec<(Cow<'a, str>, Node<'a>, &'a str)>),
}

/// The offset where a text stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadJson(pub usize);

impl<'a> Node<'a> {
    /// Parses the whole text as one value.
    pub(super) fn parse(text: &'a str) -> Result<Node<'a>, BadJson> {
        let mut parser = Parser { text, at: 0 };
        let node = parser.value(0)?;
        parser.blanks();
        if parser.at < text.len() { Err(BadJson(parser.at)) } else { Ok(node) }
    }

    /// Returns the value of an object's member.
    pub(super) fn get(&self, name: &str) -> Option<&Node<'a>> {
        match self {
            Node::Object(members) => members.iter().find(|(own, ..)| own == name).map(|(_, node, _)| node),
            _ => None,
        }
    }

    /// Returns the text of a member's value.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        match self {
            Node::Object(members) => members.iter().find(|(own, ..)| own == name).map(|(.., raw)| *raw),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Node<'a>]> {
        match self {
            Node::List(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self {
            Node::Bool(on) => Some(*on),
            _ => None,
        }
    }

    /// Returns a number of this type, if it is exact.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Node::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Returns a string's bytes, or those of `{"base64":"…"}`.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Node::Text(text) => Some(text.as_bytes().to_vec()),
            Node::Object(_) => omnibus_value::base64::decode(self.get("base64")?.text()?.as_bytes()),
            _ => None,
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> Result<(), BadJson> {
        if self.peek() != Some(byte) {
            return Err(BadJson(self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, BadJson> {
        if !self.text[self.at..].starts_with(word) {
            return Err(BadJson(self.at));
        }
        self.at += word.len();
        Ok(node)
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        if depth > DEEPEST {
            return Err(BadJson(self.at));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Node::Text),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            Some(b'-' | b'0'..=b'9') => {
                let digits =
                    |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
                let rest = &self.text.as_bytes()[self.at..];
                let len = rest.iter().position(|byte| !digits(*byte)).unwrap_or(rest.len());
                let number = &self.text[self.at..self.at + len];
                number.parse::<f64>().map_err(|_| BadJson(self.at))?;
                self.at += len;
                Ok(Node::Number(number))
            }
            _ => Err(BadJson(self.at)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        self.eat(b'[')?;
        let mut members = Vec::new();
        self.blanks();
        if self.eat(b']').is_ok() {
            return Ok(Node::List(members));
        }
        loop {
            members.push(self.value(depth + 1)?);
            self.blanks();
            if self.eat(b']').is_ok() {
                return Ok(Node::List(members));
            }
            self.eat(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        self.eat(b'{')?;
        let mut members = Vec::new();
        self.blanks();
        if self.eat(b'}').is_ok() {
            return Ok(Node::Object(members));
        }
        loop {
            self.blanks();
            let name = self.string()?;
            self.blanks();
            self.eat(b':')?;
            self.blanks();
            let from = self.at;
            let value = self.value(depth + 1)?;
            members.push((name, value, &self.text[from..self.at]));
            self.blanks();
            if self.eat(b'}').is_ok() {
                return Ok(Node::Object(members));
            }
            self.eat(b',')?;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, BadJson> {
        self.eat(b'"')?;
        let from = self.at;
        let mut out: Option<String> = None;
        let mut copied = from;
        loop {
            match self.peek() {
                None | Some(0..0x20) => return Err(BadJson(self.at)),
                Some(b'"') => {
                    let rest = &self.text[copied..self.at];
                    self.at += 1;
                    return Ok(match out {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let text = out.get_or_insert_default();
                    text.push_str(&self.text[copied..self.at]);
                    self.at += 1;
                    let character = self.escape()?;
                    out.get_or_insert_default().push(character);
                    copied = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, BadJson> {
        let byte = self.peek().ok_or(BadJson(self.at))?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                let mut code = first;
                if (0xd800..0xdc00).contains(&first) {
                    self.eat(b'\\')?;
                    self.eat(b'u')?;
                    let second = self.hex()?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(BadJson(self.at));
                    }
                    code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                }
                char::from_u32(code).ok_or(BadJson(self.at))?
            }
            _ => return Err(BadJson(self.at)),
        })
    }

    fn hex(&mut self) -> Result<u32, BadJson> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(BadJson(self.at))?;
        let code = u32::from_str_radix(digits, 16).map_err(|_| BadJson(self.at))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn texts_and_trees() {
        let text = r#" {"a": [1, -2.50e3, "x\n\u00e4\ud83d\ude00\"", true, null], "b": {"base64": "AP8="}, "c": {} } "#;
        let node = Node::parse(text).unwrap();
        let list = node.get("a").unwrap().list().unwrap();
        assert_eq!(list[1], Node::Number("-2.50e3"));
        assert_eq!(list[2].text(), Some("x\nä😀\""));
        assert_eq!(node.get("b").unwrap().bytes(), Some(vec![0, 255]));
        assert_eq!(node.raw("a"), Some(r#"[1, -2.50e3, "x\n\u00e4\ud83d\ude00\"", true, null]"#));
        assert_eq!(Node::Number("18446744073709551615").number::<u64>(), Some(u64::MAX));
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01x",
            "\"\\q\"",
            "\"\\ud800x\"",
            "nul",
            "1 2",
            "-",
            "\"a",
            "\"\u{1}\"",
        ] {
            assert!(Node::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Node::parse(&"[".repeat(100_000)).is_err(), "too deep");
        for bad in ["A", "AA=A", "AAA*", "====", "AA==AAAA"] {
            assert_eq!(omnibus_value::base64::decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
