//! JSON text to document, strict RFC 8259.

use super::{Json, JsonError, MAX_DEPTH, number, sort_members};

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

pub(super) fn parse(text: &[u8]) -> Result<Json, JsonError> {
    let text = std::str::from_utf8(text)
        .map_err(|e| JsonError::Syntax { message: "Invalid encoding in string.", offset: e.valid_up_to() })?;
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.spaces();
    if reader.peek().is_none() {
        return Err(reader.error("The document is empty."));
    }
    let value = reader.value()?;
    reader.spaces();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("The document root must not be followed by other values.")),
    }
}

impl Reader<'_> {
    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }
    fn error(&self, message: &'static str) -> JsonError {
        JsonError::Syntax { message, offset: self.at }
    }
    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        // An error is told where the word ends to be one.
        let same = self.bytes()[self.at..].iter().zip(word.as_bytes()).take_while(|(a, b)| a == b).count();
        self.at += same;
        if same == word.len() { Ok(value) } else { Err(self.error("Invalid value.")) }
    }
    fn value(&mut self) -> Result<Json, JsonError> {
        match self.peek() {
            Some(b'{') => self.nested(Reader::object),
            Some(b'[') => self.nested(Reader::array),
            Some(b'"') => self.string().map(Json::String),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => {
                let (json, used) = number::parse(&self.bytes()[self.at..], self.at)?;
                self.at += used;
                Ok(json)
            }
            _ => Err(self.error("Invalid value.")),
        }
    }
    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, JsonError>) -> Result<Json, JsonError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.at += 1;
        self.spaces();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }
    fn array(&mut self) -> Result<Json, JsonError> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.spaces();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.error("Missing a comma or ']' after an array element.")),
            }
            self.spaces();
        }
    }
    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("Missing a name for object member."));
            }
            let key = self.string()?;
            self.spaces();
            if self.peek() != Some(b':') {
                return Err(self.error("Missing a colon after a name of object member."));
            }
            self.at += 1;
            self.spaces();
            members.push((key, self.value()?));
            self.spaces();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    sort_members(&mut members);
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.error("Missing a comma or '}' after an object member.")),
            }
            self.spaces();
        }
    }
    /// Parses a string from its opening quote.
    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|c| c != b'"' && c != b'\\' && c >= 0x20) {
                self.at += 1;
            }
            out.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    out.push(c);
                }
                Some(_) => return Err(self.error("Invalid encoding in string.")),
                None => return Err(self.error("Missing a closing quotation mark in string.")),
            }
        }
    }
    fn escape(&mut self) -> Result<char, JsonError> {
        let kind = self.bytes().get(self.at + 1).copied();
        let start = self.at;
        self.at += 2;
        Ok(match kind {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                // What is wrong with it is told of all of it.
                return self.unicode().map_err(|error| match error {
                    JsonError::Syntax { message, .. } => JsonError::Syntax { message, offset: start },
                    error => error,
                });
            }
            _ => {
                self.at -= 2;
                return Err(self.error("Invalid escape character in string."));
            }
        })
    }
    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.hex4()?;
        let code = match high {
            0xd800..=0xdbff => {
                if !self.bytes()[self.at..].starts_with(b"\\u") {
                    return Err(self.error("The surrogate pair in string is invalid."));
                }
                self.at += 2;
                let low = self.hex4()?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return Err(self.error("The surrogate pair in string is invalid."));
                }
                0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00))
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.error("The surrogate pair in string is invalid."))
    }
    fn hex4(&mut self) -> Result<u32, JsonError> {
        let message = "Incorrect hex digit after \\u escape in string.";
        let digits = self.bytes().get(self.at..self.at + 4).ok_or_else(|| self.error(message))?;
        let mut n = 0;
        for &c in digits {
            n = n << 4 | char::from(c).to_digit(16).ok_or_else(|| self.error(message))?;
        }
        self.at += 4;
        Ok(n)
    }
}
